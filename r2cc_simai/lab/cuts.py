"""What breaks in a lab, when, and what the planners and the simulation are told of it.

A cut is written `component[=kind]@when[..until]`, like a failure of the simulated commands with the kinds that a real
network has:

- `link-down` (the default): the NIC is set down, as `ip link set NIC down` does it. Its own server gets a link event.
- `port-down`: the switch's port is set down; the server sees that its NIC has lost the carrier.
- `silent`: the switch drops everything of the port while both links stay up.
- `reset`: the NIC's connections end with an error while the link is fine, and new ones would work.
- `rate:FRACTION`: both directions go to that part of their rate.
- `flap:PERIOD,DUTY,COUNT`: the NIC goes down COUNT times, once every PERIOD, and is up for the part DUTY of each.

`when` is a time since the start of the first collective that counts (0: it is there before, and known), or `bytes:N`
that have passed on the NIC in that collective. `until` is a time, too, or `+DURATION` after it began.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.errors import InputError
from r2cc_simai.failures.component import nics_of
from r2cc_simai.failures.timeline import Component, Event, Timeline, sorted_timeline
from r2cc_simai.units import parse_duration, parse_size

FORM = "component[=kind]@when[..until], for example server1.nic0=silent@bytes:5M or server0.nic1@0.2..+0.5"
KINDS = "link-down, port-down, silent, reset, rate:FRACTION or flap:PERIOD,DUTY,COUNT"
MOST_FLAPS = 1000
RESET_S = 0.005  # how long the simulation has a NIC down whose connections end: until both ends know

_CUT = re.compile(r"(?P<component>[^=@]+)(=(?P<kind>[^@]+))?@(?P<when>.+)")


class Kind(StrEnum):
    """How a NIC's traffic is stopped, or slowed."""

    LINK_DOWN = "link-down"
    PORT_DOWN = "port-down"
    SILENT = "silent"
    RESET = "reset"
    RATE = "rate"
    UP = "up"


@dataclass(frozen=True)
class Action:
    """One thing done to a NIC, `after_s` seconds after its cut began. `fraction` is the rate that is left."""

    nic: int
    kind: Kind
    after_s: float = 0.0
    fraction: float = 0.0

    @property
    def left(self) -> float:
        """The part of its rate that the NIC has from then on."""
        if self.kind in (Kind.UP, Kind.RESET):
            return 1.0
        return self.fraction if self.kind is Kind.RATE else 0.0


@dataclass(frozen=True)
class Cut:
    """What is done to one NIC, in order of time, from `at_s` on or from the byte `at_bytes` of the collective on."""

    nic: int
    actions: tuple[Action, ...]
    at_s: float = 0.0
    at_bytes: float | None = None

    @property
    def before(self) -> bool:
        """Whether it is there before the first collective, and known."""
        return self.at_bytes is None and self.at_s == 0.0

    @property
    def lasting(self) -> bool:
        """Whether the NIC stays as its first action leaves it."""
        return len(self.actions) == 1


@dataclass(frozen=True)
class Done:
    """An action that was carried out: seconds since the start of its collective, and bytes that had passed on the NIC
    since then, in the larger of its two directions, as its port counts them."""

    action: Action
    time_s: float
    passed_bytes: float


def parse_script(texts: Sequence[str], cluster: Cluster) -> tuple[Cut, ...]:
    """The cuts of a script, one for every NIC that it names.

    Raises:
        InputError: a line is not of the form, or names what the lab does not have.
    """
    return tuple(cut for text in texts for cut in _parse_line(text.strip(), cluster))


def timeline_of(cuts: Sequence[Cut], began_s: Mapping[int, float], pattern: str) -> Timeline:
    """The cuts as the simulation knows them; `began_s` says when each (by position) began, where it is not the time
    that was asked for."""
    events: list[Event] = []
    for position, cut in enumerate(cuts):
        start = began_s.get(position, cut.at_s)
        counted = cut.at_bytes if position not in began_s else None
        for action in cut.actions:
            left = 0.0 if action.kind is Kind.RESET else action.left
            event = Event(action.nic, left, component=_COMPONENTS.get(action.kind, Component.NIC))
            at_bytes = counted if action.after_s == 0 else None
            events.append(replace(event, time_s=start + action.after_s, at_bytes=at_bytes))
            if action.kind is Kind.RESET:
                events.append(replace(event, fraction=1.0, time_s=start + action.after_s + RESET_S))
    return sorted_timeline(events, pattern)


