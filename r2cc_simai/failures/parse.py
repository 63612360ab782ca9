"""Reading `--fail component[range][=fraction]@t[..t2]`."""

import math
import re

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.errors import InputError
from r2cc_simai.failures.component import component_of, nics_of
from r2cc_simai.failures.timeline import Event, Timeline, sorted_timeline
from r2cc_simai.units import parse_duration, parse_size

_FAIL = re.compile(r"(?P<component>[^=@]+)(=(?P<fraction>[^@]+))?@(?P<when>.+)")
FORM = "component[=fraction]@time[..until], for example server0.nic3@0.5 or server1.nic0=0.5@1.5..2.0"


def parse_failures(texts: list[str] | tuple[str, ...], cluster: Cluster) -> Timeline:
    """The timeline of all `--fail` options.

    Times are seconds from the start of the first timed iteration, with a unit where one is written (`970ms`), or
    `bytes:N` that have passed on the component. `=fraction` is the rate that is left (0 by default: down).

    Raises:
        InputError: an option is not of the form, or names what the cluster does not have.
    """
    events: list[Event] = []
    for text in texts:
        events.extend(_parse_one(text.strip(), cluster))
    return sorted_timeline(events, " ".join(t.strip() for t in texts) or "none")


def _parse_one(text: str, cluster: Cluster) -> list[Event]:
    match = _FAIL.fullmatch(text)
    if match is None:
        raise InputError(f"--fail {text!r}: write {FORM}")
    try:
        name, part = component_of(match["component"])
        nics = nics_of(cluster, name)
        fraction = _fraction(match["fraction"])
        start, _, until = match["when"].partition("..")
        if start.startswith("bytes:"):
            if until:
                raise InputError("a failure by bytes has no end; give the repair a time of its own")
            passed = float(parse_size(start.removeprefix("bytes:")))
            return [Event(nic, fraction, at_bytes=passed, component=part) for nic in nics]
        begins = parse_duration(start)
        events = [Event(nic, fraction, time_s=begins, component=part) for nic in nics]
        if until:
            ends = parse_duration(until)
            if ends <= begins:
                raise InputError(f"it ends at {until}, before it begins")
            events += [Event(nic, 1.0, time_s=ends, component=part) for nic in nics]
    except InputError as error:
        raise InputError(f"--fail {text!r}: {error}") from None
    return events


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
