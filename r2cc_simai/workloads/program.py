"""What the ranks of a job do in one iteration: programs of equal ranks, communicator groups and roles.

A trace of a thousand ranks has only as many different programs as there are pipeline stages. So a program speaks of
roles ("my tensor-parallel group", "the next stage"), and tables say which group and which rank that is for each rank.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.workloads.manifest import Manifest

Int = NDArray[np.int64]

NONE = -1
"""A column's value where it does not apply to the node."""


@dataclass(frozen=True, eq=False)
class Program:
    """What every rank of one class does in one iteration; columns have one entry per node, in the order of issue.

    A node depends on earlier nodes only: `deps[dep_offsets[i]:dep_offsets[i + 1]]` are positions < i.
    Groups and peers are roles: `group` k is the k-th group of the rank that runs it (Workload.rank_groups[rank, k]),
    `peer` k its k-th peer (Workload.rank_peers[rank, k]); -1 where a node has none.
    """

    names: tuple[str, ...]
    """Distinct names."""
    name: Int
    """Per node: index into `names`."""
    kind: Int
    """Chakra node type: COMP 4, COMM_SEND 5, COMM_RECV 6, COMM_COLL 7."""
    comm_type: Int
    """Chakra type of collectives (ALL_REDUCE 0, ALL_GATHER 2, BROADCAST 5, ALL_TO_ALL 6, REDUCE_SCATTER 7), else -1."""
    duration_ns: Int
    """Of compute nodes; 0 otherwise."""
    num_ops: Int
    """Floating-point operations of compute nodes; 0 otherwise."""
    tensor_bytes: Int
    """Bytes that a compute node moves to and from memory; 0 otherwise."""
    bytes: Int
    """Of communication nodes: comm_size, the rank's input of a collective or the message; 0 otherwise."""
    group: Int
    """Group role of collectives, else -1."""
    peer: Int
    """Peer role of sends and receives, else -1."""
    tag: Int
    """Of sends and receives, else -1."""
    dep_offsets: Int
    """Shape (n + 1,)."""
    deps: Int
    """Positions of the nodes that each node waits for."""

    def __len__(self) -> int:
        return len(self.kind)


@dataclass(frozen=True, eq=False)
class Workload:
    """All ranks of a job."""

    name: str
    programs: tuple[Program, ...]
    rank_class: Int
    """Shape (n_ranks,): index into `programs`."""
    groups: tuple[tuple[int, ...], ...]
    """Members (sorted global ranks) of every communicator group."""
    group_kind: tuple[str, ...]
    """Of each group: "tp", "cp", "dp", "ep", "embedding", ..."""
    rank_groups: Int
    """Shape (n_ranks, group roles): index into `groups`, or -1."""
    rank_peers: Int
    """Shape (n_ranks, peer roles): global rank, or -1."""
    replica: Int
    """Shape (n_ranks,): the data-parallel replica of each rank (what AdapCC drops together)."""
    manifest: Manifest

    @property
    def n_ranks(self) -> int:
        """How many ranks the job has."""
        return len(self.rank_class)
