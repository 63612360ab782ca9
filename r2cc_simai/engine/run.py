"""Running one plan on one backend under a timeline of failures."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.collectives.binding import Binding
from r2cc_simai.collectives.schedule import Schedule
from r2cc_simai.engine import _core
from r2cc_simai.engine.cluster import core_cluster
from r2cc_simai.errors import InputError, PartitionedError
from r2cc_simai.failures.timeline import Event

Floats = NDArray[np.float64]
React = Callable[[_core.Broken], _core.Reaction]


class Backend(Enum):
    """Which fidelity runs a schedule."""

    FLOW = "flow"
    CHUNK = "chunk"


@dataclass(frozen=True, eq=False)
class NicBytes:
    """Bytes per NIC, shape (n_nics,): what a port counts (headers included), and payload alone."""

    rx: Floats
    tx: Floats
    rx_payload: Floats
    tx_payload: Floats


@dataclass(frozen=True, eq=False)
class Run:
    """One collective that ran. Times in seconds from its start; `aborted` is the reason if it did not end.

    `pass_start_s` and `pass_end_s` have one entry per pass of the schedule. `event_time_s` says when each event came
    (NaN: not within this run). `log` tells what broke and moved. `steps` counts the engine's events.
    """

    elapsed_s: float
    bytes: NicBytes
    pass_start_s: Floats
    pass_end_s: Floats
    event_time_s: Floats
    log: tuple[_core.LogEntry, ...]
    steps: int
    aborted: str | None


def run_schedule(
    cluster: Cluster,
    schedule: Schedule,
    binding: Binding,
    events: tuple[Event, ...] = (),
    backend: Backend = Backend.FLOW,
    react: React | None = None,
) -> Run:
    """Runs a schedule to its end. `events` are relative to the start; negative times happened before.

    Raises:
        PartitionedError: the failures leave a pair of ranks without a path, or passes wait for ever.
        InputError: the schedule or the binding is inconsistent.
    """
    runner = _core.run_flow if backend is Backend.FLOW else _core.run_chunk
    try:
        out = runner(core_cluster(cluster), schedule.core, binding.core, nic_events(events), react)
    except ValueError as error:
        raise InputError(f"schedule: {error}") from None
    if out.status in (_core.Status.PARTITIONED, _core.Status.UNFINISHED):
        raise PartitionedError(f"{cluster.name}: {out.reason} ({out.elapsed_s:.6g} s into the collective)")
    return Run(
        elapsed_s=out.elapsed_s,
        bytes=nic_bytes(out),
        pass_start_s=np.array(out.pass_start_s),
        pass_end_s=np.array(out.pass_end_s),
        event_time_s=np.array(out.event_time_s),
        log=tuple(out.log),
        steps=out.steps,
        aborted=out.reason if out.status is _core.Status.ABORTED else None,
    )


def nic_events(events: tuple[Event, ...]) -> list[_core.NicEvent]:
    """Events in the engine's form."""
    return [
        _core.NicEvent(
            nic=e.nic, fraction=e.fraction, time_s=e.time_s, at_bytes=-1.0 if e.at_bytes is None else e.at_bytes
        )
        for e in events
    ]


def nic_bytes(out: _core.Outcome) -> NicBytes:
    """What the engine counted."""
    return NicBytes(*map(np.array, (out.in_wire, out.out_wire, out.in_payload, out.out_payload)))


def hit(run: Run) -> bool:
    """Whether a failure or repair came while the collective ran, or one of before its start was found during it."""
    came = any(not math.isnan(t) and t > 0 for t in run.event_time_s)
    return came or any(entry.what == "detected" and entry.value > 0 and entry.time_s > 0 for entry in run.log)
