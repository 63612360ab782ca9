"""The variables that NCCL, and an R2CC build of it, read from the environment of a run.

Names and ranges: NCCL's user guide (NCCL_IB_TIMEOUT 1 to 22, NCCL_IB_RETRY_CNT 0 to 7) and R2CC's README (R2CC_MODE).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from r2cc_simai.errors import InputError
from r2cc_simai.measured.settings import run_settings

MODES = {"nccl": "0", "hot-repair": "1", "balance": "2", "r2cc-allreduce": "3"}
"""R2CC_MODE of each strategy that an R2CC build has."""

INFLUENCES = ("NCCL_", "R2CC_", "OMPI_MCA_", "PRTE_MCA_", "UCX_", "GLOO_", "SLURM_", "CUDA_VISIBLE_DEVICES")
"""Starts of the names of variables that may change what is measured; no others are recorded."""

_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


@dataclass(frozen=True)
class NcclOptions:
    """What a run sets; None leaves NCCL's own default. `mode` is an R2CC mode by name or number."""

    nics: str | None = None
    socket: str | None = None
    timeout: int | None = None
    retries: int | None = None
    port_failover: bool | None = None
    mode: str | None = None
    failed_node: int | None = None
    failed_nic: str | None = None
    chunks: int | None = None
    extra: tuple[str, ...] = ()


def variables(options: NcclOptions) -> dict[str, str]:
    """The variables that the options stand for, in a fixed order.

    Raises:
        InputError: a value that NCCL or R2CC would not take, or one of R2CC's without its mode.
    """
    _in_range("--ib-timeout", options.timeout, 1, 22)
    _in_range("--ib-retries", options.retries, 0, 7)
    failover = None if options.port_failover is None else str(int(options.port_failover))
    values = {
        "NCCL_IB_HCA": options.nics,
        "NCCL_SOCKET_IFNAME": options.socket,
        "NCCL_IB_TIMEOUT": _text(options.timeout),
        "NCCL_IB_RETRY_CNT": _text(options.retries),
        "NCCL_IB_RESILIENCY_PORT_FAILOVER": failover,
        "R2CC_MODE": None if options.mode is None else _mode(options.mode),
        "R2CC_FAILED_NODE": _text(options.failed_node),
        "R2CC_FAILED_HCA": options.failed_nic,
        "R2CC_AR_STAGE2_CHUNKS": _text(options.chunks),
    }
    found = {name: value for name, value in values.items() if value is not None}
    found |= pairs(options.extra)
    _check_r2cc(found)
    return found


def pairs(assignments: Iterable[str]) -> dict[str, str]:
    """The variables of `--env NAME=VALUE`.

    Raises:
        InputError: it is no assignment.
    """
    found = {}
    for text in assignments:
        match = _VARIABLE.fullmatch(text)
        if match is None or "\n" in text:
            raise InputError(f"--env {text!r}: write NAME=VALUE on one line")
        found[match[1]] = match[2]
    return found


def influences(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of an environment that may change what is measured, by name."""
    return {name: environment[name] for name in sorted(environment) if name.startswith(INFLUENCES)}


def _check_r2cc(found: Mapping[str, str]) -> None:
    if "R2CC_MODE" not in found:
        loose = [name for name in found if name.startswith("R2CC_")]
        if loose:
            raise InputError(f"{loose[0]}: only an R2CC build reads it; name its mode with --mode")
        return
    try:
        run_settings(found, "--mode")
    except InputError as error:
        raise InputError(f"environment: {error}") from None
    if found["R2CC_MODE"] != "0" and not found.get("R2CC_FAILED_HCA"):
        raise InputError(f"--mode {found['R2CC_MODE']}: name what failed with --failed-node and --failed-nic")


def _mode(text: str) -> str:
    if text in MODES.values():
        return text
    if text not in MODES:
        raise InputError(f"--mode {text}: unknown (allowed: {', '.join(MODES)}, or R2CC_MODE's 0 to 3)")
    return MODES[text]


def _in_range(option: str, value: int | None, low: int, high: int) -> None:
    if value is not None and not low <= value <= high:
        raise InputError(f"{option} {value}: NCCL takes {low} to {high}")


def _text(value: int | None) -> str | None:
    return None if value is None else str(value)
