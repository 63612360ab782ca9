"""How processes are started on the hosts: by Open MPI's mpirun, by Slurm's srun, by torchrun, or here.

All are asked to say which rank a line of output comes from, so that lines of several ranks can be told apart.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from r2cc_simai.errors import InputError, MissingComponentError
from r2cc_simai.real.hosts import Host, total_slots

_HERE = ("localhost", "127.0.0.1")
_KINDS = {
    "mpirun": "mpirun",
    "mpiexec": "mpirun",
    "orterun": "mpirun",
    "prterun": "mpirun",
    "srun": "srun",
    "torchrun": "torchrun",
}


@dataclass(frozen=True)
class Command:
    """A process to start here. `env` is added to this process's own environment; `label` goes before its lines."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    label: str = ""

    @property
    def text(self) -> str:
        """The command as one writes it in a shell."""
        assignments = [f"{name}={shlex.quote(value)}" for name, value in self.env.items()]
        return " ".join([*assignments, shlex.join(self.argv)])

    @property
    def environment(self) -> dict[str, str]:
        """The whole environment of the process."""
        return {**os.environ, **self.env}


def launcher_kind(launcher: str, allowed: Sequence[str] = ("mpirun", "srun")) -> str:
    """Which launcher a program is, by its name.

    Raises:
        InputError: it is none of those allowed.
    """
    kind = _KINDS.get(Path(launcher).name, "")
    if kind not in allowed:
        raise InputError(f"--launcher {launcher}: unknown (allowed: {', '.join(allowed)}, or a path that ends so)")
    return kind


def require(program: str) -> None:
    """Refuses a program that is not there.

    Raises:
        MissingComponentError: neither on the path nor a file that can be run.
    """
    if shutil.which(program) is None:
        raise MissingComponentError(f"{program}: not found; install it, or name its path")


def launch(
    launcher: str,
    hosts: tuple[Host, ...],
    program: Sequence[str],
    variables: Mapping[str, str],
    extra: Sequence[str] = (),
) -> Command:
    """One process per slot by mpirun or srun, ranks in the order of the hosts; `extra` are options of the launcher.

    Raises:
        InputError: srun, and hosts with different numbers of slots.
    """
    if launcher_kind(launcher) == "srun":
        return _srun(launcher, hosts, program, variables, extra)
    exported = [part for name, value in variables.items() for part in ("-x", f"{name}={value}")]
    where = ["--host", ",".join(map(str, hosts)), "-np", str(total_slots(hosts)), "--map-by", "slot"]
    return Command((launcher, *where, "--tag-output", *exported, *extra, *program))


def _srun(
    launcher: str, hosts: tuple[Host, ...], program: Sequence[str], variables: Mapping[str, str], extra: Sequence[str]
) -> Command:
    slots = {host.slots for host in hosts}
    if len(slots) > 1:
        raise InputError("--launcher srun: every host needs as many slots as the others; use mpirun")
    names = ",".join(host.name for host in hosts)
    where = [f"--nodelist={names}", f"--nodes={len(hosts)}", f"--ntasks={total_slots(hosts)}"]
    where += [f"--ntasks-per-node={slots.pop()}", "--distribution=block", "--label", "--export=ALL"]
    # values may hold commas, which separate variables in --export, so srun hands on its own environment
    return Command((launcher, *where, *extra, *program), dict(variables))


def torchrun(
    hosts: tuple[Host, ...], module: Sequence[str], variables: Mapping[str, str], python: str, port: int
) -> list[Command]:
    """One torchrun per host, started by ssh except on this one; `module` is a Python module and its arguments."""
    commands = []
    for number, host in enumerate(hosts):
        argv = [python, "-m", "torch.distributed.run", f"--nnodes={len(hosts)}", f"--node-rank={number}"]
        argv += [f"--nproc-per-node={host.slots}", f"--master-addr={hosts[0].name}", f"--master-port={port}"]
        argv += ["-m", *module]
        if host.name in _HERE:
            commands.append(Command(tuple(argv), dict(variables), f"[{host.name}]: "))
            continue
        remote = " ".join([*(f"{name}={shlex.quote(value)}" for name, value in variables.items()), shlex.join(argv)])
        commands.append(Command(("ssh", "-o", "BatchMode=yes", host.name, remote), {}, f"[{host.name}]: "))
    return commands


def local(n_ranks: int, module: Sequence[str], variables: Mapping[str, str]) -> list[Command]:
    """One process per rank on this machine, numbered as torchrun does it."""
    commands = []
    for rank in range(n_ranks):
        own = {"RANK": str(rank), "WORLD_SIZE": str(n_ranks), "LOCAL_RANK": str(rank), **variables}
        commands.append(Command((sys.executable, "-m", *module), own, f"[1,{rank}]<stdout>: "))
    return commands
