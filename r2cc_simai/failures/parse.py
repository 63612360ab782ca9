"""Reading `--fail`: `component[range][=fraction]@t[..t2]`, or a failure pattern `name[:key=value,...]`."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.errors import InputError, SimaiError
from r2cc_simai.failures.component import component_of, nics_of
from r2cc_simai.failures.compose import timeline_of
from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.registry import is_pattern, parse_pattern
from r2cc_simai.failures.repair import Repair, repaired
from r2cc_simai.failures.timeline import Event, Timeline, sorted_timeline
from r2cc_simai.units import parse_duration, parse_size

_FAIL = re.compile(r"(?P<component>[^=@]+)(=(?P<fraction>[^@]+))?@(?P<when>.+)")
FORM = "component[=fraction]@time[..until], for example server0.nic3@0.5 or server1.nic0=0.5@1.5..2.0"
NONE = "none"


@dataclass(frozen=True)
class ByBytes:
    """A failure that happens when so many bytes have passed on each NIC of a component."""

    component: str
    fraction: float
    at_bytes: float


_Parsed = Incident | Repair | ByBytes


def parse_failures(
    texts: Sequence[str],
    cluster: Cluster,
    *,
    seed: int = 0,
    horizon_s: float = math.inf,
    base: Path | None = None,
) -> Timeline:
    """The timeline of all `--fail` options together; a NIC is at the least rate that any of them leaves it.

    Times are seconds from the start of the first timed iteration, with a unit where one is written (`970ms`), or
    `bytes:N` that have passed on the component. `=fraction` is the rate that is left (0 by default: down), `=1` is the
    repair of all that was down on the component until then. Patterns that draw use `seed`; `horizon_s` is the length
    of the job in seconds and `base` the folder that files in a pattern's options refer to.

    Raises:
        InputError: an option is not of the form, or names what the cluster does not have.
    """
    parsed = list(_parse_all(texts, cluster, seed, horizon_s, base))
    timeline = timeline_of(repaired(_timed(parsed), cluster), cluster, _pattern(texts))
    counted = [one for one in parsed if isinstance(one, ByBytes)]
    if not counted:
        return timeline
    events = [*timeline.events, *_by_bytes(counted, cluster)]
    return sorted_timeline([*events, *_repairs_of(counted, parsed, timeline, cluster)], timeline.pattern)


def incidents_of(
    texts: Sequence[str],
    cluster: Cluster,
    *,
    seed: int = 0,
    horizon_s: float = math.inf,
    base: Path | None = None,
) -> tuple[Incident, ...]:
    """The incidents that `parse_failures` makes its timeline of, in order of begin.

    Raises:
        InputError: as `parse_failures`; and for failures by bytes, whose time only a simulation knows.
    """
    parsed = list(_parse_all(texts, cluster, seed, horizon_s, base))
    if any(isinstance(one, ByBytes) for one in parsed):
        text = next(text.strip() for text in texts if "@bytes:" in text)
        raise InputError(f"--fail {text!r}: a failure by bytes has no time of its own; write component@time")
    return tuple(sorted(repaired(_timed(parsed), cluster), key=lambda one: one.begin_s))


def _pattern(texts: Sequence[str]) -> str:
    return " ".join(text.strip() for text in texts if text.strip() != NONE) or NONE


def _timed(parsed: Sequence[_Parsed]) -> list[Incident | Repair]:
    return [one for one in parsed if not isinstance(one, ByBytes)]


def _parse_all(
    texts: Sequence[str], cluster: Cluster, seed: int, horizon_s: float, base: Path | None
) -> Iterator[_Parsed]:
    uses: dict[str, int] = {}
    for text in (text.strip() for text in texts):
        if text == NONE:
            continue
        try:
            if not is_pattern(text):
                yield _parse_one(text, cluster)
                continue
            one = parse_pattern(text)
            stream = uses[one.pattern.name] = uses.get(one.pattern.name, -1) + 1
            yield from one.incidents(cluster, seed, horizon_s, base=base, stream=stream)
        except SimaiError as error:
            raise type(error)(f"--fail {text!r}: {error}") from None


def _parse_one(text: str, cluster: Cluster) -> _Parsed:
    match = _FAIL.fullmatch(text)
    if match is None:
        raise InputError(f"write {FORM}, or a pattern (see failures list)")
    component = match["component"].strip()
    nics_of(cluster, component_of(component)[0])
    fraction = _fraction(match["fraction"])
    start, _, until = match["when"].partition("..")
    if start.startswith("bytes:"):
        if until:
            raise InputError("a failure by bytes has no end; give the repair a time of its own")
        return ByBytes(component, fraction, float(parse_size(start.removeprefix("bytes:"))))
    begins = parse_duration(start)
    if fraction == 1:
        if until:
            raise InputError("a repair has no end; write component=1@time")
        return Repair(component, begins)
    ends = parse_duration(until) if until else math.inf
    if ends <= begins:
        raise InputError(f"it ends at {until}, before it begins")
    return Incident(component, begins, ends, fraction)


def _by_bytes(counted: Sequence[ByBytes], cluster: Cluster) -> Iterator[Event]:
    for one in counted:
        name, part = component_of(one.component)
        for nic in nics_of(cluster, name):
            yield Event(nic, one.fraction, at_bytes=one.at_bytes, component=part)


def _repairs_of(
    counted: Sequence[ByBytes], parsed: Sequence[_Parsed], timeline: Timeline, cluster: Cluster
) -> Iterator[Event]:
    """Repairs of NICs that fail by bytes: nothing that is known beforehand changes then, but the NIC is up again."""
    failing = {event.nic for event in _by_bytes(counted, cluster)}
    changed = {(event.nic, event.time_s) for event in timeline.events}
    for one in parsed:
        if not isinstance(one, Repair):
            continue
        name, part = component_of(one.component)
        for nic in nics_of(cluster, name):
            if nic in failing and (nic, one.time_s) not in changed:
                yield Event(nic, 1.0, time_s=one.time_s, component=part)


def _fraction(text: str | None) -> float:
    if text is None:
        return 0.0
    try:
        top, _, bottom = text.partition("/")
        fraction = float(top) / float(bottom) if bottom else float(top)
    except (ValueError, ZeroDivisionError):
        fraction = math.nan
    if not 0 <= fraction <= 1:
        raise InputError(f"{text!r} is no fraction of the rate that is left; write a number from 0 to 1")
    return fraction
