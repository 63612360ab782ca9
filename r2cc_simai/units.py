"""Conversions between what people write and the project's own units: bytes, seconds, bytes per second."""

import math
import re

from r2cc_simai.errors import InputError

_BINARY = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([KMGTP])(?:i?B)?|B)?", re.IGNORECASE)
_DURATION = re.compile(r"(-?\d+(?:\.\d+)?(?:e-?\d+)?)\s*(s|ms|us|µs|min|h)?")
_SECONDS = {None: 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "min": 60.0, "h": 3600.0}


def gbps_to_bytes_per_s(rate_gbps: float) -> float:
    """Bytes per second of a rate in Gb/s (10^9 bits per second)."""
    return rate_gbps * 1e9 / 8


def parse_size(text: str) -> int:
    """Bytes of `8`, `64K`, `16MiB`, `4G`: suffixes are powers of 1024, as in nccl-tests.

    Raises:
        InputError: the text is no size.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{text!r}: not a size; write bytes, or a number with K, M, G, T or P (powers of 1024)")
    return round(float(match[1]) * _BINARY[(match[2] or "").upper()])


def parse_duration(text: str) -> float:
    """Seconds of `0.528`, `970ms`, `48us`, `10min`.

    Raises:
        InputError: the text is no duration.
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{text!r}: not a time; write seconds, or a number with us, ms, s, min or h")
    seconds = float(match[1]) * _SECONDS[match[2]]
    if not math.isfinite(seconds):
        raise InputError(f"{text!r}: not a time; it is beyond all measure")
    return seconds


def format_size(size: float) -> str:
    """`4 GiB`, `1.5 MiB`, `8 B`."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(size) < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} PiB"


def format_time(seconds: float) -> str:
    """`2.028 s`, `38.45 us`, `1.7 ms`."""
    for limit, scale, unit in ((1e-3, 1e6, "us"), (1.0, 1e3, "ms"), (600.0, 1.0, "s")):
        if abs(seconds) < limit:
            return f"{seconds * scale:.4g} {unit}"
    return f"{seconds / 60:.4g} min"


def format_rate(bytes_per_s: float) -> str:
    """`3.53 GB/s` (10^9 bytes per second, as nccl-tests prints)."""
    return f"{bytes_per_s / 1e9:.4g} GB/s"
