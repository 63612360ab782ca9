"""How often a healthy path is called broken because answers wait behind data.

An answer leaves a NIC port behind the data that waits there. The port is an M/D/1 queue: pieces of `piece_bytes` (a
chunk, since a NIC serves a posted message before the next) arrive at random, the port is busy a fraction u of the time
and needs s = piece_bytes / rate for each. With t the deadline in units of s, the share of answers that are late is

    P(W > t) = 1 - (1-u) sum_{k=0}^{floor(t)} (-u(t-k))^k / k! e^{u(t-k)}           (Erlang 1909)
    P(W > t) ~ (1-u) / (u e^h - 1) e^{-h t},  u (e^h - 1) = h                        (Cramer-Lundberg, for larger t)

The way there is free: a probe is small and its own NIC sends it between pieces. An alarm needs m late answers in a row,
one tried every I seconds; with q = P(W > t) for each, and a new count after an alarm,

    alarms per second = (1-q) q^m / ((1 - q^m) I)

(the mean number of trials up to m failures in a row is (1 - q^m) / ((1-q) q^m): Feller, An Introduction to Probability
Theory, volume 1, XIII.7). That takes answers as independent, which they are where I is long against the time s/(1-u)^2
over which the queue forgets. Below that a late answer is mostly followed by another one, and alarms are more: at most
q / (m I) a second, since each takes m late answers. `simulate_alarms` counts them on the queue itself.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.spec import ProbesSpec, RetryTimeoutSpec
from r2cc_simai.errors import InputError

HOUR_S = 3600.0
_EXACT_UP_TO = 6.0  # deadlines in service times; beyond, the asymptote is closer than the alternating sum's rounding
_BATCH = 200_000  # trials of a simulation at a time


@dataclass(frozen=True)
class Queue:
    """A NIC port under load: `utilisation` u in [0, 1), and the seconds that one piece of data takes to pass."""

    utilisation: float
    service_s: float

    def __post_init__(self) -> None:
        if not 0 <= self.utilisation < 1:
            raise InputError(f"utilisation {self.utilisation:g}: write a number from 0 to below 1")
        if not self.service_s > 0:
            raise InputError(f"service time {self.service_s:g} s: it must be above 0")

    @property
    def forgets_s(self) -> float:
        """The time scale on which the queue's length is forgotten, s / (1-u)^2."""
        return self.service_s / (1 - self.utilisation) ** 2


@dataclass(frozen=True)
class Trials:
    """What raises an alarm: `misses` answers in a row later than `deadline_s`, one tried each `interval_s`."""

    interval_s: float
    deadline_s: float
    misses: int


def port_queue(cluster: Cluster, utilisation: float) -> Queue:
    """The port of the cluster's slowest NIC, with pieces of the cluster's chunk.

    Raises:
        InputError: the utilisation is not in [0, 1).
    """
    return Queue(utilisation, cluster.chunk_bytes / min(nic.payload_rate for nic in cluster.nics))


def trials_of(cluster: Cluster) -> Trials | None:
    """What raises an alarm under the cluster's mechanism. None: nothing that a queue can delay.

    A transport's retries are trials whose deadline and interval are its timeout.
    """
    match cluster.spec.failover.detection:
        case ProbesSpec(interval_ms=interval, timeout_ms=timeout, misses=misses):
            return Trials(interval * 1e-3, timeout * 1e-3, misses)
        case RetryTimeoutSpec(timeout_ms=timeout, retries=retries):
            return Trials(timeout * 1e-3, timeout * 1e-3, retries + 1)
        case _:
            return None


def late_share(queue: Queue, deadline_s: float) -> float:
    """The share of answers that wait longer than a deadline, P(W > t)."""
    u, t = queue.utilisation, deadline_s / queue.service_s
    if u == 0:
        return 0.0
    decay = _decay(u)
    asymptote = (1 - u) / (u * math.exp(decay) - 1) * math.exp(-decay * t)
    if t > _EXACT_UP_TO or asymptote < 1e-9:
        return asymptote
    return max(0.0, 1 - (1 - u) * sum(_term(u, t, k) for k in range(math.floor(t) + 1)))


def alarms_per_hour(queue: Queue, trials: Trials) -> float:
    """False alarms per NIC-hour, for answers that are late independently of each other."""
    q = late_share(queue, trials.deadline_s)
    if q <= 0:
        return 0.0
    return HOUR_S / trials.interval_s * (1 - q) * q**trials.misses / (1 - q**trials.misses)


def most_alarms_per_hour(queue: Queue, trials: Trials) -> float:
    """False alarms per NIC-hour that no dependence between answers can exceed."""
    return HOUR_S / trials.interval_s * late_share(queue, trials.deadline_s) / trials.misses


def simulate_alarms(queue: Queue, trials: Trials, hours: float, seed: int = 0) -> float:
    """False alarms per NIC-hour, counted on the queue itself with random arrivals.

    The wait of an answer is the work that the port has before it. Each trial starts from what the one before left.

    Raises:
        InputError: nothing would be simulated, or more than 10^9 trials.
    """
    n = round(hours * HOUR_S / trials.interval_s)
    if not 1 <= n <= 1e9:
        raise InputError(f"{hours:g} NIC-hours are {n} trials; write what makes 1 to 10^9 of them")
    rng = np.random.default_rng(seed)
    step = trials.interval_s / queue.service_s
    limit = trials.deadline_s / queue.service_s
    work, run, alarms = 0.0, 0, 0
    for begin in range(0, n, _BATCH):
        waits = _waits(rng, queue.utilisation, step, min(_BATCH, n - begin), work)
        work = float(waits[-1])
        late = waits > limit
        alarms, run = _count(late, trials.misses, alarms, run)
    return alarms / (n * trials.interval_s / HOUR_S)


def _waits(
    rng: np.random.Generator, utilisation: float, step: float, n: int, work: float
) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """The work before each of `n` trials, one every `step` service times, after one that found `work`.

    Work rises by 1 with an arrival and falls by 1 per unit of time, not below 0: it is the net input less its minimum.
    """
    times = np.arange(1, n + 1) * step
    arrivals = np.sort(rng.uniform(0.0, n * step, rng.poisson(utilisation * n * step)))
    before = work + np.arange(len(arrivals)) - arrivals  # net input just before each arrival
    lowest = np.minimum.accumulate(np.minimum(before, 0.0)) if len(arrivals) else np.zeros(0)
    count = np.searchsorted(arrivals, times)
    net = work + count - times
    floor = np.concatenate(([0.0], lowest))[count]
    return np.asarray(net - np.minimum(floor, np.minimum(net, 0.0)))


def _count(late: "np.ndarray[tuple[int], np.dtype[np.bool_]]", misses: int, alarms: int, run: int) -> tuple[int, int]:
    """Alarms after these trials, and how many late answers in a row the last of them ends."""
    last = -1
    for i in np.nonzero(late)[0]:
        run = run + 1 if i == last + 1 else 1
        last = int(i)
        if run == misses:
            alarms, run = alarms + 1, 0
    return alarms, run if last == len(late) - 1 else 0


def _decay(u: float) -> float:
    """h > 0 with u (e^h - 1) = h."""

    def gap(h: float) -> float:
        return u * math.expm1(h) - h

    return float(brentq(gap, 1e-12 + (1 - u) * 0.5, 4 - 2 * math.log(u), xtol=1e-14))


def _term(u: float, t: float, k: int) -> float:
    return float((-u * (t - k)) ** k / math.factorial(k) * math.exp(u * (t - k)))
