"""Times of an event log: seconds, or ISO 8601 with or without a zone, all of one kind."""

import math
import re
from datetime import UTC, datetime
from enum import StrEnum

from r2cc_simai.errors import InputError

_SECONDS = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}.*", re.DOTALL)
_EPOCH = datetime(1970, 1, 1)


class Clock(StrEnum):
    """How a log writes its times."""

    SECONDS = "seconds"
    LOCAL = "ISO 8601 without a zone"
    ZONED = "ISO 8601 with a zone"


def read_time(text: str) -> tuple[float, Clock]:
    """Seconds of a time, exact to the microsecond, and how it is written; dates count from 1970.

    Raises:
        InputError: it is none.
    """
    try:
        if _SECONDS.fullmatch(text):
            seconds = float(text)
            if math.isfinite(seconds):
                return seconds, Clock.SECONDS
        elif _DATE.fullmatch(text):
            moment = datetime.fromisoformat(text)
            if moment.tzinfo is None:
                return (moment - _EPOCH).total_seconds(), Clock.LOCAL
            return (moment - _EPOCH.replace(tzinfo=UTC)).total_seconds(), Clock.ZONED
    except (ValueError, OverflowError):
        pass
    raise InputError(f"{text!r} is no time; write 2026-11-30T08:15:00, with Z or +01:00 behind it, or seconds")
