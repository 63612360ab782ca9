"""Carrying out the cuts of a script while the ranks work."""

import math
import time
from collections.abc import Sequence

from r2cc_simai.lab.cuts import Action, Cut, Done, Kind
from r2cc_simai.lab.world import World

SOONEST_POLL_S = 0.0005
"""How often a NIC's counter is read at most while a byte count is waited for: 6 KB at 100 Mb/s."""


class Script:
    """Cuts that are carried out when they are due. `began_s` says when each (by position) began, `done` all that was
    done, `left` the part of its rate that each NIC has, and `dead` those that carry nothing."""

    def __init__(self, world: World, cuts: Sequence[Cut]) -> None:
        self._world = world
        self._cuts = cuts
        self._start_s = math.inf
        self._base = dict.fromkeys((cut.nic for cut in cuts), (0, 0))
        self._ahead: list[list[Action]] = [list(cut.actions) for cut in cuts]
        self.began_s: dict[int, float] = {}
        self.done: list[Done] = []
        self.left: dict[int, float] = {}

    def apply_before(self) -> None:
        """Does what is there before the first collective."""
        for position, cut in enumerate(self._cuts):
            if cut.before:
                self.began_s[position] = 0.0
                self._carry_out(self._ahead[position].pop(0))

    def start(self, at_s: float) -> None:
        """Times and byte counts are from now on those of a collective that starts at `at_s`."""
        self._start_s = at_s
        self._base = {nic: self._world.interface_bytes(nic) for nic in self._base}

    def poll(self, now_s: float) -> float:
        """Does what is due and returns when there may be more to do."""
        waking = [self._advance(position, now_s) for position in range(len(self._cuts))]
        return min(waking, default=math.inf)

    @property
    def finished(self) -> bool:
        """Whether all has been done."""
        return not any(self._ahead)

    @property
    def dead(self) -> frozenset[int]:
        """NICs that carry nothing."""
        return frozenset(nic for nic, left in self.left.items() if left == 0)

    def _advance(self, position: int, now_s: float) -> float:
        actions = self._ahead[position]
        if not actions:
            return math.inf
        if position not in self.began_s:
            wait_s = self._until_begin(self._cuts[position], now_s)
            if wait_s > 0:
                return now_s + wait_s
            self.began_s[position] = self._carry_out(actions.pop(0))
            return now_s
        due = self._start_s + self.began_s[position] + actions[0].after_s
        if due > now_s:
            return due
        self._carry_out(actions.pop(0))
        return now_s

    def _until_begin(self, cut: Cut, now_s: float) -> float:
        """Seconds until the cut may have to begin; 0: now. Never before the collective has its start."""
        if math.isinf(self._start_s):
            return math.inf
        if cut.at_bytes is None:
            return max(0.0, self._start_s + cut.at_s - now_s)
        missing = cut.at_bytes - self._passed(cut.nic)
        if missing <= 0:
            return 0.0
        return max(SOONEST_POLL_S, missing / self._world.cluster.nics[cut.nic].rate / 2)

    def _passed(self, nic: int) -> int:
        now = self._world.interface_bytes(nic)
        return max(now[0] - self._base[nic][0], now[1] - self._base[nic][1])

    def _carry_out(self, action: Action) -> float:
        """Does it; returns when it had been done, in seconds since the collective's start."""
        nic = action.nic
        passed = self._passed(nic)
        match action.kind:
            case Kind.LINK_DOWN:
                self._world.set_link(nic, False)
            case Kind.PORT_DOWN:
                self._world.set_port(nic, False)
            case Kind.SILENT:
                self._world.set_silent(nic, True)
            case Kind.RESET:
                self._world.end_connections(nic)
            case Kind.RATE:
                self._world.set_rate(nic, action.fraction)
            case Kind.UP:
                self._world.raise_up(nic)
        self.left[nic] = action.left
        done_s = max(0.0, time.monotonic() - self._start_s)
        self.done.append(Done(action, done_s, float(passed)))
        return done_s
