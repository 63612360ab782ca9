"""The two numbers that a training job is calibrated with: `mfu_scale`, and the effective rate of a NIC.

Batch and sequence of a published job are often unknown, and with them what part of an iteration moves gradients. Two
bars pin both down: the healthy throughput says how fast the GPUs compute, Balance's says how long the gradients take,
since with a lost fraction X it costs X / (1 - X) of that. Nothing else is fitted, and nothing per strategy.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from scipy.optimize import brentq

from r2cc_simai.errors import InputError
from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.runners.training_workload import JobSpec
from r2cc_simai.strategies.balance import Balance
from r2cc_simai.training.job import run_training

WIDEST = 8.0  # the fit looks this many times above and below where it starts
CLOSE = 1e-7  # relative error of a number
ROUNDS = 40


@dataclass(frozen=True)
class Bars:
    """Tokens per second of the healthy job, and under Balance with one failure (as one writes it for `--fail`)."""

    healthy: float
    balance: float
    failure: str


def fitted(spec: JobSpec, bars: Bars) -> JobSpec:
    """The job with the `mfu_scale` and the `nic_rate_gbps` that give both bars.

    Raises:
        InputError: no such pair within a factor of 8.
    """
    rate = spec.nic_rate_gbps or spec.hardware.spec.server.nics[0].rate_gbps
    spec = replace(spec, nic_rate_gbps=rate)
    for _ in range(ROUNDS):
        before = spec
        spec = replace(spec, mfu_scale=_zero(spec.mfu_scale, partial(_speed_gap, spec, bars)))
        rate = _zero(rate, partial(_balance_gap, spec, bars))
        spec = replace(spec, nic_rate_gbps=rate)
        if _near(spec.mfu_scale, before.mfu_scale) and _near(rate, before.nic_rate_gbps or 0.0):
            return spec
    raise InputError(f"the fit of {spec.cluster} to {bars} does not come to rest")


def _near(value: float, other: float) -> bool:
    return abs(value - other) <= 10 * CLOSE * value


def _speed_gap(spec: JobSpec, bars: Bars, mfu_scale: float) -> float:
    """Tokens per second of the healthy job beyond the bar."""
    job = replace(spec, mfu_scale=mfu_scale).job()
    return job.tokens / job.healthy.elapsed_s - bars.healthy


def _balance_gap(spec: JobSpec, bars: Bars, nic_rate_gbps: float) -> float:
    """How much less Balance costs than its bar says, as a part of the healthy iteration."""
    job = replace(spec, nic_rate_gbps=nic_rate_gbps).job()
    failed = run_training(job, Balance(), parse_failures([bars.failure], job.cluster))
    return bars.healthy / bars.balance - 1 - failed.overhead


def _zero(start: float, rising: Callable[[float], float]) -> float:
    """Where a rising function is 0.

    Raises:
        InputError: it has no zero near `start`.
    """
    low, high = math.log(start / WIDEST), math.log(start * WIDEST)
    if rising(math.exp(low)) > 0 or rising(math.exp(high)) < 0:
        raise InputError(f"no value between {math.exp(low):g} and {math.exp(high):g} fits the bars")
    return math.exp(brentq(lambda x: rising(math.exp(x)), low, high, xtol=CLOSE))
