"""Defaults, and what is refused: one line that names the option and what would be right."""

import pytest

from r2cc_simai.errors import InputError
from r2cc_simai.workloads.megatron_options import MegatronOptions, check, parallel_sizes, resolve
from r2cc_simai.workloads.models import load_model
from r2cc_simai.workloads.split import split_layers

TP, PP, CP, EP, ETP = (
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "context_parallel_size",
    "expert_model_parallel_size",
    "expert_tensor_parallel_size",
)
CHUNK = "num_layers_per_virtual_pipeline_stage"
FIRST, LAST = "decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers"
EMBEDDING, LOSS = "account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split"


def plan(model, options):
    """What generating a job does before it makes nodes."""
    resolved = resolve(MegatronOptions(**options), model)
    check(resolved, model)
    split_layers(resolved, model.layers)


def test_gpt3_175b_on_1024_gpus_has_the_batch_of_its_paper():
    """Brown et al., arXiv 2005.14165, table 2.1: 3.2 million tokens; 1,536 sequences of 2,048, 96 a replica."""
    options = resolve(MegatronOptions(gpus=1024, **{TP: 8, PP: 8}), load_model("gpt3-175b"))
    assert (options.global_batch_size, options.seq_length) == (1536, 2048)
    assert parallel_sizes(options).dp == 16


def test_every_stage_has_a_microbatch_by_default():
    """405B on 16,384 GPUs, tensor 8, pipeline 16: 2,048 sequences of 8,192, 16 Mi (arXiv 2407.21783, table 4)."""
    options = resolve(MegatronOptions(gpus=16384, seq_length=8192, **{TP: 8, PP: 16}), load_model("llama3.1-405b"))
    assert options.global_batch_size == 2048


def test_short_sequences_do_not_make_endless_traces():
    options = resolve(MegatronOptions(gpus=2, seq_length=16, **{PP: 2}), load_model("gpt3-2.7b"))
    assert options.global_batch_size == 2048


def test_sequence_parallelism_needs_a_tensor_parallel_group():
    options = resolve(MegatronOptions(gpus=2, sequence_parallel=True), load_model("gpt3-2.7b"))
    assert not options.sequence_parallel


