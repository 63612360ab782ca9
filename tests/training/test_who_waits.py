"""A job that can never end says who waits for whom; one that does not fit says which nodes."""

from dataclasses import replace

import numpy as np
import pytest

from r2cc_simai.chakra.memory import trace_set
from r2cc_simai.chakra.schema import CommType, NodeType
from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.errors import InputError, PartitionedError
from r2cc_simai.failures.timeline import Timeline
from r2cc_simai.strategies.ideal import Ideal
from r2cc_simai.training.iteration import Iteration, run_iteration
from r2cc_simai.training.ranks import ranks_of
from r2cc_simai.workloads.gpus import load_gpu
from r2cc_simai.workloads.manifest import Manifest
from r2cc_simai.workloads.program import NONE, Program, Workload

Node = dict[str, int]
MANIFEST = Manifest.model_construct(version="0", generator="test", tokens=0)


def program(*nodes: Node) -> Program:
    """Nodes in order, each behind the one before."""

    def column(key: str, default: int) -> np.ndarray:
        return np.array([node.get(key, default) for node in nodes], dtype=np.int64)

    count = len(nodes)
    return Program(
        names=("node",),
        name=np.zeros(count, dtype=np.int64),
        kind=column("kind", NodeType.COMP),
        comm_type=column("comm_type", NONE),
        duration_ns=column("duration_ns", 0),
        num_ops=column("num_ops", 0),
        tensor_bytes=column("tensor_bytes", 0),
        bytes=column("bytes", 0),
        group=column("group", NONE),
        peer=column("peer", NONE),
        tag=column("tag", NONE),
        dep_offsets=np.maximum(np.arange(count + 1, dtype=np.int64) - 1, 0),
        deps=np.arange(count - 1, dtype=np.int64),
    )


def compute(milliseconds: float) -> Node:
    return {"duration_ns": round(milliseconds * 1e6)}


def all_reduce(size: int) -> Node:
    return {"kind": NodeType.COMM_COLL, "comm_type": CommType.ALL_REDUCE, "bytes": size, "group": 0}


def message(kind: NodeType, size: int) -> Node:
    return {"kind": kind, "bytes": size, "peer": 0, "tag": 3}


def run(*programs: Program) -> Iteration:
    """Two ranks on two servers, one group of both, each the other's peer."""
    two = np.arange(2, dtype=np.int64)
    workload = Workload(
        name="two",
        programs=programs,
        rank_class=two,
        groups=((0, 1),),
        group_kind=("dp",),
        rank_groups=np.zeros((2, 1), dtype=np.int64),
        rank_peers=two[::-1].reshape(2, 1),
        replica=two,
        manifest=MANIFEST,
    )
    return run_iteration(load_cluster("uniformx2").zero_latency(), ranks_of(trace_set(workload)), Ideal(), Timeline())


def test_what_two_ranks_do_takes_its_time() -> None:
    """2 ms of compute beside 1 ms, then 50 MB both ways at 50 GB/s: T0 = 2 (n-1)/n D/B = 1 ms."""
    out = run(program(compute(2), all_reduce(50_000_000)), program(compute(1), all_reduce(50_000_000)))
    assert out.elapsed_s == pytest.approx(3e-3, rel=1e-3)
    assert out.waiting_s[1] == pytest.approx(1e-3, rel=1e-3)


def test_a_message_takes_its_bytes_over_the_rate() -> None:
    """50 MB at 50 GB/s: 1 ms, after the later of both ends is there."""
    sends, receives = message(NodeType.COMM_SEND, 50_000_000), message(NodeType.COMM_RECV, 50_000_000)
    out = run(program(sends), program(compute(4), receives, compute(1)))
    assert out.elapsed_s == pytest.approx(6e-3, rel=1e-3)


def test_a_receive_without_a_send_is_named() -> None:
    """Exit code 3, with the rank, the node, the peer, the tag and the size."""
    with pytest.raises(PartitionedError, match=r"rank 1 node 1 .*waits for a send of rank 0 with tag 3 and 8 bytes"):
        run(program(compute(1)), program(message(NodeType.COMM_RECV, 8)))


