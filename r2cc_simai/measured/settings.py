"""What a run's environment variables say of its strategy, its NICs and its failure."""

from collections.abc import Mapping
from dataclasses import dataclass

from r2cc_simai.errors import InputError
from r2cc_simai.measured.model import FailedNic

DEFAULT_CHUNKS = 4
"""Pipelined chunks of R2CC-AllReduce where R2CC_AR_STAGE2_CHUNKS is not set."""

R2CC_ALLREDUCE = f"r2cc-allreduce:k={DEFAULT_CHUNKS}"

STRATEGY, FAILURES, CLUSTER = "R2CC_SIMAI_STRATEGY", "R2CC_SIMAI_FAIL", "R2CC_SIMAI_CLUSTER"
"""What a simulated run says of itself: strategy spec, failures as `--fail` takes them, cluster as `--cluster` does."""
SEPARATOR = ";"
"""Between failures."""

_MODES = {"0": "nccl", "1": "hot-repair", "2": "balance", "3": "r2cc-allreduce"}


@dataclass(frozen=True)
class RunSettings:
    """Strategy spec, NICs and failed NIC of a run; failures and cluster where the run was a simulated one."""

    mode: str
    nic_names: tuple[str, ...]
    failed: FailedNic | None
    failures: tuple[str, ...] = ()
    cluster: str = ""


def run_settings(variables: Mapping[str, str], where: str) -> RunSettings:
    """Settings from R2CC_* and NCCL_IB_HCA; without R2CC_MODE the run is plain NCCL.

    R2CC_FAILED_NODE counts hosts from 0 and names a failure only in the modes that react to one.
    Raises InputError, at `where`, on a value that has no meaning here.
    """
    if STRATEGY in variables:
        failures = tuple(one for one in variables.get(FAILURES, "").split(SEPARATOR) if one)
        return RunSettings(variables[STRATEGY], (), None, failures, variables.get(CLUSTER, ""))
    mode = _strategy(variables, where)
    nics = _nic_names(variables.get("NCCL_IB_HCA", ""))
    failed = None if mode == "nccl" else _failed_nic(variables, nics, where)
    return RunSettings(mode, nics, failed)


def failure_warnings(settings: RunSettings, n_nodes: int | None, where: str) -> tuple[str, ...]:
    """A warning where a strategy reacts to a failure that nothing names, or where nothing was measured.

    Raises InputError, at `where`, when the failed server is none of the run's.
    """
    failed = settings.failed
    if settings.cluster:
        return (f"{where}: simulated by r2cc-simai, not measured",)
    if failed is not None and n_nodes is not None and failed.node >= n_nodes:
        raise InputError(f"{where}: expected R2CC_FAILED_NODE below {n_nodes}, found {failed.node}")
    if settings.mode != "nccl" and failed is None:
        return (f"{where}: {settings.mode}, but no failed NIC is named",)
    return ()


def _strategy(variables: Mapping[str, str], where: str) -> str:
    value = variables.get("R2CC_MODE", "0")
    if value not in _MODES:
        raise InputError(f"{where}: expected R2CC_MODE=0, 1, 2 or 3, found {value!r}")
    if value != "3":
        return _MODES[value]
    chunks = _number(variables, "R2CC_AR_STAGE2_CHUNKS", DEFAULT_CHUNKS, where)
    if chunks < 1:
        raise InputError(f"{where}: expected R2CC_AR_STAGE2_CHUNKS of at least 1, found {chunks}")
    return f"{_MODES[value]}:k={chunks}"


def _nic_names(value: str) -> tuple[str, ...]:
    """The NICs of NCCL_IB_HCA, ports dropped; none of a list of exclusions (`^`)."""
    if value.startswith("^"):
        return ()
    names = (name.split(":")[0] for name in value.lstrip("=").split(","))
    return tuple(dict.fromkeys(name for name in names if name))


def _failed_nic(variables: Mapping[str, str], nics: tuple[str, ...], where: str) -> FailedNic | None:
    name = variables.get("R2CC_FAILED_HCA", "")
    if not name:
        return None
    if name.isdecimal() and int(name) < len(nics):
        name = nics[int(name)]
    if "," in name or (nics and name not in nics):
        allowed = f"one of {', '.join(nics)}" if nics else "one NIC"
        raise InputError(f"{where}: expected R2CC_FAILED_HCA to be {allowed}, found {name!r}")
    return FailedNic(_number(variables, "R2CC_FAILED_NODE", 0, where), name)


def _number(variables: Mapping[str, str], key: str, default: int, where: str) -> int:
    value = variables.get(key, str(default))
    if not value.isdecimal():
        raise InputError(f"{where}: expected {key} to be a whole number, found {value!r}")
    return int(value)