@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        (
            "gpt3-175b",
            {"gpus": 100, TP: 8},
            "--gpus 100: a multiple of tensor x pipeline x context parallel size = 8 x",
        ),
        ("gpt3-175b", {"gpus": 10, TP: 5}, "--tensor-model-parallel-size 5: does not divide the 96 attention heads"),
        (
            "llama3.1-8b",
            {"gpus": 16, TP: 16},
            "does not divide the 8 key/value heads of llama3.1-8b; allowed: 1, 2, 4, 8",
        ),
        ("gpt3-175b", {"gpus": 7, PP: 7}, "--pipeline-model-parallel-size 7: does not divide 96 layers"),
        ("llama3.1-405b", {"gpus": 16, PP: 16}, "--account-for-embedding-in-pipeline-split"),
        (
            "gpt3-2.7b",
            {"gpus": 4, "global_batch_size": 6},
            "micro-batch size x data parallel size = 1 x 4 = 4 is wanted",
        ),
        (
            "gpt3-2.7b",
            {"gpus": 1, "global_batch_size": 10**6},
            "makes 1000000 micro-batches; at most 65536 are written",
        ),
        ("gpt3-2.7b", {"gpus": 10**9}, "--gpus 1000000000: at most 1048576"),
        ("gpt3-2.7b", {"gpus": 4, EP: 2}, "--expert-model-parallel-size 2: gpt3-2.7b has no experts; 1 is wanted"),
        ("gpt3-2.7b", {"gpus": 4, TP: 2, ETP: 1}, "--expert-tensor-parallel-size 1: gpt3-2.7b has no experts"),
        ("mixtral-8x7b", {"gpus": 6, EP: 3}, "does not divide the 8 experts of mixtral-8x7b; allowed: 1, 2, 4, 8"),
        ("mixtral-8x7b", {"gpus": 4, EP: 8}, "the 4 ranks of a pipeline stage are not divisible by expert"),
        ("mixtral-8x7b", {"gpus": 4, ETP: 3}, "does not divide the 4 ranks of a pipeline stage; allowed: 1, 2, 4"),
        ("mixtral-8x7b", {"gpus": 4, TP: 2}, "experts with tensor parallelism need --sequence-parallel"),
        ("gpt3-2.7b", {"gpus": 1, "seq_length": 4096}, "--seq-length 4096: gpt3-2.7b has 2048 positions"),
        ("gpt3-2.7b", {"gpus": 4, CP: 4, "seq_length": 2044}, "--seq-length 2044: a multiple of 8 is wanted"),
        ("gpt3-2.7b", {"gpus": 2, TP: 2, "sequence_parallel": True, "seq_length": 99}, "a multiple of 2 is wanted"),
        ("gpt3-2.7b", {"gpus": 1, "overlap_param_gather": True}, "needs --use-distributed-optimizer and"),
        ("gpt3-2.7b", {"gpus": 1, CHUNK: 2}, "needs --pipeline-model-parallel-size 2 or more"),
        ("gpt3-2.7b", {"gpus": 2, PP: 2, CHUNK: 3}, "--num-layers-per-virtual-pipeline-stage 3: does not divide"),
        ("gpt3-2.7b", {"gpus": 2, PP: 2, CHUNK: 4, "global_batch_size": 3}, "wants a multiple of the pipeline size 2"),
        (
            "gpt3-2.7b",
            {"gpus": 4, PP: 4, FIRST: 3},
            "leaves 29 of 32 layers for 3 stages; a multiple of those is wanted",
        ),
        ("gpt3-2.7b", {"gpus": 2, PP: 2, FIRST: 40}, "leaves -8 of 32 layers"),
        ("gpt3-2.7b", {"gpus": 2, PP: 2, LAST: 8, LOSS: True}, "not together with"),
    ],
)
def test_what_does_not_fit_is_refused(model, options, said):
    with pytest.raises(InputError) as caught:
        plan(load_model(model), options)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


class TestSplit:
    """Layers of stages and chunks."""

    def split(self, layers, **options):
        """The first layer and the number of layers of each chunk of each stage."""
        stages = split_layers(MegatronOptions(gpus=64, **options), layers)
        return [[(chunk.start, len(chunk)) for chunk in stage] for stage in stages]

    def test_even(self):
        assert self.split(8, **{PP: 4}) == [[(0, 2)], [(2, 2)], [(4, 2)], [(6, 2)]]

    def test_chunks_go_round_the_stages(self):
        """Stage 0 of 2 with chunks of one layer holds layers 0 and 2 of four (arXiv 2104.04473, section 2.2.2)."""
        assert self.split(4, **{PP: 2, CHUNK: 1}) == [[(0, 1), (2, 1)], [(1, 1), (3, 1)]]

    def test_embedding_and_loss_take_the_place_of_a_layer(self):
        """Llama 3.1 405B: 126 layers on 16 stages, 7 on the first and last, 8 between (arXiv 2407.21783, 3.3.2)."""
        stages = self.split(126, **{PP: 16, EMBEDDING: True, LOSS: True})
        assert [stage[0][1] for stage in stages] == [7, *[8] * 14, 7]
        assert sum(stages[15][0]) == 126

    def test_first_and_last_stage_by_number(self):
        stages = self.split(61, **{PP: 16, LAST: 1})
        assert [stage[0][1] for stage in stages] == [*[4] * 15, 1]
        assert [stage[0][1] for stage in self.split(10, **{PP: 3, FIRST: 2, LAST: 4})] == [2, 4, 4]
        assert [stage[0][1] for stage in self.split(10, **{PP: 2, FIRST: 3})] == [3, 7]
