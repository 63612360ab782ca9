"""A workload as the traces that its files would hold, without files."""

from pathlib import Path

import numpy as np

from r2cc_simai.chakra.classes import distinct, split
from r2cc_simai.chakra.encode import encode
from r2cc_simai.chakra.folder import TraceSet, role_table
from r2cc_simai.chakra.groups import group_numbers
from r2cc_simai.engine._core import read_trace
from r2cc_simai.workloads.program import Workload


def trace_set(workload: Workload) -> TraceSet:
    """What `read_folder` returns for a folder into which `write_workload` has written the workload."""
    classes = split(workload)
    numbers = group_numbers(len(workload.groups))
    traces = []
    rank_class = np.zeros(workload.n_ranks, dtype=np.int64)
    for number, one in enumerate(classes.classes):
        rank = one.ranks[0]
        group_of = {role: numbers[group] for role, group in classes.groups[rank].items()}
        encoded = encode(workload.programs[one.program], workload.n_ranks, len(str(numbers.start)))
        traces.append(read_trace(encoded.fill(group_of, classes.peers[rank])).trace)
        rank_class[list(one.ranks)] = number
    return TraceSet(
        prefix=Path(workload.name),
        classes=tuple(traces),
        rank_class=rank_class,
        rank_groups=role_table([distinct(roles.values()) for roles in classes.groups]),
        rank_peers=role_table([distinct(roles.values()) for roles in classes.peers]),
        groups=workload.groups,
        group_ids=tuple(numbers),
        group_kind=workload.group_kind,
        replica=workload.replica,
        manifest=workload.manifest.model_dump(mode="json"),
        notes=(),
    )
