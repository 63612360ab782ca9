"""Invariants of generated training jobs, over drawn models, layouts and options."""

from collections import Counter, defaultdict

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from r2cc_simai.chakra.schema import NodeType
from r2cc_simai.workloads.program import NONE

fixtures_do_not_change = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@st.composite
def jobs(draw, most_ranks=64, variants=("gpt", "llama", "mixtral", "deepseek")):
    """A variant and options that fit together."""
    variant = draw(st.sampled_from(variants))
    small = st.sampled_from([1, 2, 4])
    tp, pp, cp, dp = draw(
        st.tuples(small, small, st.sampled_from([1, 2, 4]), small).filter(lambda s: np.prod(s) <= most_ranks)
    )
    options = {
        "gpus": tp * pp * cp * dp,
        "tensor_model_parallel_size": tp,
        "pipeline_model_parallel_size": pp,
        "context_parallel_size": cp,
        "cp_comm_type": draw(st.sampled_from(["p2p", "all_gather"])),
        "micro_batch_size": draw(st.sampled_from([1, 2])),
        "recompute_granularity": draw(st.sampled_from(["none", "selective", "full"])),
        "accumulate_allreduce_grads_in_fp32": draw(st.booleans()),
        "use_distributed_optimizer": draw(st.booleans()),
        "overlap_grad_reduce": draw(st.booleans()),
        "ddp_bucket_size": draw(st.sampled_from([None, 1, 100_000])),
    }
    options["overlap_param_gather"] = (
        options["use_distributed_optimizer"] and options["overlap_grad_reduce"] and draw(st.booleans())
    )
    experts = variant in ("mixtral", "deepseek")
    options["sequence_parallel"] = experts or draw(st.booleans())
    if experts:
        expert_tp = draw(st.sampled_from(sorted({1, tp})))
        options["expert_tensor_parallel_size"] = expert_tp
        options["expert_model_parallel_size"] = draw(
            st.sampled_from([ep for ep in (1, 2, 4, 8) if tp * cp * dp % (ep * expert_tp) == 0])
        )
    turns = draw(st.integers(1, 2))
    options["global_batch_size"] = options["micro_batch_size"] * dp * pp * turns
    if pp > 1 and draw(st.booleans()):
        options["num_layers_per_virtual_pipeline_stage"] = draw(st.sampled_from([1, 2]))
    return variant, options


@fixtures_do_not_change
@given(jobs())
def test_the_closed_forms_hold(megatron_job, drawn):
    """Parameters and bytes exactly, FLOPs up to the norms and biases, which multiply nothing (small models: 3%)."""
    workload = megatron_job(drawn[0], **drawn[1])
    for check in workload.manifest.checks:
        if check.name.startswith("FLOPs"):
            assert abs(check.trace / check.formula - 1) < 0.03, check
        else:
            assert check.trace == check.formula, check


@fixtures_do_not_change
@given(jobs())
def test_nodes_depend_on_earlier_nodes_only(megatron_job, drawn):
    for program in megatron_job(drawn[0], **drawn[1]).programs:
        count = np.diff(program.dep_offsets)
        assert program.dep_offsets[0] == 0
        assert (count >= 0).all()
        assert program.dep_offsets[-1] == len(program.deps)
        assert (program.deps >= 0).all()
        assert (program.deps < np.repeat(np.arange(len(program)), count)).all()


@fixtures_do_not_change
@given(jobs())
def test_every_send_has_its_receive(megatron_job, drawn):
    """Same tag and size, and the peers name each other; a tag is used once between two ranks."""
    workload = megatron_job(drawn[0], **drawn[1])
    sends, receives = Counter(), Counter()
    for rank, k in enumerate(workload.rank_class):
        program, peers = workload.programs[k], workload.rank_peers[rank]
        for kind, found in ((NodeType.COMM_SEND, sends), (NodeType.COMM_RECV, receives)):
            at = program.kind == kind
            for peer, tag, size in zip(peers[program.peer[at]], program.tag[at], program.bytes[at], strict=True):
                ends = (rank, peer) if kind == NodeType.COMM_SEND else (peer, rank)
                found[(*map(int, ends), int(tag), int(size))] += 1
    assert sends == receives
    assert len({key[:3] for key in sends}) == sends.total()
    assert all(source != destination and destination >= 0 for source, destination, _, _ in sends)


@fixtures_do_not_change
@given(jobs())
def test_all_members_of_a_group_issue_the_same_collectives(megatron_job, drawn):
    workload = megatron_job(drawn[0], **drawn[1])
    issued = defaultdict(set)
    for rank, k in enumerate(workload.rank_class):
        program = workload.programs[k]
        collective = program.kind == NodeType.COMM_COLL
        assert (program.group[collective] != NONE).all()
        for role in np.unique(program.group[collective]):
            at = collective & (program.group == role)
            group = workload.rank_groups[rank, role]
            assert rank in workload.groups[group]
            issued[group].add((program.comm_type[at].tobytes(), program.bytes[at].tobytes()))
    assert all(len(ways) == 1 for ways in issued.values())
    unused = {workload.group_kind[k] for k in set(range(len(workload.groups))) - set(issued)}
    assert unused <= {"ep", "expert_tp", "expert_dp"}  # a stage of dense layers has no use for these


@fixtures_do_not_change
@given(jobs(most_ranks=8))
def test_no_rank_waits_for_ever(megatron_job, run_workload, drawn):
    """The reference executor comes to the end of every rank, and not before the work of the busiest one."""
    workload = megatron_job(drawn[0], **drawn[1])
    busy = [program.duration_ns.sum() * 1e-9 for program in workload.programs]
    assert max(run_workload(workload)) >= max(busy) - 1e-6


@fixtures_do_not_change
@given(jobs())
def test_compute_of_a_rank_is_one_chain(megatron_job, drawn):
    """Each compute node comes after the one before it: a GPU computes one thing at a time, in the schedule's order."""
    for program in megatron_job(drawn[0], **drawn[1]).programs:
        compute = program.kind == NodeType.COMP
        reach = np.full(len(program), NONE)  # latest compute node that is over when the node may start
        for node in range(len(program)):
            deps = program.deps[program.dep_offsets[node] : program.dep_offsets[node + 1]]
            reach[node] = max((d if compute[d] else reach[d] for d in deps), default=NONE)
        nodes = np.flatnonzero(compute)
        assert reach[nodes[1:]].tolist() == nodes[:-1].tolist()


def test_ranks_of_a_stage_share_one_program(megatron_job):
    sizes = {"gpus": 32, "tensor_model_parallel_size": 4, "pipeline_model_parallel_size": 4}
    workload = megatron_job(**sizes, global_batch_size=4)
    assert workload.rank_class.tolist() == [k // 8 for k in range(32)]
    assert len(workload.programs) == 4
    assert workload.replica.tolist() == [k % 8 // 4 for k in range(32)]
