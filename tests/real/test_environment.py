"""Options of a run become the variables that NCCL and R2CC read; values that they would not take are refused."""

import pytest

from r2cc_simai.errors import InputError
from r2cc_simai.measured.settings import run_settings
from r2cc_simai.real.environment import NcclOptions, influences, variables


def test_all_variables_of_an_r2cc_run():
    options = NcclOptions(
        nics="mlx5_0,mlx5_2",
        socket="eth0",
        timeout=14,
        retries=3,
        port_failover=True,
        mode="r2cc-allreduce",
        failed_node=1,
        failed_nic="mlx5_2",
        chunks=8,
        extra=("NCCL_DEBUG=WARN",),
    )
    assert variables(options) == {
        "NCCL_IB_HCA": "mlx5_0,mlx5_2",
        "NCCL_SOCKET_IFNAME": "eth0",
        "NCCL_IB_TIMEOUT": "14",
        "NCCL_IB_RETRY_CNT": "3",
        "NCCL_IB_RESILIENCY_PORT_FAILOVER": "1",
        "R2CC_MODE": "3",
        "R2CC_FAILED_NODE": "1",
        "R2CC_FAILED_HCA": "mlx5_2",
        "R2CC_AR_STAGE2_CHUNKS": "8",
        "NCCL_DEBUG": "WARN",
    }


@pytest.mark.parametrize("mode", ["nccl", "hot-repair", "balance", "r2cc-allreduce"])
def test_a_mode_by_name_is_read_back_from_a_log_as_that_strategy(mode):
    found = variables(NcclOptions(nics="a,b", mode=mode, failed_node=0, failed_nic="b"))
    assert run_settings(found, "log:1").mode.split(":")[0] == mode


def test_what_is_not_set_is_left_to_nccl():
    assert variables(NcclOptions()) == {}
    assert variables(NcclOptions(port_failover=False)) == {"NCCL_IB_RESILIENCY_PORT_FAILOVER": "0"}


BAD = {
    "a timeout beyond NCCL's": (NcclOptions(timeout=23), "1 to 22"),
    "too many retries": (NcclOptions(retries=8), "0 to 7"),
    "an unknown mode": (NcclOptions(mode="balanse"), "hot-repair"),
    "a failed NIC without a mode": (NcclOptions(failed_nic="a"), "--mode"),
    "a mode without its failure": (NcclOptions(mode="2"), "--failed-nic"),
    "a failed NIC that is not used": (NcclOptions(nics="a", mode="2", failed_nic="b"), "R2CC_FAILED_HCA"),
    "no chunks": (NcclOptions(mode="3", failed_nic="a", chunks=0), "R2CC_AR_STAGE2_CHUNKS"),
    "no assignment": (NcclOptions(extra=("NCCL_DEBUG",)), "NAME=VALUE"),
}


@pytest.mark.parametrize(("options", "named"), BAD.values(), ids=BAD)
def test_what_nccl_would_not_take(options, named):
    with pytest.raises(InputError, match=named):
        variables(options)


def test_only_what_may_change_a_measurement_is_recorded():
    environment = {"NCCL_ALGO": "Ring", "HOME": "/root", "AWS_SECRET": "x", "UCX_TLS": "tcp"}
    assert influences(environment) == {"NCCL_ALGO": "Ring", "UCX_TLS": "tcp"}
