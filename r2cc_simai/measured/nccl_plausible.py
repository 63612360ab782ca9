"""Whether the numbers of a row of nccl-tests can have been printed together."""

import math

from r2cc_simai.measured.nccl_table import TableLayout


def plausible(words: list[str], layout: TableLayout) -> bool:
    """Whether the numbers of a row belong together: whole elements, and bandwidth = size / time as printed.

    With t the time and a the bandwidth, both within one unit of their last digit: size / (t + dt) <= a + da and
    size / (t - dt) >= a - da.
    """
    size, count = int(words[0]), int(words[1])
    if count and size % count:
        return False
    for half in layout.halves:
        time_us, algbw = words[half], words[half + 1]
        if time_us == "N/A":
            continue
        try:
            (t, dt), (a, da) = _printed(time_us), _printed(algbw)
        except ValueError:
            return False
        slowest, fastest = size / (t + dt) / 1e3, (size / (t - dt) / 1e3 if t > dt else math.inf)
        if not slowest - da <= a <= fastest + da:
            return False
    return True


def _printed(text: str) -> tuple[float, float]:
    """A number and one unit of its last digit."""
    mantissa, _, exponent = text.partition("e")
    decimals = len(mantissa.partition(".")[2])
    return float(text), 10.0 ** (int(exponent or 0) - decimals)
