"""A rank of the lab that trains: its payload is the gradient of its part of the batch."""

from collections.abc import Iterator
from functools import partial
from multiprocessing.connection import Connection

from r2cc_simai.errors import InputError
from r2cc_simai.lab.payload import Outcome
from r2cc_simai.lab.processes import Worker
from r2cc_simai.lab.reduce import Elements
from r2cc_simai.lab.training.replica import Replica
from r2cc_simai.lab.training.settings import TrainingSpec
from r2cc_simai.lab.work import Collective, Endpoint


class Gradients:
    """A collective sums the gradients of a step, whose number is that of the iteration. The outcome tells a `Step`."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._step = 0

    def prepare(self, collective: Collective, rank: int, ranks: int) -> None:  # noqa: ARG002
        """The parameters and the optimizer stay what they are under a new plan.

        Raises:
            InputError: the collective does not sum float32 buffers of the model's size on all ranks.
        """
        request = collective.request
        kind = (collective.dtype, collective.op, request.op, request.bytes)
        wanted = ("float32", "sum", "all_reduce", 4 * self._replica.size)
        if kind != wanted:
            raise InputError(f"lab: gradients are summed by {wanted}, not {kind}")

    def load(self, iteration: int, buffer: Elements) -> None:
        """The gradient of this rank's part of the batch."""
        self._step = iteration
        self._replica.gradient(iteration, buffer)

    def finish(self, buffer: Elements) -> Iterator[Outcome | None]:
        """Updates the parameters."""
        yield Outcome(told=self._replica.update(self._step, buffer))


def training_worker(spec: TrainingSpec) -> Worker:
    """What a rank's process does in a job."""
    return partial(_serve, spec)


def _serve(spec: TrainingSpec, endpoint: Endpoint, control: Connection) -> None:
    from r2cc_simai.lab.rank import RankWorker
    from r2cc_simai.lab.training.blas import one_thread

    with one_thread():
        payload = Gradients(Replica(spec, endpoint.rank, len(endpoint.servers)))
        RankWorker(endpoint, control, payload).serve()
