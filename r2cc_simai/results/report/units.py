"""Numbers as people read them, with their unit. Exact values are in the CSV."""

from fractions import Fraction

DASH = "–"
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_DECIMAL = ("B/s", "kB/s", "MB/s", "GB/s", "TB/s")


def size(count: float, fixed: bool = False) -> str:
    """Return a number of bytes in binary units, four digits at most: `4 GiB`, `2.259 GiB`.

    `fixed` keeps zeros at the end, so that the numbers of a table column are alike.
    """
    return _scaled(count, 1024.0, _BINARY, fixed)


def rate(bytes_per_s: float, fixed: bool = False) -> str:
    """Return a bandwidth in decimal units: `3.53 GB/s`."""
    return _scaled(bytes_per_s, 1000.0, _DECIMAL, fixed)


def time(seconds: float, fixed: bool = False) -> str:
    """Return a time with four digits in min, s, ms or µs: `74.0 min`, `2.028 s`, `78.23 ms`, `38.45 µs`."""
    magnitude = abs(seconds)
    if magnitude >= 600.0:
        return f"{seconds / 60:.1f} min"
    if magnitude >= 0.99995 or magnitude == 0.0:
        return f"{_digits(seconds, fixed)} s"
    if magnitude >= 0.99995e-3:
        return f"{_digits(seconds * 1e3, fixed)} ms"
    return f"{_digits(seconds * 1e6, fixed)} µs"


def per_second(number: float, fixed: bool = False) -> str:
    """Return a number of things per second: `314,618/s`, `12.5/s`."""
    return f"{number:,.0f}/s" if abs(number) >= 1000.0 else f"{_digits(number, fixed)}/s"


def value(number: float | None, unit: str, fixed: bool = True) -> str:
    """Return a value of the results table; a dash where there is none."""
    if number is None:
        return DASH
    known = {"s": time, "B": size, "B/s": rate, "1/s": per_second}
    return (
        known[unit](number, fixed) if unit in known else f"{_digits(number, fixed)} {unit.removesuffix('1')}".rstrip()
    )


def percent(number: float | None) -> str:
    """Return a percentage, with the decimals that its size deserves: `0.0019%`, `0.71%`, `57.1%`, `4340%`; `206,000×`
    beyond. Less than 0.0001% is no more than rounding."""
    if number is None:
        return DASH
    if number >= 10_000.0:
        return f"{float(f'{1 + number / 100:.3g}'):,.0f}×"
    if 1e-4 <= abs(number) < 0.01:
        return _signs(f"{float(f'{number:.2g}'):.6f}".rstrip("0")) + "%"
    decimals = 2 if abs(number) < 1.0 else 1 if abs(number) < 1000.0 else 0
    return _signs(f"{number:.{decimals}f}") + "%"


def more(number: float | None) -> str:
    """Return a percentage as an increase: `+57.1%`."""
    text = percent(number)
    if text.endswith("×"):
        return text
    return f"+{text}" if number is not None and number > 0.0 and text != "0%" else text


def error(number: float | None, unit: str = "%") -> str:
    """Return an error with its sign and two decimals: `+0.27%`, `−0.03%`, `+0.52 points`."""
    if number is None:
        return DASH
    return _signs(f"{number:+.2f}") + (unit if unit == "%" else f" {unit}")


def ratio(number: float) -> str:
    """Return a factor: `1.498×`."""
    return f"{number:.3f}×"


def fraction(number: float) -> str:
    """Return a lost fraction as people write it: `1/8`; decimals where no small fraction is meant."""
    near = Fraction(number).limit_denominator(64)
    return str(near) if abs(float(near) - number) < 1e-6 else f"{number:.4g}"


def _scaled(number: float, step: float, names: tuple[str, ...], fixed: bool) -> str:
    power = 0
    while abs(number) >= step * 0.99995 and power < len(names) - 1:
        number /= step
        power += 1
    return f"{_digits(number, fixed and power > 0)} {names[power]}"


def _digits(number: float, fixed: bool) -> str:
    """Return four significant digits without an exponent; without zeros that say nothing unless `fixed`."""
    if abs(number) >= 999.95 or number == 0.0:
        return f"{number:.0f}"
    before_point = len(f"{abs(number):.0f}") if abs(number) >= 1.0 else 1
    text = f"{number:.{4 - before_point}f}" if abs(number) >= 0.1 else f"{number:.6f}"
    return text if fixed else text.rstrip("0").rstrip(".")


def _signs(text: str) -> str:
    if float(text) == 0.0:
        return "0"
    return text.replace("-", "−")
