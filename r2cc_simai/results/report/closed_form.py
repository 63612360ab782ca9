"""The closed forms that the report prints beside simulated numbers.

n ring members, X = lost fraction of the degraded one's bandwidth, Y = fraction of the data that goes by the
partial ring of the healthy ones. Times are in units of D/B (bytes per rank over a member's bandwidth per
direction); K pipelined chunks, K -> infinity by default. Source: R2CC, arXiv 2512.25059; the bound agrees
with OptCC, arXiv 2606.01680.
"""

import math


def healthy_time(n: int) -> float:
    """Fault-free ring: T0 = 2(n-1)/n."""
    return 2.0 * (n - 1) / n


def r2cc_time(n: int, x: float, y: float, k: float = math.inf) -> float:
    """R2CC-AllReduce: T(Y) = max(T1, T2) + T3.

    T1 = 2(n-1)/n (1-Y)/(1-X), T2 = 2(n-2)/(n-1) Y/X, T3 = (1+1/K) Y/(1-X).
    """
    t1 = healthy_time(n) * (1.0 - y) / (1.0 - x)
    t2 = 2.0 * (n - 2) / (n - 1) * y / x
    t3 = (1.0 + 1.0 / k) * y / (1.0 - x)
    return max(t1, t2) + t3


def best_split(n: int, x: float) -> float:
    """Y* = X(n-1)^2 / (X(n-1)^2 + (1-X)n(n-2)), where T1 = T2."""
    return x * (n - 1) ** 2 / (x * (n - 1) ** 2 + (1.0 - x) * n * (n - 2))


def split_gap_pct(n: int, x: float) -> float:
    """Table 1: 100 (T(X) - T(Y*)) / T(Y*), in percent."""
    best = r2cc_time(n, x, best_split(n, x))
    return 100.0 * (r2cc_time(n, x, x) / best - 1.0)


def bound_time(n: int, x: float) -> float:
    """Lower bound of any AllReduce with one degraded member: max(1/(1-X), 2(n-1)/(n-X))."""
    return max(1.0 / (1.0 - x), 2.0 * (n - 1) / (n - x))
