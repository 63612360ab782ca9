"""The cases whose speed is watched. `python benchmarks/cases.py NAME` runs one and prints its measurements as JSON.

Each case has a process to itself, so that its peak memory is its own.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path

GIB = 2**30
STRATEGIES = ("balance", "hot-repair", "r2cc-allreduce:k=4")
CHUNKS_PER_STEP = (1, 4)
RING = 1024  # ranks
PLANNED_RANKS = (2, 128)


@dataclass(frozen=True)
class Times:
    """Seconds of each repetition, and how many chunks one repetition delivered over one hop (0: not counted)."""

    seconds: list[float]
    deliveries: int = 0


def repeated(times: int, clock: Callable[[], float], work: Callable[[], object]) -> list[float]:
    """Seconds of each repetition by a clock, after one that warms up what is kept between calls."""
    work()
    seconds = []
    for _ in range(times):
        begun = clock()
        work()
        seconds.append(clock() - begun)
    return seconds


def flow(strategy: str, cut: bool) -> Times:
    """AllReduce of 1 GiB on 1,024 GPUs (128 servers with 8 GPUs and 8 NICs) under a failure, as an API call.

    The NIC is down from the start; or it fails in the middle of a collective, and then the next one is timed too,
    which runs on a new plan. Wall time of `run_job`: planning, the schedule's way into the engine, the simulation. The
    cluster was loaded before.
    """
    from r2cc_simai.cluster.load import load_cluster
    from r2cc_simai.failures.parse import parse_failures
    from r2cc_simai.runners.collective import Job, JobResult, planned, run_job
    from r2cc_simai.strategies.registry import parse_strategy

    cluster = load_cluster("h100x128")
    chosen = parse_strategy(strategy)
    healthy = run_job(cluster, chosen, parse_failures([], cluster), Job(GIB, iterations=1)).iterations[0].time_s
    timeline = parse_failures([f"server0.nic3@{healthy / 2 if cut else 0}"], cluster)
    job = Job(GIB, iterations=2 if cut else 1)

    def call() -> JobResult:
        planned.cache_clear()
        return run_job(cluster, chosen, timeline, job)

    if call().iterations[0].cut is not cut:
        raise RuntimeError("the failure does not come when this case wants it")
    return Times(repeated(9, time.perf_counter, call))


def chunk(per_step: int) -> Times:
    """Ring AllReduce of 1 GiB on 1,024 ranks with one NIC each, in one or more chunks a step, on the `chunk` backend.

    CPU time of the run alone, on one core; acknowledgements, windows and byte counters are on.
    """
    from r2cc_simai.cluster.load import load_cluster
    from r2cc_simai.cluster.model import Cluster
    from r2cc_simai.cluster.view import View
    from r2cc_simai.engine.run import Backend, run_schedule
    from r2cc_simai.runners.collective import planned
    from r2cc_simai.strategies.base import Request
    from r2cc_simai.strategies.registry import parse_strategy

    spec = load_cluster(f"uniformx{RING}").spec
    transport = spec.transport.model_copy(update={"chunk_kib": GIB / RING / 1024 / per_step})
    cluster = Cluster("ring", spec.model_copy(update={"transport": transport}))
    plan = planned(parse_strategy("ideal"), Request("all_reduce", tuple(range(RING)), GIB), View.healthy(cluster))
    seconds = repeated(
        5, time.process_time, lambda: run_schedule(cluster, plan.schedule, plan.binding, (), Backend.CHUNK)
    )
    return Times(seconds, deliveries=2 * (RING - 1) * RING * per_step)


def plans(ranks: int) -> Times:
    """A plan on 2,048 servers, one NIC down: a send between two of them, or an AllReduce of so many, a GPU of each.

    CPU time of `plan` alone; the cluster was loaded before, and what the view keeps is there.
    """
    from r2cc_simai.cluster.load import load_cluster
    from r2cc_simai.cluster.view import View
    from r2cc_simai.strategies.base import Request
    from r2cc_simai.strategies.registry import parse_strategy

    cluster = load_cluster("h100x2048")
    view = View(cluster, tuple(float(nic != 3) for nic in range(len(cluster.nics))))
    group = tuple(range(4, 4 + 8 * ranks, 8))
    request = Request("send" if ranks == 2 else "all_reduce", group, GIB)
    return Times(repeated(9, time.process_time, lambda: parse_strategy("r2cc-allreduce").plan(request, view)))


GPT_175B = ("--model", "gpt3-175b", "--tensor-model-parallel-size", "8", "--pipeline-model-parallel-size", "8")
LLAMA_405B = (
    *("--model", "llama3.1-405b", "--tensor-model-parallel-size", "8", "--pipeline-model-parallel-size", "16"),
    *("--account-for-embedding-in-pipeline-split", "--account-for-loss-in-pipeline-split"),
    *("--use-distributed-optimizer", "--overlap-grad-reduce"),
)


def emit(*options: str) -> Times:
    """The command `trace megatron`: generate, serialise, write the files of every rank (or class)."""
    with tempfile.TemporaryDirectory() as folder:
        return Times([_command("trace", "megatron", *options, "--output", folder)])


def iteration(cluster: str, *options: str) -> Times:
    """One training iteration of a trace under Balance, one NIC of server 0 down; the trace has been read before.

    Wall time of `run_iteration`: finding equal ranks, planning, executing.
    """
    from r2cc_simai.cluster.load import load_cluster
    from r2cc_simai.failures.parse import parse_failures
    from r2cc_simai.runners.training import read_job
    from r2cc_simai.strategies.registry import parse_strategy
    from r2cc_simai.training.iteration import run_iteration

    where = load_cluster(cluster)
    timeline, balance = parse_failures(["server0.nic3@0"], where), parse_strategy("balance")
    with tempfile.TemporaryDirectory() as folder:
        _command("trace", "megatron", *options, "--fold", "--output", folder)
        job = read_job(Path(folder), where)
    return Times(repeated(3, time.perf_counter, lambda: run_iteration(where, job.ranks, balance, timeline)))


def _command(*arguments: str) -> float:
    """Seconds of a command of `r2cc-simai`, in this process."""
    from r2cc_simai.cli.main import run

    begun = time.perf_counter()
    with redirect_stdout(StringIO()):
        code = run(arguments)
    if code:
        raise RuntimeError(f"r2cc-simai {' '.join(arguments)}: exit code {code}")
    return time.perf_counter() - begun


def _cases() -> dict[str, Callable[[], Times]]:
    cases: dict[str, Callable[[], Times]] = {}
    for strategy in STRATEGIES:
        cases[f"flow/{strategy}/down"] = partial(flow, strategy, cut=False)
        cases[f"flow/{strategy}/cut"] = partial(flow, strategy, cut=True)
    for n in CHUNKS_PER_STEP:
        cases[f"chunk/{n}"] = partial(chunk, n)
    for ranks in PLANNED_RANKS:
        cases[f"plan/{ranks}"] = partial(plans, ranks)
    cases["emit/175b"] = partial(emit, *GPT_175B, "--gpus", "1024")
    cases["iteration/175b"] = partial(iteration, "h100x128", *GPT_175B, "--gpus", "1024")
    cases["iteration/405b"] = partial(iteration, "h100x2048", *LLAMA_405B, "--gpus", "16384")
    return cases


CASES = _cases()

if __name__ == "__main__":
    measured = CASES[sys.argv[1]]()
    print(json.dumps({"seconds": measured.seconds, "deliveries": measured.deliveries}))
