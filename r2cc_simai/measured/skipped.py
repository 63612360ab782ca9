"""What a reader passed over in a log, said in a few lines."""

from dataclasses import dataclass, field
from itertools import groupby

from r2cc_simai.errors import InputError

MOST_PLACES = 5
"""Places that are named one by one for a reason; more are summed up in one line."""


@dataclass
class Skipped:
    """Lines that were not read, by reason, and the first complaint, for a log in which nothing could be read."""

    name: str
    first: InputError | None = None
    _lines: dict[str, list[int]] = field(default_factory=dict)
    _also: list[str] = field(default_factory=list)

    def line(self, number: int, reason: str, complaint: InputError | None = None) -> None:
        """Counts a line, from 1, as skipped."""
        self._lines.setdefault(reason, []).append(number)
        self.first = self.first or complaint

    def remark(self, text: str, complaint: InputError | None = None) -> None:
        """Keeps a remark of more than one line's reach."""
        self._also.append(text)
        self.first = self.first or complaint

    @property
    def notes(self) -> tuple[str, ...]:
        """One line for each stretch of lines skipped for the same reason, or one in all where there are many."""
        found = list(self._also)
        for reason, numbers in self._lines.items():
            places = list(_stretches(sorted(numbers)))
            if len(places) > MOST_PLACES:
                where = f"{len(numbers)} lines between {min(numbers)} and {max(numbers)}"
                found.append(f"{self.name}: {where} skipped: {reason}")
            else:
                found += [f"{self.name}: {place} skipped: {reason}" for place in places]
        return tuple(found)


def _stretches(numbers: list[int]) -> list[str]:
    """`line 3`, `lines 7-9`: runs of numbers without a gap."""
    places = []
    for _, run in groupby(enumerate(dict.fromkeys(numbers)), key=lambda pair: pair[1] - pair[0]):
        stretch = [number for _, number in run]
        first, last = stretch[0], stretch[-1]
        places.append(f"line {first}" if first == last else f"lines {first}-{last}")
    return places
