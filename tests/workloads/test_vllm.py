"""Serving workloads: closed forms, messages and collectives that match, dependencies of steps."""

from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2cc_simai.chakra.schema import CommType, NodeType
from r2cc_simai.errors import InputError
from r2cc_simai.workloads.compute_times import compute_times
from r2cc_simai.workloads.models import load_model, model_names
from r2cc_simai.workloads.serving_layout import stage_layers
from r2cc_simai.workloads.vllm import generate
from r2cc_simai.workloads.vllm_options import VllmOptions


@dataclass(frozen=True)
class UnitTimes:
    """Attention and MLP, or router and experts, take a second each; nothing else takes time."""

    description: str = "one second a block"

    def block_seconds(self, request):
        return float(request.block in ("attention", "mlp", "router", "experts"))


@pytest.fixture(scope="session")
def deployment(small_model):
    """Return a function that generates a deployment of a small model of 8 layers with unit times."""

    def make(variant="llama", **options):
        return generate("served", small_model(variant), VllmOptions(**{"input_len": 32, **options}), UnitTimes())

    return make


@pytest.fixture(scope="session")
def llama_70b():
    """Return a function that generates a deployment of Llama 3.1 70B on H100s."""
    times = compute_times("roofline", "H100")

    def make(**options):
        return generate("served", load_model("llama3.1-70b"), VllmOptions(**options), times)

    return make


def traffic(workload, kind, comm):
    """Operations and bytes of a rank of each class."""
    found = [e for e in workload.manifest.traffic if (e.group_kind, e.comm_type) == (kind, comm)]
    return [pair for entry in found for pair in zip(entry.class_count, entry.class_bytes, strict=True)]


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


def assert_consistent(workload):
    """Each send has its receive, and all members of a group do the same on it; no dependency points ahead."""
    assert messages(workload, NodeType.COMM_SEND) == messages(workload, NodeType.COMM_RECV)
    for number, members in enumerate(workload.groups):
        first = collectives(workload, members[0], number)
        assert all(collectives(workload, rank, number) == first for rank in members[1:])
    for program in workload.programs:
        for node in range(len(program)):
            assert (program.deps[program.dep_offsets[node] : program.dep_offsets[node + 1]] < node).all()


def wrong(workload):
    """Closed forms that do not hold."""
    return [check for check in workload.manifest.checks if not check.ok]


