"""Table 1 of the R2CC paper (arXiv 2512.25059) to every printed digit, from its equations and by simulation.

T1 = 2(n-1)/n (1-Y)D/((1-X)B)    T2 = 2(n-2)/(n-1) YD/(XB)    T3 = (1+1/K) YD/((1-X)B)    T(Y) = max(T1,T2) + T3
Y* = X(n-1)^2 / (X(n-1)^2 + (1-X)n(n-2))         g(n,X) = (T(X) - T(Y*)) / T(Y*)
"""

import csv

import pytest

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.collectives.r2cc_allreduce import optimal_y
from r2cc_simai.paths import published_dir

GIB = 2**30
TABLE = [
    (int(row["n"]), float(row["x"]), row["gap_pct"])
    for row in csv.DictReader((published_dir() / "table1.csv").read_text().splitlines())
]


def stage1(n, x, y):
    """max(T1, T2) in units of D/B."""
    return max(2 * (n - 1) / n * (1 - y) / (1 - x), 2 * (n - 2) / (n - 1) * y / x)


def total(n, x, y, k=float("inf")):
    """T(Y) in units of D/B."""
    return stage1(n, x, y) + (1 + 1 / k) * y / (1 - x)


def best(n, x):
    """Y*."""
    return x * (n - 1) ** 2 / (x * (n - 1) ** 2 + (1 - x) * n * (n - 2))


def as_printed(value, printed):
    """A percentage with as many digits as the paper prints."""
    return f"{value:.{len(printed.partition('.')[2])}f}"


def test_the_published_table_is_complete():
    """n = 4, 16, 64 by X = 1/8, 1/4, 1/2."""
    assert [(n, x) for n, x, _ in TABLE] == [(n, x) for n in (4, 16, 64) for x in (1 / 8, 1 / 4, 1 / 2)]


@pytest.mark.parametrize(("n", "x", "printed"), TABLE)
def test_gap_from_the_equations(n, x, printed):
    """With the project's own Y*."""
    y = optimal_y(x, n, 1)
    assert as_printed(100 * (total(n, x, x) / total(n, x, y) - 1), printed) == printed


@pytest.mark.parametrize(("n", "x", "printed"), TABLE)
def test_gap_by_simulation(n, x, printed, simulate):
    """K -> infinity from two runs: T(K) = stage 1 + (1 + 1/K) stage 2, so T(inf) = 2 T(2K) - T(K) cancels 1/K.

    16 TiB, so that the chunks which fill the pipeline do not show.
    """
    cluster = load_cluster(f"uniformx{n}").zero_latency()
    size = 2**44

    def limit(y):
        once, twice = (
            simulate(cluster, f"r2cc-allreduce:k={k},y={y}", size, lost={0: 1 - x}).elapsed_s for k in (1, 2)
        )
        return 2 * twice - once

    assert as_printed(100 * (limit("x") / limit("opt") - 1), printed) == printed


@pytest.mark.parametrize("n", [3, 4, 8, 64])
@pytest.mark.parametrize("x", [0.01, 1 / 8, 1 / 2, 0.9])
def test_the_optimum_is_where_both_rings_of_stage_1_end_together(n, x):
    """T1(Y*) = T2(Y*); p ranks of which g are degraded generalise n and 1 (p = n, g = 1 is the paper's formula)."""
    y = optimal_y(x, n, 1)
    assert y == pytest.approx(best(n, x))
    assert 2 * (n - 1) / n * (1 - y) / (1 - x) == pytest.approx(2 * (n - 2) / (n - 1) * y / x)
