"""How long a job goes on, and how often it saves what it has done."""

import math
from dataclasses import dataclass

from r2cc_simai.errors import InputError

HOUR_S = 3600.0


@dataclass(frozen=True)
class Course:
    """A job that goes on for `hours` and makes a checkpoint every `checkpoint_min`, at no cost.

    Raises:
        InputError: one of them is not a number above 0.
    """

    hours: float
    checkpoint_min: float

    def __post_init__(self) -> None:
        for key, value in (("hours", self.hours), ("checkpoint_min", self.checkpoint_min)):
            if not 0 < value < math.inf:
                raise InputError(f"{key}: {value:g}; write a number above 0")

    @property
    def horizon_s(self) -> float:
        """The length in seconds."""
        return self.hours * HOUR_S

    @property
    def checkpoint_s(self) -> float:
        """Seconds from one checkpoint to the next."""
        return self.checkpoint_min * 60.0

    @property
    def label(self) -> str:
        """What rows say of it behind the workload."""
        return f"hours={self.hours:g} checkpoint_min={self.checkpoint_min:g}"
