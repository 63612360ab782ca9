"""Weighted max-min shares. Each system is written as its equations, then solved by hand or by an independent LP."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from r2cc_simai.engine import _core


@dataclass(frozen=True)
class System:
    """Flow f takes `loads[f][p]` of port p for each unit of its rate, grows by `weights[f]`, up to `caps[f]`."""

    capacity: list[float]
    loads: list[dict[int, float]]
    weights: list[float]
    caps: list[float]

    def rates(self) -> list[float]:
        """What the engine answers."""
        return _core.max_min(
            self.capacity,
            offsets=np.cumsum([0] + [len(row) for row in self.loads], dtype=np.int64),
            ports=np.array([p for row in self.loads for p in row], dtype=np.int64),
            amounts=np.array([a for row in self.loads for a in row.values()], dtype=np.float64),
            weights=np.array(self.weights, dtype=np.float64),
            caps=np.array(self.caps, dtype=np.float64),
        )

    def scaled(self, c: float) -> "System":
        """The same system with every capacity and cap times c."""
        return System([c * x for x in self.capacity], self.loads, self.weights, [c * x for x in self.caps])


def solve(
    capacity: list[float],
    loads: list[dict[int, float]],
    weights: list[float] | None = None,
    caps: list[float] | None = None,
) -> list[float]:
    """Rates with equal weights and without caps unless given."""
    n = len(loads)
    return System(capacity, loads, weights or [1.0] * n, caps or [math.inf] * n).rates()


def test_flows_on_one_port_share_it_equally() -> None:
    """a + b + c = 12, a = b = c."""
    assert solve([12], [{0: 1}, {0: 1}, {0: 1}]) == pytest.approx([4, 4, 4])


def test_shares_follow_weights() -> None:
    """a + b = 12, a/1 = b/3."""
    assert solve([12], [{0: 1}, {0: 1}], weights=[1, 3]) == pytest.approx([3, 9])


def test_what_a_capped_flow_leaves_goes_to_the_others() -> None:
    """a + b + c = 12, a = 2 (its cap), b = c."""
    assert solve([12], [{0: 1}] * 3, caps=[2, math.inf, math.inf]) == pytest.approx([2, 5, 5])


def test_amounts_on_a_port_count_not_rates() -> None:
    """3a + b = 12, a = b: the first flow takes three bytes of the port for each byte of its progress."""
    assert solve([12], [{0: 3}, {0: 1}]) == pytest.approx([3, 3])


def test_the_classic_line_of_two_links() -> None:
    """Link 0: a + b = 10, link 1: a + c = 4. Link 1 fills first: a = c = 2, then b = 8."""
    assert solve([10, 4], [{0: 1, 1: 1}, {0: 1}, {1: 1}]) == pytest.approx([2, 8, 2])


def test_a_frozen_flow_frees_the_port_that_did_not_freeze_it() -> None:
    """Three levels. Port 0: a + b = 2, port 1: b + c = 6, port 2: c + d = 20; a = b = 1, c = 5, d = 15."""
    assert solve([2, 6, 20], [{0: 1}, {0: 1, 1: 1}, {1: 1, 2: 1}, {2: 1}]) == pytest.approx([1, 1, 5, 15])


def test_weights_and_amounts_together() -> None:
    """Port 0: 2a + b = 14, port 1: b + c = 10, a : b : c = 1 : 2 : 1 until frozen.

    theta_0 = 14 / (2*1 + 2) = 3.5, theta_1 = 10 / (2 + 1) = 10/3 is smaller: b = 20/3, c = 10/3, a = (14 - 20/3) / 2.
    """
    rates = solve([14, 10], [{0: 2}, {0: 1, 1: 1}, {1: 1}], weights=[1, 2, 1])
    assert rates == pytest.approx([11 / 3, 20 / 3, 10 / 3])


def test_two_ports_that_fill_at_once_freeze_all_their_flows() -> None:
    """Port 0: a + b = 6, port 1: b + c = 6: a = b = c = 3, none starved by the order of the ports."""
    assert solve([6, 6], [{0: 1}, {0: 1, 1: 1}, {1: 1}]) == pytest.approx([3, 3, 3])


def test_a_dead_port_stops_its_flows_alone() -> None:
    """Port 0 has capacity 0: a = b = 0; port 1: b + c = 8, so c = 8."""
    assert solve([0, 8], [{0: 1}, {0: 1, 1: 1}, {1: 1}]) == pytest.approx([0, 0, 8])


def test_a_port_without_limit_limits_nothing() -> None:
    """Port 0 is unlimited, port 1: b = 1; a grows on to its cap of 10 after b has stopped."""
    assert solve([math.inf, 1], [{0: 1}, {0: 1, 1: 1}], caps=[10, math.inf]) == pytest.approx([10, 1])


def test_a_flow_that_nothing_limits_is_infinite() -> None:
    """No port, no cap."""
    assert solve([1], [{}]) == [math.inf]


def stage1(n: int, x: float, weights: tuple[float, float]) -> float:
    """Time of R2CC's stage 1 with single-port members (D = B = 1): the later of its two rings.

    Global ring on (1-X)D over all n ports (the degraded one has 1-X), each byte loads each port 2(n-1)/n times;
    partial ring on XD over the n-1 healthy ports, 2(n-2)/(n-1) times. The one that ends first leaves its share.
    """
    work = [1 - x, x]
    loads = [dict.fromkeys(range(n), 2 * (n - 1) / n), dict.fromkeys(range(1, n), 2 * (n - 2) / (n - 1))]
    capacity = [1 - x] + [1.0] * (n - 1)
    both = solve(capacity, loads, weights=list(weights))
    first = min((0, 1), key=lambda f: work[f] / both[f])
    passed = work[first] / both[first]
    other = 1 - first
    alone = solve(capacity, [loads[other]])[0]
    return passed + (work[other] - both[other] * passed) / alone


@pytest.mark.parametrize("n", [4, 8, 16])
@pytest.mark.parametrize("x", [1 / 8, 1 / 4, 1 / 2])
def test_weights_in_proportion_to_bytes_give_stage_1_its_closed_form(n: int, x: float) -> None:
    """T1 = 2(n-1)/n * (1-Y)D / ((1-X)B) at Y = X, so 2(n-1)/n * D/B (R2CC paper, arXiv 2512.25059)."""
    assert stage1(n, x, (1 - x, x)) == pytest.approx(2 * (n - 1) / n, rel=1e-9)


def test_equal_weights_would_make_stage_1_a_sixth_longer() -> None:
    """n = 8, X = 1/4, equal weights; u = 2*7/8 = 7/4 and v = 2*6/7 = 12/7 loads a byte.

    A healthy port is full at a (u + v) = B, a = 28/97: the partial ring (1/4) ends at 97/112, the global one has
    3/4 - 1/4 = 1/2 left, which goes on at (3/4)/u = 3/7. In all 97/112 + 7/6 = 2.0327 against T1 = 7/4: 16% more.
    """
    equal = stage1(8, 0.25, (1, 1))
    assert equal == pytest.approx(97 / 112 + 7 / 6)
    assert equal / (7 / 4) == pytest.approx(1.16, abs=0.005)


def progressive_lp(system: System) -> list[float]:
    """Weighted max-min by linear programs: raise the common level, fix the flows that cannot rise above it, repeat.

    Independent of progressive filling: which flows are stuck is decided by maximising each flow alone.
    """
    n = len(system.loads)
    ports = np.zeros((len(system.capacity), n))
    for f, row in enumerate(system.loads):
        for p, amount in row.items():
            ports[p, f] = amount
    fixed: dict[int, float] = {}
    while len(fixed) < n:
        free = [f for f in range(n) if f not in fixed]
        # Variables: the n rates, then the level. Rates of free flows are at least weight * level.
        rise = np.zeros((len(free), n + 1))
        for row, f in enumerate(free):
            rise[row, f], rise[row, n] = -1, system.weights[f]
        matrix = np.vstack([np.hstack([ports, np.zeros((len(ports), 1))]), rise])
        limits = np.concatenate([system.capacity, np.zeros(len(free))])
        bounds = [(fixed[f], fixed[f]) if f in fixed else (0, system.caps[f]) for f in range(n)] + [(0, None)]
        level = linprog([0.0] * n + [-1.0], A_ub=matrix, b_ub=limits, bounds=bounds).x[n]
        slack = 1e-7 * max(1.0, level)
        bounds[n] = (level, level)
        stuck = []
        for f in free:
            goal = np.zeros(n + 1)
            goal[f] = -1
            best = linprog(goal, A_ub=matrix, b_ub=limits + 1e-12, bounds=bounds)
            if best.x[f] <= system.weights[f] * (level + slack):
                stuck.append(f)
        assert stuck, "the program has a flow at its limit in every round"
        fixed |= {f: system.weights[f] * level for f in stuck}
    return [fixed[f] for f in range(n)]


def random_system(seed: int) -> System:
    """A few flows over a few ports with unequal amounts, weights and caps."""
    rng = np.random.default_rng(seed)
    ports, flows = int(rng.integers(1, 6)), int(rng.integers(1, 8))
    loads = []
    for _ in range(flows):
        used = rng.choice(ports, size=int(rng.integers(1, ports + 1)), replace=False)
        loads.append({int(p): float(rng.uniform(0.5, 3)) for p in used})
    caps = [float(rng.uniform(0.5, 5)) if rng.random() < 0.4 else 100.0 for _ in range(flows)]
    weights = [float(w) for w in rng.uniform(0.2, 4, flows)]
    return System([float(c) for c in rng.uniform(1, 20, ports)], loads, weights, caps)


@pytest.mark.parametrize("seed", range(25))
def test_random_systems_agree_with_linear_programming(seed: int) -> None:
    """Weighted max-min is unique, so two independent methods must meet."""
    system = random_system(seed)
    assert system.rates() == pytest.approx(progressive_lp(system), rel=1e-5)


@st.composite
def systems(draw: st.DrawFn) -> System:
    """Systems with whole-number loads, so that ties of ports and flows come up often."""
    ports = draw(st.integers(1, 5))
    rows = st.dictionaries(st.integers(0, ports - 1), st.sampled_from([1.0, 2.0, 3.0]), min_size=1)
    loads = draw(st.lists(rows, min_size=1, max_size=8))
    n = len(loads)
    numbers = st.sampled_from([0.5, 1.0, 2.0, 7.0])
    return System(
        draw(st.lists(st.sampled_from([0.0, 1.0, 6.0, 10.0, 1e11]), min_size=ports, max_size=ports)),
        loads,
        draw(st.lists(numbers, min_size=n, max_size=n)),
        draw(st.lists(st.sampled_from([0.0, 0.25, 3.0, math.inf]), min_size=n, max_size=n)),
    )


@given(systems())
def test_no_port_is_overfull_and_no_flow_could_have_more(system: System) -> None:
    """Feasible: sum_f a_fp r_f <= C_p. Saturated: every flow is at its cap or on a port that is full."""
    rates = system.rates()
    used = [0.0] * len(system.capacity)
    for row, rate in zip(system.loads, rates, strict=True):
        for p, amount in row.items():
            used[p] += amount * rate
    for load, capacity in zip(used, system.capacity, strict=True):
        assert load <= capacity * (1 + 1e-9)
    full = [load >= capacity * (1 - 1e-8) for load, capacity in zip(used, system.capacity, strict=True)]
    for row, rate, cap in zip(system.loads, rates, system.caps, strict=True):
        assert rate <= cap * (1 + 1e-9)
        assert rate >= cap * (1 - 1e-8) or any(full[p] for p in row)


@given(systems(), st.floats(1e-3, 1e6))
def test_all_capacities_times_c_give_all_rates_times_c(system: System, c: float) -> None:
    """The system has no unit of its own."""
    assert system.scaled(c).rates() == pytest.approx([c * r for r in system.rates()], rel=1e-6)


@given(systems(), st.randoms(use_true_random=False))
def test_the_order_of_the_flows_does_not_matter(system: System, random: object) -> None:
    """Rates belong to flows, not to positions."""
    order = list(range(len(system.loads)))
    random.shuffle(order)  # type: ignore[attr-defined]
    mixed = System(
        system.capacity,
        [system.loads[f] for f in order],
        [system.weights[f] for f in order],
        [system.caps[f] for f in order],
    )
    rates = system.rates()
    assert mixed.rates() == pytest.approx([rates[f] for f in order], rel=1e-7, abs=1e-12)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"ports": np.array([1])}, "no such port"),
        ({"ports": np.array([-1])}, "no such port"),
        ({"amounts": np.array([0.0])}, "amount"),
        ({"weights": np.array([0.0])}, "weight > 0"),
        ({"caps": np.array([math.nan])}, "cap >= 0"),
        ({"offsets": np.array([0, 2])}, "offsets"),
        ({"caps": np.array([1.0, 1.0])}, "unequal length"),
    ],
)
def test_an_impossible_system_is_refused(wrong: dict[str, np.ndarray], message: str) -> None:
    """One flow on port 0 of one port, with one thing wrong."""
    good = {
        "offsets": np.array([0, 1]),
        "ports": np.array([0]),
        "amounts": np.array([1.0]),
        "weights": np.array([1.0]),
        "caps": np.array([1.0]),
    }
    with pytest.raises(ValueError, match=message):
        _core.max_min([1.0], **{**good, **wrong})
