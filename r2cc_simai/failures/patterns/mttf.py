"""Drawn failures: every part fails and is repaired as a reliability table says (Monte Carlo)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from r2cc_simai.errors import InputError
from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.pattern import Site, pattern

if TYPE_CHECKING:
    import numpy as np

    from r2cc_simai.failures.reliability import FailureClass
    from r2cc_simai.failures.renewal import Outages

DAY_S = 86_400.0


@pattern(draws=True)
def mttf(
    site: Site,
    table: str = "llama3",
    scale: float = 1.0,
    mttr_h: float | None = None,
    only: str = "",
    days: float | None = None,
) -> Iterator[Incident]:
    """Every part fails and is repaired at the rates of a reliability table, drawn over the job's length.

    `table` is llama3, alibaba-hpn, alibaba-hpn-dual-tor or a YAML file. `scale` multiplies all failure rates, `mttr_h`
    replaces all mean repair times, `only` keeps some causes (joined with +), `days` is the length where the job has
    none. Each cause has random numbers of its own: the failures that `only` keeps are those of the whole table.
    """
    from r2cc_simai.failures.population import population_of
    from r2cc_simai.failures.reliability import load_table

    _above_zero(scale=scale, mttr_h=mttr_h, days=days)
    causes = load_table(table, site.base).components
    kept = _kept(only, list(causes), table)
    horizon_s = min(site.horizon_s, math.inf if days is None else days * DAY_S)
    if not math.isfinite(horizon_s):
        raise InputError("failures are drawn over the length of a job: give --hours, hours: in a sweep, or days=30")
    for (cause, one), random in zip(causes.items(), site.random.spawn(len(causes)), strict=True):
        if cause in kept:
            names = population_of(site.cluster, one.component)
            for component, begin_s, end_s, state in _drawn(one, random, names.count, horizon_s, scale, mttr_h):
                yield Incident(names.name(component), begin_s, end_s, state, cause)


def _drawn(
    one: FailureClass,
    random: np.random.Generator,
    count: int,
    horizon_s: float,
    scale: float,
    mttr_h: float | None,
) -> Iterator[tuple[int, float, float, float]]:
    """Component, begin, end and state of the failures of one cause on `count` components."""
    from r2cc_simai.failures.renewal import Repair, draw_outages, shares_lost

    repair = Repair((one.mttr_h if mttr_h is None else mttr_h) * 3600, one.repair, one.repair_sigma or 0.0)
    outages = draw_outages(random, count * one.parts, one.mttf_s / scale, repair, horizon_s)
    if one.parts > 1:
        yield from shares_lost(outages, one.parts)
    else:
        yield from _with_states(outages, one, random)


def _with_states(
    outages: Outages, one: FailureClass, random: np.random.Generator
) -> Iterator[tuple[int, float, float, float]]:
    states, shares = zip(*one.state, strict=True)
    drawn = random.choice(states, size=len(outages.part), p=[share / sum(shares) for share in shares])
    columns = (outages.part, outages.begin_s, outages.end_s, drawn)
    yield from zip(*(column.tolist() for column in columns), strict=True)


def _kept(only: str, causes: list[str], table: str) -> set[str]:
    kept = set(only.split("+")) if only else set(causes)
    unknown = sorted(kept - set(causes))
    if unknown:
        raise InputError(f"only={only}: {table} has no cause {unknown[0]!r} (allowed: {', '.join(causes)})")
    return kept


def _above_zero(**options: float | None) -> None:
    for key, number in options.items():
        if number is not None and not number > 0:
            raise InputError(f"{key}={number:g}: a number above 0 is wanted")
