"""PPO iterations: closed forms, messages and collectives that match, phases that depend on each other."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2cc_simai.chakra.schema import CommType, NodeType
from r2cc_simai.errors import InputError
from r2cc_simai.workloads.compute_times import compute_times
from r2cc_simai.workloads.models import load_model
from r2cc_simai.workloads.rlhf import generate
from r2cc_simai.workloads.rlhf_options import RlhfOptions

PHASES = ("generation", "exchange", "reward", "reference", "values", "advantages", "actor", "critic", "weights")
SMALL = {
    "gpus": 8,
    "tensor_model_parallel_size": 4,
    "rollout_batch_size": 16,
    "ppo_mini_batch_size": 8,
    "prompt_length": 24,
    "response_length": 4,
    "micro_batch_size": 2,
}
PAIR = {"gpus": 2, "tensor_model_parallel_size": 1, "generation_tensor_parallel_size": 1}
"""Two replicas without tensor parallelism."""


@dataclass(frozen=True)
class UnitTimes:
    """Attention and MLP take a second each, forward, for the input gradients and for the weights'."""

    description: str = "one second a block"

    def block_seconds(self, request):
        return float(request.block in ("attention", "mlp"))


@pytest.fixture(scope="session")
def ppo_job(small_model):
    """Return a function that generates a job whose models have 4 layers and unit times."""

    def make(actor="llama", critic="llama", **options):
        shapes = {"actor": actor, "critic": critic, "reward": "llama"}
        models = {role: small_model(shape, layers=4) for role, shape in shapes.items()}
        return generate("ppo", models, RlhfOptions(**{**SMALL, **options}), UnitTimes())

    return make


def traffic(workload, kind, comm):
    """Operations and bytes of a rank of the first class."""
    (found,) = [e for e in workload.manifest.traffic if (e.group_kind, e.comm_type) == (kind, comm)]
    return found.class_count[0], found.class_bytes[0]


def phases(program):
    """Phase of each node."""
    return [program.names[number].split(".")[0] for number in program.name]


def count(program, phase, node_type, comm_type=None):
    """Nodes of a phase."""
    of_phase = np.array(phases(program)) == phase
    wanted = of_phase & (program.kind == node_type)
    return int((wanted & (program.comm_type == comm_type) if comm_type is not None else wanted).sum())


def messages(workload, node_type):
    """How many messages of each source, destination, tag and size there are at one end."""
    found = Counter()
    for rank, number in enumerate(workload.rank_class):
        program = workload.programs[number]
        for node in (program.kind == node_type).nonzero()[0]:
            peer = workload.rank_peers[rank, program.peer[node]]
            ends = (rank, int(peer)) if node_type == NodeType.COMM_SEND else (int(peer), rank)
            found[*ends, int(program.tag[node]), int(program.bytes[node])] += 1
    return found


def collectives(workload, rank, group):
    """What a rank does on a group, in order."""
    program = workload.programs[workload.rank_class[rank]]
    on_group = (program.kind == NodeType.COMM_COLL) & (workload.rank_groups[rank][program.group] == group)
    return list(zip(program.comm_type[on_group], program.bytes[on_group], strict=True))


LAYOUTS = st.sampled_from(
    [  # tp, pp, tp and pp of generation
        (1, 1, 1, 1),
        (4, 1, 4, 1),
        (4, 1, 2, 1),
        (4, 1, 1, 1),
        (2, 2, 2, 1),
        (2, 2, 1, 1),
        (2, 2, 2, 2),
        (4, 2, 2, 2),
        (1, 4, 1, 1),
        (1, 4, 1, 4),
    ]
)


