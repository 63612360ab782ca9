"""What every rank of a run on torch.distributed has to know, as text on its command line."""

import json
from dataclasses import asdict, dataclass

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.collectives.checker import Wanted
from r2cc_simai.collectives.operations import canonical, operation
from r2cc_simai.collectives.schedule import Schedule
from r2cc_simai.errors import InputError
from r2cc_simai.exporters.wish import Wish, known_state
from r2cc_simai.failures.parse import parse_failures
from r2cc_simai.real.exact_data import ELEMENT_BYTES, REDUCTIONS, exact_data
from r2cc_simai.strategies.registry import parse_strategy


@dataclass(frozen=True)
class TorchJob:
    """A collective as a strategy plans it in a known state of a cluster, and how often it runs.

    Every rank makes the plan anew from these options, which always gives the same one, so that nothing but the package
    has to be on the other machines. `piece` limits a message, in bytes; None: the schedule's chunks.
    """

    cluster: str
    strategy: str
    collective: str
    bytes: int
    fail: tuple[str, ...]
    root: int
    dtype: str
    op: str
    iterations: int
    warmup: int
    backend: str
    wait_limit_s: float
    piece: int | None = None

    @property
    def text(self) -> str:
        """The job as one argument."""
        return json.dumps(asdict(self))

    @property
    def element_bytes(self) -> int:
        """Bytes of an element."""
        return ELEMENT_BYTES[self.dtype]


@dataclass(frozen=True, eq=False)
class Planned:
    """A job's schedule, what it must leave on the ranks, the ranks that take part, and whether it adds."""

    schedule: Schedule
    wanted: Wanted
    group: tuple[int, ...]
    reduces: bool
    note: str


def job_of(text: str) -> TorchJob:
    """The job that `TorchJob.text` made."""
    values = json.loads(text)
    return TorchJob(**{**values, "fail": tuple(values["fail"])})


def plan_job(job: TorchJob) -> Planned:
    """The schedule of a job.

    Raises:
        InputError: an option that makes no sense, or ranks that the strategy drops.
        PartitionedError: the failures leave ranks without a path.
    """
    cluster = load_cluster(job.cluster)
    exact_data(cluster.n_ranks, job.dtype)
    if job.op not in REDUCTIONS:
        raise InputError(f"-o {job.op}: not among the reductions that are executed (allowed: {', '.join(REDUCTIONS)})")
    if job.bytes <= 0 or job.bytes % job.element_bytes:
        raise InputError(f"-b {job.bytes}: write a multiple of the {job.element_bytes} bytes of {job.dtype}, above 0")
    strategy = parse_strategy(job.strategy)
    view = known_state(cluster, parse_failures(list(job.fail), cluster), strategy)
    wish = Wish(strategy, view, canonical(job.collective), job.root)
    plan = wish.plan(job.bytes)
    reduces = operation(job.collective).reduces
    return Planned(plan.schedule, wish.wanted(job.bytes), wish.group, reduces, plan.note)
