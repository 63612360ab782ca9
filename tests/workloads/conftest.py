"""Small models, unit compute times, and a reference executor of a workload's dependencies."""

from collections import defaultdict
from dataclasses import dataclass

import pytest

from r2cc_simai.chakra.schema import NodeType
from r2cc_simai.workloads.megatron import generate
from r2cc_simai.workloads.megatron_options import MegatronOptions
from r2cc_simai.workloads.models import Model

SHAPE = {
    "layers": 8,
    "hidden": 256,
    "heads": 8,
    "ffn_hidden": 512,
    "vocab": 1000,
    "max_positions": 4096,
    "biases": False,
    "gated_mlp": True,
    "norm": "rmsnorm",
    "positions": "rope",
    "tied_embeddings": False,
}
EXPERTS = {"count": 8, "per_token": 2, "ffn_hidden": 128}
LATENT = {"q_lora_rank": 96, "kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32}
VARIANTS = {
    "gpt": {
        "biases": True,
        "gated_mlp": False,
        "norm": "layernorm",
        "positions": "learned",
        "tied_embeddings": True,
    },
    "llama": {"kv_heads": 4},
    "mixtral": {"kv_heads": 4, "experts": EXPERTS},
    "deepseek": {
        "experts": EXPERTS | {"shared": 1, "first_dense_layers": 2, "score_bias": True},
        "latent_attention": LATENT,
    },
}


@dataclass(frozen=True)
class UnitTimes:
    """Every pass of a layer's block takes a second; embedding, logits and optimizer take none."""

    description: str = "one second a pass of a block"

    def block_seconds(self, request):
        return float(request.block in ("attention", "mlp", "router", "experts"))


@pytest.fixture(scope="session")
def small_model():
    """Return a function that gives a model of one of VARIANTS, with other values where they are named."""

    def make(variant="llama", **other):
        return Model.model_validate({"name": variant, **SHAPE, **VARIANTS[variant], **other})

    return make


@pytest.fixture(scope="session")
def megatron_job(small_model):
    """Return a function that generates a job of a small model with unit times; options by their Megatron names."""

    def make(variant="llama", shape=None, **options):
        model = small_model(variant, **(shape or {}))
        return generate("job", model, MegatronOptions(**{"seq_length": 128, **options}), UnitTimes())

    return make


@pytest.fixture(scope="session")
def run_workload():
    """Return a function that runs a workload: seconds at which each rank's last node ends.

    Nodes start when all that they depend on has ended; communication takes no time. A receive ends with its send, a
    collective when the last member has come to it; the k-th one of a rank on a group is the k-th of all members. A
    workload that stops before its end fails the test.
    """
    return _Executor.run


class _Executor:
    def __init__(self, workload):
        self.workload = workload
        self.waiting = defaultdict(dict)  # key of a message or collective -> {(rank, node): ready}
        self.sent = {}
        self.ends = [[None] * len(workload.programs[c]) for c in workload.rank_class]

    @classmethod
    def run(cls, workload):
        executor = cls(workload)
        todo = {rank: list(range(len(ends))) for rank, ends in enumerate(executor.ends)}
        while any(todo.values()):
            before = sum(map(len, todo.values()))
            for rank, nodes in todo.items():
                todo[rank] = [node for node in nodes if not executor.try_node(rank, node)]
            assert sum(map(len, todo.values())) < before, f"ranks wait for each other: {todo}"
        return [max(ends) for ends in executor.ends]

    def try_node(self, rank, node):
        program, ends = self.workload.programs[self.workload.rank_class[rank]], self.ends[rank]
        before = [ends[d] for d in program.deps[program.dep_offsets[node] : program.dep_offsets[node + 1]]]
        if ends[node] is None and None not in before:
            self.start(rank, node, program, max(before, default=0.0))
        return ends[node] is not None

    def start(self, rank, node, program, ready):
        kind, ends = program.kind[node], self.ends[rank]
        if kind == NodeType.COMP:
            ends[node] = ready + program.duration_ns[node] * 1e-9
            return
        if kind == NodeType.COMM_COLL:
            group = self.workload.rank_groups[rank, program.group[node]]
            turn = ((program.group == program.group[node]) & (program.kind == kind))[:node].sum()
            come = self.waiting[group, turn]
            come[rank] = (node, ready)
            if len(come) == len(self.workload.groups[group]):
                end = max(at for _, at in come.values())
                for member, (its_node, _) in come.items():
                    self.ends[member][its_node] = end
            return
        peer = self.workload.rank_peers[rank, program.peer[node]]
        if kind == NodeType.COMM_SEND:
            self.sent[rank, peer, program.tag[node]] = ends[node] = ready
        elif (peer, rank, program.tag[node]) in self.sent:
            ends[node] = max(ready, self.sent[peer, rank, program.tag[node]])
