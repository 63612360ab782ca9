"""The exact commands: ranks in the order of the hosts, as many on each as it has slots."""

import shlex

import pytest

from r2cc_simai.errors import InputError, MissingComponentError
from r2cc_simai.real.hosts import Host
from r2cc_simai.real.launcher import launch, launcher_kind, local, require, torchrun

HOSTS = (Host("a", 2), Host("b", 2))
SET = {"NCCL_IB_HCA": "mlx5_0,mlx5_2"}


def test_mpirun_hands_on_each_variable():
    command = launch("mpirun", HOSTS, ["all_reduce_perf", "-b", "1G"], SET, ["--bind-to", "none"])
    assert command.text == (
        "mpirun --host a:2,b:2 -np 4 --map-by slot --tag-output -x NCCL_IB_HCA=mlx5_0,mlx5_2 --bind-to none "
        "all_reduce_perf -b 1G"
    )


def test_srun_hands_on_its_own_environment_since_commas_separate_variables_in_its_option():
    command = launch("/opt/slurm/bin/srun", HOSTS, ["all_reduce_perf"], SET)
    assert command.text == (
        "NCCL_IB_HCA=mlx5_0,mlx5_2 /opt/slurm/bin/srun --nodelist=a,b --nodes=2 --ntasks=4 --ntasks-per-node=2 "
        "--distribution=block --label --export=ALL all_reduce_perf"
    )
    assert command.environment["NCCL_IB_HCA"] == "mlx5_0,mlx5_2"


def test_srun_needs_hosts_alike():
    with pytest.raises(InputError, match="as many slots"):
        launch("srun", (Host("a", 2), Host("b", 1)), ["x"], {})


def test_torchrun_starts_by_ssh_except_on_this_machine():
    here, there = torchrun((Host("localhost", 2), Host("b", 1)), ["pkg.module", "a b"], SET, "python3", 29500)
    assert here.argv[:3] == ("python3", "-m", "torch.distributed.run")
    assert here.env == SET
    assert there.argv[:4] == ("ssh", "-o", "BatchMode=yes", "b")
    remote = shlex.split(there.argv[4])  # what the shell of the other machine makes of it
    assert remote[0] == "NCCL_IB_HCA=mlx5_0,mlx5_2"
    assert remote[4:9] == [
        "--nnodes=2",
        "--node-rank=1",
        "--nproc-per-node=1",
        "--master-addr=localhost",
        "--master-port=29500",
    ]
    assert remote[-2:] == ["pkg.module", "a b"]


def test_local_ranks_are_numbered():
    first, second = local(2, ["pkg.module"], {})
    assert (first.env["RANK"], second.env["RANK"], second.env["WORLD_SIZE"]) == ("0", "1", "2")


def test_unknown_and_missing_launchers():
    with pytest.raises(InputError, match="mpirun, srun"):
        launcher_kind("mpiexec.slurm")
    with pytest.raises(MissingComponentError, match="/nowhere/mpirun: not found"):
        require("/nowhere/mpirun")