def test_a_member_that_never_comes_is_named() -> None:
    """A deadlock across ranks: one waits for the message that the other would send after the collective."""
    with pytest.raises(PartitionedError, match=r"waits in group .* for rank 1; .*waits for a send of rank 0"):
        run(
            program(all_reduce(8), message(NodeType.COMM_SEND, 8)),
            program(message(NodeType.COMM_RECV, 8), all_reduce(8)),
        )


def test_members_that_disagree_are_named() -> None:
    """Exit code 2: the trace is wrong."""
    with pytest.raises(InputError, match=r"rank 0 node 1 .*and rank 1 node 1 .*meet with different types or sizes"):
        run(program(all_reduce(8)), program(all_reduce(16)))


def test_zero_bytes_release_their_children() -> None:
    """astra-sim pull request 102: zero payload, go on."""
    out = run(program(all_reduce(0), compute(2)), program(all_reduce(0), compute(2)))
    assert out.elapsed_s == pytest.approx(2e-3)


def test_a_send_without_a_receive_is_named_too() -> None:
    """Its bytes never move."""
    with pytest.raises(PartitionedError, match="waits for a receive of rank 1"):
        run(program(message(NodeType.COMM_SEND, 8)), program(compute(1)))


def test_two_equal_messages_to_two_equal_ranks() -> None:
    """Same tag, same size: each receiver gets its own, whether equal ranks are simulated once or not."""
    sends = [{**message(NodeType.COMM_SEND, 50_000_000), "peer": role} for role in (0, 1)]
    workload = Workload(
        name="star",
        programs=(program(*sends), program(message(NodeType.COMM_RECV, 50_000_000), compute(1))),
        rank_class=np.array([0, 1, 1], dtype=np.int64),
        groups=(),
        group_kind=(),
        rank_groups=np.zeros((3, 0), dtype=np.int64),
        rank_peers=np.array([[1, 2], [0, NONE], [0, NONE]], dtype=np.int64),
        replica=np.zeros(3, dtype=np.int64),
        manifest=MANIFEST,
    )
    cluster, ranks = load_cluster("uniformx3").zero_latency(), ranks_of(trace_set(workload))
    for fold in (True, False):
        out = run_iteration(cluster, ranks, Ideal(), Timeline(), fold=fold)
        assert sorted(out.end_s[out.classes.of_rank].round(6)) == [2e-3, 2e-3, 3e-3]


def test_the_group_of_one_moves_nothing() -> None:
    """A communicator with a single member is complete at once."""
    workload = Workload(
        name="one",
        programs=(program(all_reduce(1000), compute(1)),),
        rank_class=np.zeros(1, dtype=np.int64),
        groups=((0,),),
        group_kind=("dp",),
        rank_groups=np.zeros((1, 1), dtype=np.int64),
        rank_peers=np.full((1, 0), NONE, dtype=np.int64),
        replica=np.zeros(1, dtype=np.int64),
        manifest=MANIFEST,
    )
    traces = replace(trace_set(workload))
    out = run_iteration(load_cluster("uniformx2"), ranks_of(traces), Ideal(), Timeline())
    assert out.elapsed_s == pytest.approx(1e-3)


def test_compute_without_a_duration_takes_what_the_gpu_needs() -> None:
    """max(FLOPs / (peak x share), bytes / (bandwidth x share)) + floor; where no GPU is known, nothing."""
    gpu = load_gpu("H100")
    node = {"num_ops": 10**12, "tensor_bytes": 10**6}
    two = np.arange(1, dtype=np.int64)
    workload = Workload(
        name="one",
        programs=(program(node),),
        rank_class=np.zeros(1, dtype=np.int64),
        groups=(),
        group_kind=(),
        rank_groups=np.zeros((1, 0), dtype=np.int64),
        rank_peers=np.zeros((1, 0), dtype=np.int64),
        replica=two,
        manifest=MANIFEST,
    )
    traces = trace_set(workload)
    seconds = 1e12 / (gpu.peak_flops * gpu.efficiency.gemm) + gpu.kernel_floor
    for known, wanted in ((gpu, seconds), (None, 0.0)):
        ranks = ranks_of(traces, known)
        assert ranks.untimed == 1
        out = run_iteration(load_cluster("uniformx2"), ranks, Ideal(), Timeline())
        assert out.elapsed_s == pytest.approx(wanted)