def known_fractions(cuts: Sequence[Cut], n_nics: int) -> tuple[float, ...]:
    """The rate fraction of each NIC before the first collective."""
    state = [1.0] * n_nics
    for cut in cuts:
        if cut.before:
            state[cut.nic] = cut.actions[0].left
    return tuple(state)


_COMPONENTS = {Kind.PORT_DOWN: Component.CABLE, Kind.SILENT: Component.PATH}


def _parse_line(text: str, cluster: Cluster) -> list[Cut]:
    match = _CUT.fullmatch(text)
    if match is None:
        raise InputError(f"failure {text!r}: write {FORM}")
    try:
        nics = nics_of(cluster, match["component"])
        actions = _actions(match["kind"] or Kind.LINK_DOWN)
        start, _, until = match["when"].partition("..")
        at_s, at_bytes = _when(start)
        if until:
            actions = _ended(actions, until, at_s, at_bytes)
        if actions[0].kind is Kind.RESET and (until or (at_bytes is None and at_s == 0)):
            raise InputError("a reset is over at once; give it a time above 0 or a byte count, and no end")
        return [Cut(nic, tuple(replace(one, nic=nic) for one in actions), at_s, at_bytes) for nic in nics]
    except InputError as error:
        raise InputError(f"failure {text!r}: {error}") from None


def _when(text: str) -> tuple[float, float | None]:
    if text.startswith("bytes:"):
        passed = parse_size(text.removeprefix("bytes:"))
        if passed <= 0:
            raise InputError("write a number of bytes above 0")
        return 0.0, float(passed)
    at_s = parse_duration(text)
    if at_s < 0:
        raise InputError("it begins before the first collective; write 0 for what is there from the start")
    return at_s, None


def _ended(actions: list[Action], until: str, at_s: float, at_bytes: float | None) -> list[Action]:
    if len(actions) > 1:
        raise InputError("a flap has an end of its own; leave `until` away")
    if until.startswith("+"):
        lasts = parse_duration(until[1:])
    elif at_bytes is None:
        lasts = parse_duration(until) - at_s
    else:
        raise InputError(f"a cut at a byte count ends some time after it began; write ..+{until}")
    if lasts <= 0:
        raise InputError(f"it ends at {until}, before it begins")
    return [*actions, Action(-1, Kind.UP, lasts)]


def _actions(text: str) -> list[Action]:
    kind, _, options = text.partition(":")
    if kind == "flap":
        return _flap(options)
    if kind == "rate":
        return [Action(-1, Kind.RATE, fraction=_number(options, "FRACTION", 0.01, 1.0))]
    if options or kind not in (Kind.LINK_DOWN, Kind.PORT_DOWN, Kind.SILENT, Kind.RESET):
        raise InputError(f"no kind {text!r}; write {KINDS}")
    return [Action(-1, Kind(kind))]


def _flap(options: str) -> list[Action]:
    parts = options.split(",")
    if len(parts) != 3:
        raise InputError(f"flap:{options}: write flap:PERIOD,DUTY,COUNT, for example flap:0.4,0.5,3")
    period = parse_duration(parts[0])
    if period <= 0:
        raise InputError(f"flap: PERIOD {parts[0]!r} must be above 0")
    up = _number(parts[1], "DUTY", 0.0, 1.0)
    if not parts[2].isdecimal() or not 1 <= int(parts[2]) <= MOST_FLAPS:
        raise InputError(f"flap: COUNT {parts[2]!r} is none from 1 to {MOST_FLAPS}")
    if not 0 < up < 1:
        raise InputError(f"flap: DUTY {parts[1]!r} must lie between 0 and 1")
    down = period * (1 - up)
    return [
        action
        for k in range(int(parts[2]))
        for action in (Action(-1, Kind.LINK_DOWN, k * period), Action(-1, Kind.UP, k * period + down))
    ]


def _number(text: str, what: str, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise InputError(f"{what} {text!r} is no number from {low:g} to {high:g}")
    return value