class TestSums:
    @settings(deadline=None, max_examples=15)
    @given(
        layout=LAYOUTS,
        actor=st.sampled_from(["gpt", "llama"]),
        critic=st.sampled_from(["gpt", "llama"]),
        batches=st.sampled_from([1, 2]),
        epochs=st.sampled_from([1, 2]),
        recompute=st.sampled_from(["none", "selective", "full"]),
        overlap=st.booleans(),
    )
    def test_closed_forms_hold_and_everything_matches(
        self, ppo_job, run_workload, layout, actor, critic, batches, epochs, recompute, overlap
    ):
        tp, pp, generation_tp, generation_pp = layout
        workload = ppo_job(
            actor,
            critic,
            tensor_model_parallel_size=tp,
            pipeline_model_parallel_size=pp,
            generation_tensor_parallel_size=generation_tp,
            generation_pipeline_parallel_size=generation_pp,
            generation_batches=batches,
            ppo_epochs=epochs,
            recompute_granularity=recompute,
            overlap_grad_reduce=overlap,
            gpus=2 * tp * pp,
            response_length=3,
            ppo_mini_batch_size=16,
            micro_batch_size=4,
        )
        assert [check for check in workload.manifest.checks if not check.ok] == []
        assert messages(workload, NodeType.COMM_SEND) == messages(workload, NodeType.COMM_RECV)
        for number, members in enumerate(workload.groups):
            first = collectives(workload, members[0], number)
            assert all(collectives(workload, rank, number) == first for rank in members[1:])
        assert run_workload(workload)

    def test_latent_attention(self, small_model):
        """The low-rank projections are whole on each rank, so nobody gathers them."""
        dense = small_model("deepseek", experts=None)
        workload = generate(
            "ppo", dict.fromkeys(("actor", "critic", "reward"), dense), RlhfOptions(**SMALL), UnitTimes()
        )
        assert [check for check in workload.manifest.checks if not check.ok] == []

    def test_gradients_of_actor_and_critic(self, ppo_job):
        """4 optimizer steps each (16 sequences in mini-batches of 8, 2 epochs) over P / tp parameters of 4 bytes.

        h = 256, 4 layers of 3 h^2 + 3 x 512 h weights (half as many key/value heads as heads) and 2 norms
        of h, a table of 1,024 rows (1,000 padded to 128 x
        tp), a final norm; the actor has an output head like the table, the critic one of h weights on every rank.
        """
        h, tp = 256, 4
        inside = 4 * ((3 * h * h + 3 * 512 * h) // tp + 2 * h) + 1024 * h // tp + h
        _, size = traffic(ppo_job(ppo_epochs=2), "dp", "ALL_REDUCE")
        assert size == 4 * 4 * ((inside + 1024 * h // tp) + (inside + h))

    def test_weights_are_gathered_from_the_ranks_that_have_the_other_parts(self, ppo_job):
        """tp 4 in training and 2 in generation: pairs gather the other's divided parameters, 2 bytes each.

        tp 2 x pp 2 and 1 x 1: first pairs of stages, each 2 layers and the larger end, then pairs of both halves.
        """
        h, divided = 256, 4 * (3 * 256**2 + 3 * 512 * 256) + 2 * 1024 * 256
        workload = ppo_job(generation_tensor_parallel_size=2)
        assert traffic(workload, "weights_tp", "ALL_GATHER") == (5, divided // 4 * 2)
        assert (0, 1) in workload.groups  # neighbours hold neighbouring parts
        assert (0, 2) in workload.groups  # and so every second rank has another part of the engine

        workload = ppo_job(
            tensor_model_parallel_size=2, pipeline_model_parallel_size=2, generation_tensor_parallel_size=1
        )
        layers, end = divided // 2 - 1024 * h, 1024 * h // 2 + h
        assert traffic(workload, "weights_pp", "ALL_GATHER") == (3, 2 * (layers // 2 + 2 * 2 * h + end))
        assert traffic(workload, "weights_tp", "ALL_GATHER") == (6, divided // 2 * 2)

    def test_equal_layouts_need_no_exchange_of_weights(self, ppo_job):
        workload = ppo_job(generation_tensor_parallel_size=4)
        assert "weights" not in phases(workload.programs[0])

    def test_broadcast_sends_every_parameter_to_all(self, ppo_job):
        """2 bytes for each of the actor's parameters, its vocabulary padded to 1,024, in 4 layers and the rest."""
        workload = ppo_job(weight_sync="broadcast")
        assert traffic(workload, "world", "BROADCAST") == (5, 2 * workload.manifest.parameters)

    def test_a_scalar_head_has_no_loss_over_the_vocabulary(self, ppo_job):
        """A forward pass: embedding, 2 x 4 blocks; the reference model has three sums of the loss besides."""
        (program,) = ppo_job().programs
        microbatches = 16 // (2 * 2)
        reduced = {
            phase: count(program, phase, NodeType.COMM_COLL, CommType.ALL_REDUCE)
            for phase in ("reward", "reference", "values")
        }
        assert reduced == {"reward": 9 * microbatches, "reference": 12 * microbatches, "values": 9 * microbatches}

    def test_the_default_job(self):
        """7B, 64 GPUs: 512 engine steps of 32 layers, below 200,000 nodes a class; published parameters."""
        models = dict.fromkeys(("actor", "critic", "reward"), load_model("llama2-7b"))
        workload = generate("ppo", models, RlhfOptions(), compute_times("roofline", "A100"))
        assert [check for check in workload.manifest.checks if not check.ok] == []
        assert workload.manifest.tokens == 512 * 1024
        (program,) = workload.programs
        assert len(program) < 200_000
        assert count(program, "generation", NodeType.COMP) == 512 * (1 + 2 * 32 + 1)


class TestPhases:
    def test_they_come_one_after_the_other(self, ppo_job):
        for program in ppo_job(pipeline_model_parallel_size=2, tensor_model_parallel_size=2).programs:
            assert tuple(dict.fromkeys(phases(program))) == PHASES

    def test_each_depends_on_the_one_before(self, ppo_job):
        """Walking up the dependencies from the last node meets every phase, and from none a later one."""
        (program,) = ppo_job(generation_tensor_parallel_size=2).programs
        order = np.array([PHASES.index(phase) for phase in phases(program)])
        deps = [program.deps[program.dep_offsets[n] : program.dep_offsets[n + 1]] for n in range(len(program))]
        assert all((order[before] <= order[node]).all() for node, before in enumerate(deps))
        for phase in range(1, len(PHASES)):
            first = int(np.argmax(order == phase))
            assert (order[deps[first]] == phase - 1).any()

    def test_their_times(self, ppo_job, run_workload):
        """A pass of 4 layers takes 8 s. Prompts and 3 tokens: 4 passes. Rollout: 4 micro-batches of 2 on 2 replicas,
        3 models forward, 2 models forward and twice as much backward."""
        assert run_workload(ppo_job(**PAIR)) == [4 * 8 + 3 * 4 * 8 + 2 * 4 * 3 * 8] * 2

    def test_generation_in_batches(self, ppo_job, run_workload):
        """Two batches, one after the other: 4 passes more."""
        once, twice = (max(run_workload(ppo_job(**PAIR, generation_batches=n))) for n in (1, 2))
        assert twice - once == 4 * 8


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"gpus": 6}, "--gpus 6: a multiple of"),
        ({"ppo_mini_batch_size": 6}, "does not divide --rollout-batch-size 16"),
        ({"micro_batch_size": 8}, "a multiple of replicas x --micro-batch-size = 2 x 8 = 16"),
        ({"rollout_batch_size": 12, "ppo_mini_batch_size": 4}, "a multiple of --gpus 8"),
        ({"tensor_model_parallel_size": 2, "generation_tensor_parallel_size": 4}, "a divisor of"),
        ({"generation_pipeline_parallel_size": 2}, "--generation-pipeline-parallel-size 2: 1, as in training"),
        ({"generation_tensor_parallel_size": 1, "generation_batches": 4}, "8 x 4 = 32 is wanted"),
        ({"generation_tensor_parallel_size": 4, "max_num_batched_tokens": 4}, "at least one for each of the 8"),
        ({"response_length": 5000}, "at most the 4096 positions"),
        ({"pipeline_model_parallel_size": 2, "weight_sync": "broadcast"}, "rank 0 has to hold all layers"),
        ({"actor": "mixtral"}, "--actor-model mixtral: has experts"),
    ],
)
def test_what_does_not_fit_is_refused(ppo_job, options, said):
    with pytest.raises(InputError, match=said) as caught:
        ppo_job(**options)
    assert "\n" not in str(caught.value)
