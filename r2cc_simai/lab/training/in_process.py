"""Data-parallel training with all ranks in one process: the reference for a job in the lab.

Floating-point addition is not associative: the bits of a sum depend on the order of its additions. That order is the
schedule's. On every rank the operations on an element run in the order of the passes and of their hops, whatever else
runs meanwhile, over whichever NICs and however often a unit is sent again: an incoming unit is added once, as a whole,
to what the rank has. So a schedule fixes the bits of its result. A new binding of the same schedule (hot repair) keeps
them; a new schedule (balance, R2CC-AllReduce) cuts the buffer elsewhere, lets other ranks begin, and rounds otherwise.
"""

from collections.abc import Callable, Sequence

import numpy as np

from r2cc_simai.collectives.schedule import Schedule
from r2cc_simai.lab.training.blas import one_thread
from r2cc_simai.lab.training.history import History, history_of
from r2cc_simai.lab.training.layers import Array
from r2cc_simai.lab.training.replica import Replica
from r2cc_simai.lab.training.settings import TrainingSpec
from r2cc_simai.lab.units import in_elements


def execute(schedule: Schedule, buffers: Sequence[Array]) -> None:
    """Runs a schedule on one buffer per rank, in place, with its additions in its order.

    Raises:
        InputError: the buffers are no whole number of elements.
    """
    for one in in_elements(schedule, buffers[0].itemsize).passes:
        route = schedule.routes[one.route].tolist()
        sections = list(zip(one.lo.tolist(), one.hi.tolist(), one.start.tolist(), strict=True))
        for hop in range(one.reduce_hops + one.copy_hops):
            # All send what they have before any of them receives.
            sent = [buffers[route[(start + hop) % len(route)]][lo:hi].copy() for lo, hi, start in sections]
            for (lo, hi, start), incoming in zip(sections, sent, strict=True):
                own = buffers[route[(start + hop + 1) % len(route)]][lo:hi]
                if hop < one.reduce_hops:
                    np.add(own, incoming, out=own)
                else:
                    own[...] = incoming


def train(spec: TrainingSpec, ranks: int, schedule_of: Callable[[int], Schedule]) -> History:
    """Trains a job whose gradients are summed, in step t, by `schedule_of(t)`."""
    with one_thread():  # as the ranks of a lab
        replicas = [Replica(spec, rank, ranks) for rank in range(ranks)]
        gradients: list[Array] = [np.empty(replica.size, dtype=np.float32) for replica in replicas]
        steps = []
        for step in range(1, spec.steps + 1):
            for replica, gradient in zip(replicas, gradients, strict=True):
                replica.gradient(step, gradient)
            execute(schedule_of(step), gradients)
            steps.append([r.update(step, g) for r, g in zip(replicas, gradients, strict=True)])
    return history_of(steps)
