"""What a picture of failures shows: one lane a component, grouped by cause, as many as a reader can take in."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite

from r2cc_simai.failures.incident import Incident

MOST_LANES = 28
FINEST = 400
"""Parts of the time axis that can still be told apart: what is nearer together is drawn as one bar."""

_UNITS = ((86_400.0, "days", 3.0), (3600.0, "h", 2.0), (60.0, "min", 2.0), (1.0, "s", 1.0), (1e-3, "ms", 1.0))


@dataclass(frozen=True)
class Lane:
    """A component and what happens to it for one cause, in order of begin."""

    component: str
    incidents: tuple[Incident, ...]


@dataclass(frozen=True)
class Group:
    """The lanes of one cause, and how many components of it have none."""

    cause: str
    lanes: tuple[Lane, ...]
    left_out: int


@dataclass(frozen=True)
class Bar:
    """A piece of a lane, in s: from when to when, the lowest state, and the share of it in which something fails."""

    begin_s: float
    end_s: float
    state: float
    density: float
    count: int


def groups_of(incidents: Sequence[Incident], most: int = MOST_LANES) -> list[Group]:
    """Lanes by cause, both in order of their first incident; at most `most` lanes, shared fairly by the causes."""
    found: defaultdict[str, defaultdict[str, list[Incident]]] = defaultdict(lambda: defaultdict(list))
    for one in sorted(incidents, key=lambda one: one.begin_s):
        found[one.counts_as][one.component].append(one)
    room = _shares([len(lanes) for lanes in found.values()], most)
    groups = []
    for (cause, by_component), shown in zip(found.items(), room, strict=True):
        lanes = tuple(Lane(name, tuple(own)) for name, own in by_component.items())
        groups.append(Group(cause, lanes[:shown], len(lanes) - shown))
    return groups


def bars_of(lane: Lane, end_s: float) -> list[Bar]:
    """The bars of a lane up to `end_s`: pieces of one state, where they are too close to be told apart as one."""
    gap = end_s / FINEST
    bars: list[Bar] = []
    for one in lane.incidents:
        piece = Bar(one.begin_s, min(one.end_s, end_s), one.state, 1.0, 1)
        if piece.begin_s >= end_s:
            continue
        last = bars[-1] if bars else None
        fine = piece.end_s - piece.begin_s < gap or (last is not None and last.end_s - last.begin_s < gap)
        if last is not None and piece.begin_s - last.end_s < gap and (fine or last.count > 1):
            bars[-1] = _joined(last, piece)
        else:
            bars.append(piece)
    return bars


def end_of(incidents: Sequence[Incident], horizon_s: float | None) -> float:
    """Where the time axis ends, in s: the job's end, else a little behind the last change; 0 where nothing changes."""
    if horizon_s is not None and isfinite(horizon_s):
        return horizon_s
    times = [one.begin_s for one in incidents] + [one.end_s for one in incidents if isfinite(one.end_s)]
    last = max(times, default=0.0)
    return last * (1.15 if any(one.end_s == inf for one in incidents) else 1.04)


def unit_of(span_s: float) -> tuple[float, str]:
    """Seconds and name of the unit that a time axis of this length is read in."""
    for scale, name, least in _UNITS:
        if span_s >= least * scale:
            return scale, name
    return 1e-6, "µs"


def duration(seconds: float) -> str:
    """`4 h`, `2.5 days`, `10 ms`: three digits, in a unit that fits."""
    known = (*((scale, name) for scale, name, _ in _UNITS), (1e-6, "µs"))
    scale, name = next((one for one in known if seconds >= (2 if one[1] == "days" else 1) * one[0]), known[-1])
    return f"{seconds / scale:.3g} {name}"


def told(lane: Lane) -> str:
    """What happens in a lane, in a few words."""
    lengths = [one.end_s - one.begin_s for one in lane.incidents]
    if len(lengths) == 1:
        return _told_alone(lane.incidents[0])
    if len(lengths) == 2 and lane.incidents[0].end_s == lane.incidents[1].begin_s:
        return ", then ".join(_state(one) for one in lane.incidents)
    total = sum(length for length in lengths if isfinite(length))
    if inf in lengths:
        return f"{len(lengths)} times, the last for good"
    if max(lengths) - min(lengths) < 1e-6 * max(lengths):
        return f"{len(lengths)} × {duration(lengths[0])}"
    return f"{len(lengths)} times, {duration(total)} in all"


def _told_alone(one: Incident) -> str:
    if one.end_s < inf:
        return f"{_state(one)} for {duration(one.end_s - one.begin_s)}"
    return f"{_state(one)} from {duration(one.begin_s)} on" if one.begin_s > 0 else f"{_state(one)} from the start"


def _state(one: Incident) -> str:
    return "down" if one.state == 0 else f"{100 * one.state:.3g}% left"


def _joined(a: Bar, b: Bar) -> Bar:
    end = max(a.end_s, b.end_s)
    busy = a.density * (a.end_s - a.begin_s) + max(0.0, b.end_s - max(a.end_s, b.begin_s))
    whole = max(end - a.begin_s, 1e-300)
    return Bar(a.begin_s, end, min(a.state, b.state), min(1.0, busy / whole), a.count + b.count)


def _shares(wanted: Sequence[int], most: int) -> list[int]:
    """How many of each are taken: all where there is room, else turn by turn."""
    taken = [0] * len(wanted)
    while most > 0 and any(have < want for have, want in zip(taken, wanted, strict=True)):
        for i, want in enumerate(wanted):
            if taken[i] < want and most > 0:
                taken[i] += 1
                most -= 1
    return taken
