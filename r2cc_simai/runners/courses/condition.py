"""What a job sees of the cluster while time goes on, and which incidents are to blame for it."""

from collections.abc import Iterable, Mapping

from r2cc_simai.failures.timeline import Component
from r2cc_simai.runners.courses.costs import Fractions
from r2cc_simai.runners.courses.covers import Change, Cover


class Condition:
    """The covers that are under way. A NIC has the least state of those that hold it.

    `hold` keeps NICs that are down as they are whatever is repaired, since the job has dropped what hangs on them;
    `renew` ends that, and what working NICs a strategy does not use. `replace` puts spare parts in the place of all
    that has failed so far.
    """

    def __init__(self) -> None:
        self._on: dict[int, list[Cover]] = {}
        self._held: dict[int, tuple[int, ...]] = {}
        self._ignored: set[int] = set()  # ids of covers whose end means nothing any more
        self._fractions: Fractions = {}

    @property
    def fractions(self) -> Fractions:
        """A copy of the present state."""
        return dict(self._fractions)

    @property
    def blamed(self) -> tuple[int, ...]:
        """The incidents that hold some NIC at the state that it has, ascending."""
        found: set[int] = set()
        for nic, fraction in self._fractions.items():
            found.update(self._blamed(nic, fraction))
        return tuple(sorted(found))

    def apply(self, change: Change) -> Mapping[int, Component]:
        """Begins and ends covers; returns the part that changed on each NIC whose state is another one now."""
        touched: dict[int, list[Cover]] = {}
        for cover in change.ends:
            if id(cover) in self._ignored:
                continue
            for nic in cover.nics:
                self._on[nic].remove(cover)
                touched.setdefault(nic, []).append(cover)
        for cover in change.begins:
            for nic in cover.nics:
                self._on.setdefault(nic, []).append(cover)
                touched.setdefault(nic, []).append(cover)
        before = self._fractions.copy()
        self._see(touched)
        return {
            nic: _reason(covers, before.get(nic, 1.0), self._fractions.get(nic, 1.0))
            for nic, covers in touched.items()
            if before.get(nic, 1.0) != self._fractions.get(nic, 1.0)
        }

    def hold(self) -> None:
        """Keeps all NICs that are down now as they are."""
        for nic, fraction in self._fractions.items():
            if fraction == 0:
                self._held[nic] = self._blamed(nic, 0.0)

    def renew(self) -> None:
        """The job starts anew: it uses whatever works."""
        held, self._held = self._held, {}
        unused = [cover for covers in self._on.values() for cover in covers if cover.unused]
        self._ignored.update(map(id, unused))
        for cover in unused:
            for nic in cover.nics:
                self._on[nic].remove(cover)
        self._see({*held, *(nic for cover in unused for nic in cover.nics)})

    def replace(self) -> None:
        """All works again, and the repair of what has failed so far means nothing."""
        self._ignored.update(id(cover) for covers in self._on.values() for cover in covers)
        self._on, self._held, self._fractions = {}, {}, {}

    def _see(self, nics: Iterable[int]) -> None:
        for nic in nics:
            held = 0.0 if nic in self._held else 1.0
            fraction = min([cover.state for cover in self._on.get(nic, ())], default=1.0)
            if min(held, fraction) < 1:
                self._fractions[nic] = min(held, fraction)
            else:
                self._fractions.pop(nic, None)

    def _blamed(self, nic: int, fraction: float) -> tuple[int, ...]:
        if nic in self._held:
            return self._held[nic]
        return tuple(sorted({cover.incident for cover in self._on[nic] if cover.state == fraction}))


def _reason(covers: list[Cover], before: float, after: float) -> Component:
    """The part of the cover that brought the new state, or else of the one that had held the old one."""
    wanted = after if after < before else before
    return next((cover.part for cover in covers if cover.state == wanted), covers[0].part)
