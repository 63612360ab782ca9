"""What a generated program has where: collectives of a layer, overlap, recomputation, gradients."""

from collections import Counter

import numpy as np
import pytest

from r2cc_simai.chakra.schema import CommType, NodeType

TOKENS, HIDDEN = 128, 256
ACTIVATIONS = 2 * TOKENS * HIDDEN
TP = {"gpus": 2, "tensor_model_parallel_size": 2, "global_batch_size": 1}


def names(program, start=""):
    """Names of the nodes in order, of those that start so."""
    return [program.names[k] for k in program.name if program.names[k].startswith(start)]


def node(program, name, which=0):
    """Position of the which-th node of a name."""
    return np.flatnonzero(program.name == program.names.index(name))[which]


def waits(program, name, which=0):
    """Names of what a node waits for directly."""
    at = node(program, name, which)
    deps = program.deps[program.dep_offsets[at] : program.dep_offsets[at + 1]]
    return sorted(program.names[k] for k in program.name[deps])


def behind(program, at):
    """All nodes that come to their end before the node `at` starts."""
    found, todo = set(), [at]
    while todo:
        here = todo.pop()
        for dep in program.deps[program.dep_offsets[here] : program.dep_offsets[here + 1]].tolist():
            if dep not in found:
                found.add(dep)
                todo.append(dep)
    return found


def collectives(program, start):
    """Types and sizes of the collectives whose names start so."""
    at = [
        k
        for k in range(len(program))
        if program.kind[k] == NodeType.COMM_COLL and program.names[program.name[k]].startswith(start)
    ]
    return [(CommType(int(program.comm_type[k])).name, int(program.bytes[k])) for k in at]


def test_tensor_parallel_layer_has_two_all_reduces_in_each_direction(megatron_job):
    """Shoeybi et al., arXiv 1909.08053, section 3: two all-reduces forward, two backward, of the activations."""
    program = megatron_job(**TP).programs[0]
    assert collectives(program, "layer3.forward") == [("ALL_REDUCE", ACTIVATIONS)] * 2
    assert collectives(program, "layer3.backward") == [("ALL_REDUCE", ACTIVATIONS)] * 2


