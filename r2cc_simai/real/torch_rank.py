"""One rank of a run on torch.distributed: executes its part of a schedule, checks every element, reports iterations.

Started as `python -m r2cc_simai.real.torch_rank JOB` by torchrun, mpirun, srun or `real run torch --local`. Reports are
lines of JSON on stdout (`torch_report`).
"""

import datetime
import os
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from r2cc_simai.errors import InputError, MissingComponentError, SimaiError
from r2cc_simai.real.torch_report import ErrorReport, IterationReport, StartReport

if TYPE_CHECKING:
    from r2cc_simai.real.torch_job import TorchJob
    from r2cc_simai.real.torch_memory import TorchMemory

INIT = "R2CC_SIMAI_INIT"
"""Variable that names where ranks meet (a URL as torch takes it); by default MASTER_ADDR and MASTER_PORT."""

_NUMBERS = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
)


def main(arguments: list[str]) -> int:
    """Runs the job in `arguments`; the exit code is 1 where an element was wrong or a message did not come."""
    rank = 0
    try:
        rank, n_ranks, local_rank = place(os.environ)
        return _Rank(arguments[0], rank, n_ranks, local_rank).run()
    except SimaiError as error:
        ErrorReport(rank, str(error)).print()
        return error.exit_code
    except _WaitError as error:
        ErrorReport(rank, str(error)).print()
        os._exit(1)  # a process group with open messages would wait for them


def place(environment: Mapping[str, str]) -> tuple[int, int, int]:
    """(rank, ranks, rank on this machine) as the launcher says it.

    Raises:
        InputError: no launcher that is known has started this process.
    """
    for names in _NUMBERS:
        if all(name in environment for name in names):
            rank, n_ranks, local_rank = (int(environment[name]) for name in names)
            return rank, n_ranks, local_rank
    raise InputError("rank unknown: start this by torchrun, mpirun, srun, or r2cc-simai real run torch --local N")


class _WaitError(Exception):
    """What was waited for did not come; one line."""


class _Rank:
    """One rank, from its plan to its last report."""

    def __init__(self, text: str, rank: int, n_ranks: int, local_rank: int) -> None:
        from r2cc_simai.real.exact_data import exact_data
        from r2cc_simai.real.rounds import Rounds
        from r2cc_simai.real.torch_job import job_of, plan_job

        self._job: TorchJob = job_of(text)
        self._rank = rank
        self._n_ranks = n_ranks
        self._planned = plan_job(self._job)
        schedule = self._planned.schedule
        if schedule.n_ranks != n_ranks:
            raise InputError(f"{n_ranks} processes, but {self._job.cluster} has {schedule.n_ranks} ranks")
        rounds = Rounds(schedule, self._job.element_bytes, self._job.piece)
        self._cuts = rounds.cuts
        self._rounds = rounds.of_rank(rank)
        self._elements = schedule.bytes // self._job.element_bytes
        self._data = exact_data(n_ranks, self._job.dtype)
        self._device = f"cuda:{local_rank}" if self._job.backend == "nccl" else "cpu"

    def run(self) -> int:
        """Meets the others and runs all iterations; 1 where an element was wrong.

        Raises:
            _WaitError: the others or a message did not come.
        """
        from r2cc_simai.real.torch_memory import TorchMemory

        self._meet()
        memory = TorchMemory(self._rounds, self._elements, self._job.dtype, self._job.op, self._device)
        wrong = sum(self._iteration(memory, k) for k in range(self._job.warmup + self._job.iterations))
        self._barrier("the barrier at the end")
        return 1 if wrong else 0

    def _meet(self) -> None:
        try:
            import torch
            import torch.distributed as dist
        except ImportError:
            raise MissingComponentError(
                "torch: not installed on this machine; pip install 'r2cc-simai[torch]'"
            ) from None

        torch.set_num_threads(1)
        where = os.environ.get(INIT, "env://")
        limit = datetime.timedelta(seconds=self._job.wait_limit_s)
        try:
            if self._device != "cpu":
                torch.cuda.set_device(self._device)
            dist.init_process_group(
                self._job.backend, init_method=where, rank=self._rank, world_size=self._n_ranks, timeout=limit
            )
        except (RuntimeError, ValueError, OSError) as error:  # torch's own errors are RuntimeErrors
            raise _WaitError(f"meeting the {self._n_ranks} ranks at {where}: {_first_line(error)}") from None
        StartReport(self._rank, os.uname().nodename, str(torch.__version__), self._rounds.count).print()

    def _barrier(self, what: str) -> None:
        import torch.distributed as dist

        try:
            dist.barrier()
        except RuntimeError as error:
            raise _WaitError(f"{what}: {_first_line(error)}") from None

    def _iteration(self, memory: "TorchMemory", number: int) -> int:
        """One iteration; its wrong elements."""
        from r2cc_simai.real.verify import count_wrong

        job = self._job
        memory.fill(self._data.of_rank(self._rank, 0, self._elements, number))
        self._barrier(f"iteration {number}: the barrier before it")
        begun = time.monotonic()
        for one in range(self._rounds.count):
            self._round(memory, number, one)
        if job.op == "avg" and self._planned.reduces:
            memory.divide(len(self._planned.group))
        memory.synchronize()
        time_s = time.monotonic() - begun
        wrong = count_wrong(
            memory.result(),
            self._rank,
            self._planned.wanted,
            self._cuts,
            self._data,
            job.element_bytes,
            job.op,
            number,
        )
        IterationReport(self._rank, number, number < job.warmup, time_s, wrong).print()
        return wrong

    def _round(self, memory: "TorchMemory", iteration: int, number: int) -> None:
        import torch.distributed as dist

        try:
            for work in dist.batch_isend_irecv(memory.posts(number)):
                work.wait()
        except RuntimeError as error:
            first, end = self._rounds.offset[number : number + 2]
            peers = ", ".join(str(one) for one in sorted(set(self._rounds.peer[first:end].tolist())))
            raise _WaitError(
                f"iteration {iteration}, round {number + 1} of {self._rounds.count}: {end - first} messages "
                f"with ranks {peers}: {_first_line(error)}"
            ) from None
        memory.reduce(number)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