class TestSums:
    def test_a_decode_step_of_a_dense_model(self, llama_70b):
        """A token for each of B sequences: 2 L + 1 AllReduces of 2 B h bytes (L = 80, h = 8,192, B = 64), and an
        AllGather of 2 B V / tp bytes of logits (V = 128,256, tp = 8)."""
        workload = llama_70b(gpus=8, tensor_parallel_size=8, batch_size=64, iterations=1)
        assert traffic(workload, "tp", "ALL_REDUCE") == [(161, 161 * 2 * 64 * 8192)]
        assert traffic(workload, "tp", "ALL_GATHER") == [(1, 2 * 64 * 128256 // 8)]
        assert workload.manifest.tokens == 64
        assert workload.manifest.tokens_are == "generated"

    def test_a_prefill_of_one_step_samples_one_token_a_prompt(self, llama_70b):
        """8 prompts of 1,024 tokens: AllReduces of 2 x 8,192 x h bytes, logits of 8 tokens."""
        workload = llama_70b(gpus=8, tensor_parallel_size=8, batch_size=8, phase="prefill")
        assert traffic(workload, "tp", "ALL_REDUCE") == [(161, 161 * 2 * 8192 * 8192)]
        assert traffic(workload, "tp", "ALL_GATHER") == [(1, 2 * 8 * 128256 // 8)]
        assert (workload.manifest.tokens, workload.manifest.tokens_are) == (8192, "of prompts")

    def test_flops_of_a_decoded_token(self, llama_70b):
        """2 N + 4 L x context x width of the heads: 2 x 69.5e9 (all but the embedding) + 4 x 80 x 1,025 x 8,192."""
        workload = llama_70b(gpus=8, tensor_parallel_size=8, batch_size=64, iterations=1)
        per_token = 2 * (70_553_706_496 - 128256 * 8192) + 4 * 80 * 1025 * 8192
        assert workload.manifest.flops_per_token == pytest.approx(per_token, rel=1e-3)

    def test_stages_exchange_activations_and_residual_in_parts(self, deployment):
        """Each rank sends its 1 / tp of 2 tensors of 2 B h bytes; the receiving group gathers both.

        2 stages, tp 2, h = 256, two batches in flight of 4 sequences: 2 x 2 messages of 1,024 bytes, and the tokens
        of the first step (4 bytes each) back for the second.
        """
        workload = deployment(
            gpus=4, tensor_parallel_size=2, pipeline_parallel_size=2, batch_size=8, iterations=2, output_len=3
        )
        sent = traffic(workload, "pp", "SEND")
        assert sent == [(2 * 2 * 2, 8 * 4 * 256), (2, 2 * 4 * 4)]
        logits = 4 * 4 * 1024  # four steps of 4 sequences; 2 bytes, half of a vocabulary of 1,000 padded to 1,024
        assert traffic(workload, "tp", "ALL_GATHER") == [(0, 0), (4 + 8, logits + 8 * 4 * 256)]

    @settings(deadline=None, max_examples=40)
    @given(
        variant=st.sampled_from(["gpt", "llama", "mixtral", "deepseek"]),
        tp=st.sampled_from([1, 2, 4, 8]),
        pp=st.sampled_from([1, 2, 3]),
        dp=st.sampled_from([1, 2]),
        ep=st.booleans(),
        phase=st.sampled_from(["prefill", "decode", "mixed"]),
        batch=st.integers(1, 9),
    )
    def test_closed_forms_hold_and_everything_matches(
        self, deployment, run_workload, variant, tp, pp, dp, ep, phase, batch
    ):
        experts = variant in ("mixtral", "deepseek")
        if experts and ep and 8 % (tp * dp):
            tp = 4
        workload = deployment(
            variant,
            gpus=tp * pp * dp,
            tensor_parallel_size=tp,
            pipeline_parallel_size=pp,
            enable_expert_parallel=ep and experts,
            phase=phase,
            batch_size=batch,
            output_len=3,
            max_num_seqs=10,
            max_num_batched_tokens=50,
        )
        assert not wrong(workload)
        assert_consistent(workload)
        assert run_workload(workload)

    @pytest.mark.parametrize("name", model_names())
    @pytest.mark.parametrize(
        "case",
        [
            {"gpus": 8, "tensor_parallel_size": 8},
            {"gpus": 16, "tensor_parallel_size": 4, "pipeline_parallel_size": 2, "phase": "prefill", "batch_size": 16},
            {"gpus": 8, "tensor_parallel_size": 2, "phase": "mixed", "max_num_batched_tokens": 1000},
            {"gpus": 16, "tensor_parallel_size": 4, "kv_transfer": True},
        ],
        ids=["decode", "prefill-pp", "mixed", "kv-transfer"],
    )
    def test_shipped_models(self, name, case):
        times = compute_times("roofline", "H100")
        workload = generate("served", load_model(name), VllmOptions(**{"iterations": 2, **case}), times)
        assert [check.name for check in wrong(workload) if check.of_trace] == []


class TestTensorParallelGroups:
    def test_they_may_cross_servers(self, llama_70b):
        """Tensor size 16 on servers of 8 GPUs: one group of all 16 ranks."""
        workload = llama_70b(gpus=16, tensor_parallel_size=16, iterations=1)
        assert workload.groups == (tuple(range(16)),)

    def test_replicas_are_farther_apart_than_stages(self, deployment):
        """vLLM's order "dp-pp-tp": rank = tp + 2 (pp + 2 dp) with sizes of 2."""
        workload = deployment(gpus=8, tensor_parallel_size=2, pipeline_parallel_size=2)
        assert workload.groups == ((0, 1), (2, 3), (4, 5), (6, 7))
        assert workload.rank_class.tolist() == [0, 0, 1, 1, 0, 0, 1, 1]
        assert workload.replica.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
        assert workload.rank_peers[:, 0].tolist() == [2, 3, 0, 1, 6, 7, 4, 5]

    @pytest.mark.parametrize(
        ("layers", "pp", "counts"), [(10, 4, [2, 3, 3, 2]), (8, 2, [4, 4]), (7, 3, [2, 3, 2]), (3, 3, [1, 1, 1])]
    )
    def test_layers_left_over_go_to_the_stages_before_the_last(self, layers, pp, counts):
        """vLLM's get_pp_indices: with r layers left over, stages -2, -3, ..., -(r + 1) get one more each."""
        split = stage_layers(layers, pp)
        assert [len(stage) for stage in split] == counts
        assert [layer for stage in split for layer in stage] == list(range(layers))


class TestSteps:
    """Unit times: a step takes 2 s a layer, so 16 s for 8 layers."""

    def test_steps_of_a_batch_are_serial(self, deployment, run_workload):
        workload = deployment(gpus=1, batch_size=4, iterations=3)
        assert run_workload(workload) == [3 * 16]

    def test_one_batch_does_not_fill_a_pipeline(self, deployment, run_workload):
        """A single sequence: each step passes both stages before the next one starts."""
        workload = deployment(gpus=2, pipeline_parallel_size=2, batch_size=1, iterations=3)
        assert max(run_workload(workload)) == 3 * 16

    def test_as_many_batches_as_stages_do(self, deployment, run_workload):
        """Two batches in flight: 2 x 3 turns of 8 s on each stage, the last one 8 s later."""
        workload = deployment(gpus=2, pipeline_parallel_size=2, batch_size=2, iterations=3)
        assert run_workload(workload) == [6 * 8, 7 * 8]

    def test_prompts_need_no_tokens_of_others(self, deployment):
        """Prefill of several steps: no message goes back to the first stage."""
        workload = deployment(
            gpus=2, pipeline_parallel_size=2, phase="prefill", batch_size=8, max_num_batched_tokens=256
        )
        (_, last) = workload.programs
        assert not (last.kind == NodeType.COMM_SEND).any()


class TestExperts:
    def copies(self, workload, comm):
        return {kind: traffic(workload, kind, comm) for kind in ("ep", "dp", "tp") if traffic(workload, kind, comm)}

    def test_whole_experts_of_several_replicas_exchange_copies(self, deployment):
        """tp 2 x 2 replicas, 8 sequences: each rank routes 4 tokens to 2 experts, 2 x 4 x 2 x h bytes (h = 256) there
        and back in each of 8 layers; then the group gathers its parts."""
        workload = deployment(
            "mixtral", gpus=4, tensor_parallel_size=2, batch_size=8, iterations=1, enable_expert_parallel=True
        )
        assert self.copies(workload, "ALL_TO_ALL") == {"ep": [(16, 16 * 2 * 4 * 2 * 256)]}
        assert (0, 1, 2, 3) in workload.groups
        assert traffic(workload, "tp", "ALL_REDUCE")[0][0] == 1 + 8

    def test_whole_experts_of_one_replica_need_no_exchange(self, deployment):
        """Its ranks have all tokens; their results are summed as those of an MLP."""
        workload = deployment("mixtral", gpus=4, tensor_parallel_size=4, iterations=1, enable_expert_parallel=True)
        assert self.copies(workload, "ALL_TO_ALL") == {}
        assert traffic(workload, "tp", "ALL_REDUCE")[0][0] == 1 + 2 * 8

    def test_parts_of_experts_on_several_replicas_gather_all_tokens(self, deployment):
        """tp 2 x 2 replicas, 8 sequences each: 8 x 2 h bytes gathered, twice that scattered, in each of 8 layers."""
        workload = deployment("mixtral", gpus=4, tensor_parallel_size=2, batch_size=8, iterations=1)
        assert traffic(workload, "dp", "ALL_GATHER") == [(8, 8 * 8 * 2 * 256)]
        assert traffic(workload, "dp", "REDUCE_SCATTER") == [(8, 8 * 2 * 8 * 2 * 256)]


class TestKvTransfer:
    @pytest.mark.parametrize(
        ("name", "megabytes"),
        [
            ("llama2-7b", 512),  # 2 x 32 layers x 32 heads x 128 x 2 bytes x 1,024 tokens
            ("llama3.1-70b", 320),  # 2 x 80 layers x 8 heads x 128 x 2 bytes x 1,024 tokens
        ],
    )
    def test_bytes_of_a_prompt(self, name, megabytes):
        """2 x layers x key/value heads x head width x 2 bytes x tokens, divided over tp ranks."""
        options = VllmOptions(gpus=16, tensor_parallel_size=8, kv_transfer=True, batch_size=4, iterations=1)
        workload = generate("served", load_model(name), options, UnitTimes())
        assert traffic(workload, "kv", "SEND") == [(4, 4 * megabytes * 2**20 // 8), (0, 0)]

    def test_decoding_waits_for_all_prompts(self, deployment, run_workload):
        """Two steps of prefill (16 s each) for two prompts, then 3 steps of decoding."""
        workload = deployment(
            gpus=2, kv_transfer=True, batch_size=2, iterations=3, max_num_batched_tokens=32, max_num_seqs=2
        )
        assert run_workload(workload) == [2 * 16, 2 * 16 + 3 * 16]

    @pytest.mark.parametrize(
        ("variant", "tp", "prefill", "gpus"),
        [
            *(("llama", 1, prefill, gpus) for prefill, gpus in ((2, 4), (2, 6), (4, 6), (2, 8), (6, 8))),
            *(("deepseek", 2, prefill, gpus) for prefill, gpus in ((2, 4), (2, 6), (4, 6))),
        ],
    )
    def test_any_number_of_partners(self, deployment, run_workload, variant, tp, prefill, gpus):
        workload = deployment(
            variant,
            gpus=gpus,
            tensor_parallel_size=tp,
            kv_transfer=True,
            prefill_gpus=prefill,
            num_prompts=24,
            output_len=3,
        )
        assert not wrong(workload)
        assert_consistent(workload)
        assert run_workload(workload)

    def test_partners_are_lost_together(self, deployment):
        """4 prefill replicas feed 2: the first two and the first of the others depend on each other."""
        workload = deployment(gpus=6, kv_transfer=True, prefill_gpus=4)
        assert workload.replica.tolist() == [0, 0, 1, 1, 0, 1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"gpus": 6, "tensor_parallel_size": 4}, "--gpus 6: a multiple of"),
        ({"gpus": 4, "data_parallel_size": 3}, "4 GPUs make 4 replicas of 1"),
        ({"gpus": 3, "tensor_parallel_size": 3}, "--tensor-parallel-size 3: does not divide the 8 attention heads"),
        ({"gpus": 9, "pipeline_parallel_size": 9}, "has 8 layers"),
        ({"gpus": 2, "enable_expert_parallel": True}, "has no experts"),
        ({"gpus": 2, "num_prompts": 3}, "a multiple of 2 is wanted"),
        ({"gpus": 2, "num_prompts": 4, "batch_size": 2}, "one of the two"),
        ({"gpus": 1, "batch_size": 300}, "at most --max-num-seqs 256"),
        ({"gpus": 1, "output_len": 5000}, "--max-model-len 4096"),
        ({"gpus": 1, "output_len": 1}, "2 or more"),
        ({"gpus": 1, "output_len": 4, "iterations": 4}, "3 decode steps"),
        ({"gpus": 1, "max_num_batched_tokens": 100}, "at least --max-num-seqs"),
        ({"gpus": 1, "prefill_gpus": 1}, "needs --kv-transfer"),
        ({"gpus": 1, "kv_transfer": True}, "--prefill-gpus 0"),
        ({"gpus": 5, "kv_transfer": True, "prefill_gpus": 2}, "2 prefill and 3 decode replicas"),
        ({"gpus": 2, "kv_transfer": True, "phase": "decode"}, "leave it"),
    ],
)
def test_what_does_not_fit_is_refused(deployment, options, said):
    with pytest.raises(InputError, match=said) as caught:
        deployment(**options)
    assert "\n" not in str(caught.value)


def test_experts_that_cannot_be_divided_are_refused(deployment):
    with pytest.raises(InputError, match="does not divide the 8 experts"):
        deployment("mixtral", gpus=12, tensor_parallel_size=4, enable_expert_parallel=True)


def test_no_compute_without_a_phase_in_its_name(deployment):
    """Names tell the phase, the layer and the block."""
    workload = deployment(gpus=1, phase="mixed", output_len=3, batch_size=2)
    assert {name.split(".")[0] for name in workload.programs[0].names} == {"prefill", "decode"}
    assert "decode.layer7.attention" in workload.programs[0].names
    assert set(workload.programs[0].comm_type) <= {-1, *CommType}