def test_sequence_parallel_layer_gathers_and_scatters(megatron_job):
    """Korthikanti et al., arXiv 2205.05198, section 4.2.2: g is an AllGather forward and a ReduceScatter backward,
    g-bar the reverse; the backward pass gathers the input once more."""
    program = megatron_job(**TP, sequence_parallel=True).programs[0]
    gather, scatter = ("ALL_GATHER", ACTIVATIONS // 2), ("REDUCE_SCATTER", ACTIVATIONS)
    assert collectives(program, "layer3.forward") == [gather, scatter] * 2
    assert collectives(program, "layer3.backward") == [gather, gather, scatter] * 2


def test_input_gradients_are_summed_while_weight_gradients_are_computed(megatron_job):
    program = megatron_job(**TP).programs[0]
    assert waits(program, "layer3.backward.mlp.input_gradient") == ["layer3.backward.mlp.dgrad"]
    assert waits(program, "layer3.backward.mlp.wgrad") == ["layer3.backward.mlp.dgrad"]
    assert waits(program, "layer3.backward.attention.dgrad") == [
        "layer3.backward.mlp.input_gradient",
        "layer3.backward.mlp.wgrad",
    ]


def test_the_second_gather_of_sequence_parallelism_overlaps_with_the_input_gradients(megatron_job):
    program = megatron_job(**TP, sequence_parallel=True).programs[0]
    gradient, again = "layer3.backward.mlp.output_gradient", "layer3.backward.mlp.input"
    assert waits(program, "layer3.backward.mlp.dgrad") == waits(program, again) == [gradient]
    assert waits(program, "layer3.backward.mlp.wgrad") == sorted([again, "layer3.backward.mlp.dgrad"])


def test_without_tensor_parallelism_a_layer_has_no_collectives(megatron_job):
    assert collectives(megatron_job(gpus=1, global_batch_size=1).programs[0], "") == []


def test_the_loss_over_a_divided_vocabulary_takes_three_small_all_reduces(megatron_job):
    """One number of 4 bytes a token each: maximum, the target's logit, sum of exponentials."""
    program = megatron_job(**TP).programs[0]
    assert collectives(program, "loss") == [("ALL_REDUCE", 4 * TOKENS)] * 3


def test_full_recomputation_runs_the_layer_again_with_its_collectives(megatron_job):
    program = megatron_job(**TP, recompute_granularity="full").programs[0]
    assert collectives(program, "layer3.recompute") == collectives(program, "layer3.forward")
    assert node(program, "layer4.backward.attention.wgrad") < node(program, "layer3.recompute.attention")
    assert node(program, "layer3.recompute.mlp") < node(program, "layer3.backward.mlp.dgrad")


def test_selective_recomputation_repeats_the_attention_core_alone(megatron_job):
    program = megatron_job(**TP, recompute_granularity="selective").programs[0]
    assert names(program, "layer3.recompute") == ["layer3.recompute.attention.core"]


def test_recomputed_flops_are_told_apart(megatron_job):
    plain = megatron_job(**TP).manifest
    full = megatron_job(**TP, recompute_granularity="full").manifest
    assert plain.flops == plain.model_flops == full.model_flops
    assert plain.flops < full.flops < 4 / 3 * plain.flops  # all but embedding and logits forward once more


class TestContextParallel:
    """Keys and values of 4 heads of width 32, 128 / 4 tokens a rank, in bf16."""

    OPTIONS = {"gpus": 4, "context_parallel_size": 4, "global_batch_size": 1}  # noqa: RUF012
    SIZE = 2 * 4 * 32 * TOKENS // 4 * 2

    def test_a_ring_sends_one_time_less_than_it_has_members(self, megatron_job):
        program = megatron_job(**self.OPTIONS).programs[0]
        sends = program.kind == NodeType.COMM_SEND
        at = [k for k in np.flatnonzero(sends) if program.names[program.name[k]] == "layer3.forward.attention.core.kv"]
        assert program.bytes[at].tolist() == [self.SIZE] * 3

    def test_backward_it_sends_keys_and_values_and_one_step_later_their_gradients(self, megatron_job):
        program = megatron_job(**self.OPTIONS).programs[0]
        sends = program.kind == NodeType.COMM_SEND
        at = [k for k in np.flatnonzero(sends) if program.names[program.name[k]] == "layer3.backward.attention.core.kv"]
        assert program.bytes[at].tolist() == [self.SIZE, 2 * self.SIZE, 2 * self.SIZE, self.SIZE]

    def test_a_block_is_worked_on_while_the_next_one_comes(self, megatron_job):
        program = megatron_job(**self.OPTIONS).programs[0]
        assert waits(program, "layer3.forward.attention.core.step1") == [
            "layer3.forward.attention.core.kv",
            "layer3.forward.attention.core.step0",
        ]
        step0 = node(program, "layer3.forward.attention.core.step0")
        first_receive = node(program, "layer3.forward.attention.core.kv", 1)
        assert program.kind[first_receive] == NodeType.COMM_RECV
        assert step0 not in behind(program, first_receive)

    def test_steps_add_up_to_the_attention_of_one_rank(self, megatron_job):
        """Four ranks do the work of one: a quarter of the FLOPs each."""
        one = megatron_job(gpus=1, global_batch_size=1).programs[0]
        four = megatron_job(**self.OPTIONS).programs[0]
        assert four.num_ops.sum() == pytest.approx(one.num_ops.sum() / 4, rel=1e-3)

    def test_all_gather_repeats_backward_and_scatters_the_gradients(self, megatron_job):
        program = megatron_job(**self.OPTIONS, cp_comm_type="all_gather").programs[0]
        assert collectives(program, "layer3.forward") == [("ALL_GATHER", self.SIZE)]
        assert collectives(program, "layer3.backward") == [("ALL_GATHER", self.SIZE), ("REDUCE_SCATTER", 4 * self.SIZE)]


class TestExperts:
    """8 experts, 2 for each token."""

    def test_dispatch_and_combine_in_both_directions(self, megatron_job):
        """A rank holds 2 copies of each of its tokens to send."""
        options = {"gpus": 4, "expert_model_parallel_size": 4, "global_batch_size": 4}
        program = megatron_job("mixtral", **options).programs[0]
        assert collectives(program, "layer3.forward") == [("ALL_TO_ALL", 2 * ACTIVATIONS)] * 2
        assert collectives(program, "layer3.backward") == [("ALL_TO_ALL", 2 * ACTIVATIONS)] * 2

    def test_tensor_parallel_experts_gather_the_tokens_of_their_partners(self, megatron_job):
        options = {
            "gpus": 4,
            "tensor_model_parallel_size": 2,
            "expert_model_parallel_size": 2,
            "sequence_parallel": True,
        }
        program = megatron_job("mixtral", **options, global_batch_size=2).programs[0]
        routed = 2 * ACTIVATIONS // 2
        exchange = [
            ("ALL_TO_ALL", routed),
            ("ALL_GATHER", routed),
            ("REDUCE_SCATTER", 2 * routed),
            ("ALL_TO_ALL", routed),
        ]
        assert (
            collectives(program, "layer3.forward.dispatch") + collectives(program, "layer3.forward.combine") == exchange
        )

    def test_shared_experts_are_divided_over_the_tensor_parallel_group(self, megatron_job):
        options = {"gpus": 2, "tensor_model_parallel_size": 2, "sequence_parallel": True, "global_batch_size": 1}
        program = megatron_job("deepseek", **options).programs[0]
        assert collectives(program, "layer3.forward.shared_experts") == [
            ("ALL_GATHER", ACTIVATIONS // 2),
            ("REDUCE_SCATTER", ACTIVATIONS),
        ]

    def test_first_layers_of_deepseek_are_dense(self, megatron_job):
        program = megatron_job("deepseek", gpus=1, global_batch_size=1).programs[0]
        assert "layer1.forward.mlp" in program.names
        assert "layer2.forward.experts" in program.names


class TestPipeline:
    """Two stages of four layers."""

    OPTIONS = {"gpus": 2, "pipeline_model_parallel_size": 2, "global_batch_size": 4}  # noqa: RUF012

    def test_messages_carry_the_activations_and_their_gradients(self, megatron_job):
        first, last = megatron_job(**self.OPTIONS).programs
        sent = first.kind == NodeType.COMM_SEND
        assert first.bytes[sent].tolist() == [ACTIVATIONS] * 4
        assert names(first).count("gradient.receive") == names(last).count("gradient.send") == 4

    def test_with_sequence_parallelism_a_rank_sends_its_part(self, megatron_job):
        options = self.OPTIONS | {"gpus": 4, "tensor_model_parallel_size": 2, "sequence_parallel": True}
        first = megatron_job(**options).programs[0]
        assert set(first.bytes[first.kind == NodeType.COMM_SEND].tolist()) == {ACTIVATIONS // 2}

    def test_nothing_waits_for_a_send(self, megatron_job):
        for program in megatron_job(**self.OPTIONS).programs:
            assert not np.isin(program.deps, np.flatnonzero(program.kind == NodeType.COMM_SEND)).any()

    def test_a_pass_waits_for_its_message_and_a_message_for_its_pass(self, megatron_job):
        first, last = megatron_job(**self.OPTIONS).programs
        assert "activation.receive" in waits(last, "layer4.forward.attention")
        assert waits(first, "activation.send") == ["layer3.forward.mlp"]

    def test_a_receive_is_posted_one_pass_ahead(self, megatron_job):
        """The third micro-batch's message may come while the pass before it runs, not earlier."""
        last = megatron_job(**self.OPTIONS).programs[1]
        third = node(last, "activation.receive", 2)
        before = behind(last, third)
        assert node(last, "layer7.forward.mlp", 1) in before  # the pass before the one before
        assert node(last, "layer4.backward.attention.wgrad", 1) not in before

    def test_the_tied_embedding_is_summed_over_first_and_last_stage(self, megatron_job):
        """Padded to a multiple of 128 rows: 1024 x 256 gradients of 4 bytes."""
        for program in megatron_job("gpt", **self.OPTIONS).programs:
            assert collectives(program, "embedding_gradients") == [("ALL_REDUCE", 1024 * HIDDEN * 4)]


class TestGradients:
    """Data parallelism over four ranks."""

    OPTIONS = {"gpus": 4, "global_batch_size": 8}  # noqa: RUF012

    def reduces(self, program):
        """Positions of the collectives that sum gradients."""
        return [k for k in range(len(program)) if ".gradients.bucket" in program.names[program.name[k]]]

    def test_one_bucket_after_the_backward_pass(self, megatron_job):
        workload = megatron_job(**self.OPTIONS)
        program = workload.programs[0]
        (only,) = self.reduces(program)
        assert program.bytes[only] == 4 * workload.manifest.parameters
        assert node(program, "embedding.backward", 1) in behind(program, only)

    def test_overlapped_buckets_start_during_the_last_backward_pass(self, megatron_job):
        """One bucket a tensor: every bucket but the last starts before the end of the backward pass, none before the
        last micro-batch."""
        program = megatron_job(**self.OPTIONS, overlap_grad_reduce=True, ddp_bucket_size=1).programs[0]
        last = node(program, "embedding.backward", 1)
        started = [last not in behind(program, k) for k in self.reduces(program)]
        assert started == [True] * (len(started) - 1) + [False]
        assert len(started) > 8
        assert min(self.reduces(program)) > node(program, "logits.forward", 1)
        assert set(self.reduces(program)) <= behind(program, node(program, "optimizer"))

    def test_a_bucket_waits_for_the_weight_gradients_that_it_holds(self, megatron_job):
        program = megatron_job(**self.OPTIONS, overlap_grad_reduce=True, ddp_bucket_size=1).programs[0]
        assert waits(program, "chunk0.gradients.bucket0.reduce") == ["logits.backward.wgrad"]

    def test_distributed_optimizer_scatters_gradients_and_gathers_parameters(self, megatron_job):
        """Gradients of 4 bytes, parameters of 2, a quarter of them on each of four ranks; one optimizer step."""
        workload = megatron_job(**self.OPTIONS, use_distributed_optimizer=True)
        program, count = workload.programs[0], workload.manifest.parameters
        assert count % 128 == 0  # no padding
        assert collectives(program, "chunk0") == [("REDUCE_SCATTER", 4 * count), ("ALL_GATHER", 2 * count // 4)]
        order = [node(program, f"chunk0.gradients.bucket0.{what}") for what in ("scatter", "gather")]
        assert order[0] < node(program, "optimizer") < order[1]

    def test_overlapped_gather_comes_before_the_forward_pass_that_needs_it(self, megatron_job):
        overlap = {"use_distributed_optimizer": True, "overlap_grad_reduce": True, "overlap_param_gather": True}
        program = megatron_job(**self.OPTIONS, **overlap, ddp_bucket_size=100_000).programs[0]
        gathers = [k for k in self.reduces(program) if program.comm_type[k] == CommType.ALL_GATHER]
        assert max(gathers) < node(program, "logits.forward", 0)
        assert gathers[0] in behind(program, node(program, "embedding.forward"))
        assert not set(gathers) <= behind(program, node(program, "layer0.forward.attention"))
        assert set(gathers) <= behind(program, node(program, "logits.forward"))

    def test_buckets_only_on_the_first_stage(self, megatron_job):
        """Elsewhere the sums of gradients are not on the critical path, as Megatron-LM has it."""
        options = {"gpus": 4, "pipeline_model_parallel_size": 2, "global_batch_size": 4}
        first, last = megatron_job(**options, overlap_grad_reduce=True, ddp_bucket_size=1).programs
        assert len(self.reduces(first)) > 4
        assert len(self.reduces(last)) == 1

    def test_the_norm_of_the_gradients_is_one_number(self, megatron_job):
        """Over one replica of the model; over all ranks where each has a shard of the gradients."""
        options = self.OPTIONS | {"gpus": 8, "tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 2}
        plain = megatron_job(**options)
        sharded = megatron_job(**options, use_distributed_optimizer=True)
        for workload, members in ((plain, 4), (sharded, 8)):
            program = workload.programs[0]
            (role,) = program.group[[node(program, "gradient_norm.reduce")]]
            assert len(workload.groups[workload.rank_groups[0, role]]) == members
            assert collectives(program, "gradient_norm") == [("ALL_REDUCE", 4)]

    def test_norms_are_summed_over_the_tensor_parallel_group_under_sequence_parallelism(self, megatron_job):
        """Two norms of 256 parameters a layer, 8 layers, and the final one, in fp32."""
        program = megatron_job(**TP, sequence_parallel=True).programs[0]
        assert collectives(program, "norm_gradients") == [("ALL_REDUCE", 4 * HIDDEN * (2 * 8 + 1))]


def test_names_say_layer_pass_and_block(megatron_job):
    """Every layer is there with its own name, as often as there are micro-batches."""
    program = megatron_job(gpus=1, global_batch_size=3).programs[0]
    counted = Counter(names(program))
    assert all(counted[f"layer{k}.forward.{block}"] == 3 for k in range(8) for block in ("attention", "mlp"))
