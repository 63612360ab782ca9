"""What became of a course."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

NOBODY = -1
"""Stands for the incident where none is to blame: what a strategy costs on the healthy cluster."""


@dataclass(frozen=True)
class Outcome:
    """`done_s` seconds of the healthy job's work got done in `horizon_s`; `lost_s` has what each incident cost."""

    horizon_s: float
    done_s: float
    lost_s: Mapping[int, float]

    @property
    def lost_total_s(self) -> float:
        """Seconds of the healthy job that were lost."""
        return math.fsum(self.lost_s.values())

    @property
    def effective_time(self) -> float:
        """Work done over what the healthy job does in the same time."""
        return self.done_s / self.horizon_s
