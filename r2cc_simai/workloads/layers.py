"""The forward and backward pass of one transformer layer, with the communication of tensor, context and expert
parallelism where Megatron-Core has it.

Without sequence parallelism an AllReduce ends each block in the forward pass, and one of its input's gradient each
block in the backward pass, beside the weight gradients. With it, an AllGather precedes each block and a ReduceScatter
ends it; the backward pass mirrors both, and gathers the block's input once more for the weight gradients, beside the
input gradients. Sources: Shoeybi et al., arXiv 1909.08053; Korthikanti et al., arXiv 2205.05198; Megatron-LM,
megatron/core/tensor_parallel/layers.py.
"""

from collections.abc import Callable

from r2cc_simai.chakra.schema import CommType
from r2cc_simai.workloads import context_ring as ring
from r2cc_simai.workloads.blocks import Block
from r2cc_simai.workloads.segment import Cost, SegmentBuilder
from r2cc_simai.workloads.step_costs import StepCosts

Hook = Callable[[SegmentBuilder, int, Block], None]
"""Called before a block's forward pass, or when its weight gradients are there; layer -1: outside of the layers."""


def no_hook(_b: SegmentBuilder, _layer: int, _block: Block) -> None:
    """Nothing to do."""


class Layers:
    """Adds passes of layers to a segment; `first_tag` is the first tag that ring exchanges may use."""

    def __init__(self, costs: StepCosts, first_tag: int) -> None:
        self._costs = costs
        self._sequence_parallel = costs.options.sequence_parallel
        self._first_tag = first_tag

    def forward(self, b: SegmentBuilder, layer: int, before: Hook = no_hook, *, again: bool = False) -> None:
        """The forward pass; `before` is called ahead of each block; `again`: as recomputation."""
        label = f"layer{layer}." + ("recompute" if again else "forward")
        before(b, layer, "attention")
        self._attention_forward(b, layer, label, again)
        if self._costs.model.is_expert_layer(layer):
            before(b, layer, "router")
            before(b, layer, "experts")
            self._experts_forward(b, label, again)
        else:
            before(b, layer, "mlp")
            self.enter(b, f"{label}.mlp", "mlp")
            b.compute(f"{label}.mlp", self._costs.block("mlp", "forward"), again=again)
            self.leave(b, f"{label}.mlp")

    def backward(self, b: SegmentBuilder, layer: int, ready: Hook) -> None:
        """The backward pass, behind what is computed again for it."""
        recompute = self._costs.options.recompute_granularity
        if recompute == "full":
            self.forward(b, layer, again=True)
        label = f"layer{layer}.backward"
        if self._costs.model.is_expert_layer(layer):
            self._experts_backward(b, layer, label, ready)
        else:
            self.block_backward(b, layer, "mlp", f"{label}.mlp", ready)
        self._attention_backward(b, layer, label, ready)

    def enter(self, b: SegmentBuilder, name: str, block: Block) -> None:
        """A block's input, whole, where its ranks hold parts of it."""
        if self._sequence_parallel:
            shard = self._costs.input_bytes(block) // self._costs.sizes.tp
            b.collective(f"{name}.gather", CommType.ALL_GATHER, "tp", shard)

    def return_gradient(self, b: SegmentBuilder, name: str) -> None:
        """The gradient of what `leave` summed, whole."""
        if self._sequence_parallel:
            b.collective(f"{name}.output_gradient", CommType.ALL_GATHER, "tp", self._costs.shard_bytes)

    def leave(self, b: SegmentBuilder, name: str) -> None:
        """The sum of what the ranks of the tensor-parallel group computed."""
        if self._sequence_parallel:
            b.collective(f"{name}.scatter", CommType.REDUCE_SCATTER, "tp", self._costs.hidden_bytes)
        else:
            b.collective(f"{name}.reduce", CommType.ALL_REDUCE, "tp", self._costs.hidden_bytes)

    def block_backward(
        self, b: SegmentBuilder, layer: int, block: Block, name: str, ready: Hook, *, gather: bool = True
    ) -> None:
        """A divided block's backward pass; `gather`: its output's gradient has to be gathered first."""
        if gather:
            self.return_gradient(b, name)
        self._gradients(b, layer, block, name, ready, lambda: b.compute(f"{name}.dgrad", self._dgrad(block)))

    def _dgrad(self, block: Block) -> Cost:
        return self._costs.block(block, "dgrad")

    def _gradients(
        self,
        b: SegmentBuilder,
        layer: int,
        block: Block,
        name: str,
        ready: Hook,
        input_gradients: Callable[[], None],
    ) -> None:
        """Input gradients, then weight gradients while the input's gradient is summed over the group."""
        gathered: tuple[int, ...] = ()
        size = self._costs.input_bytes(block)
        if self._sequence_parallel:
            gathered = b.start(f"{name}.input", CommType.ALL_GATHER, "tp", size // self._costs.sizes.tp)
        input_gradients()
        b.wait(gathered)
        comm = CommType.REDUCE_SCATTER if self._sequence_parallel else CommType.ALL_REDUCE
        summed = b.start(f"{name}.input_gradient", comm, "tp", size)
        b.compute(f"{name}.wgrad", self._costs.block(block, "wgrad"))
        ready(b, layer, block)
        b.wait(summed)

    def _attention_forward(self, b: SegmentBuilder, layer: int, label: str, again: bool) -> None:
        costs, name = self._costs, f"{label}.attention"
        self.enter(b, name, "attention")
        whole = costs.block("attention", "forward")
        if costs.sizes.cp == 1:
            b.compute(name, whole, again=again)
        else:
            core = costs.block("attention_core", "forward")
            b.compute(f"{name}.projections", whole - core, again=again)
            self._core_forward(b, layer, f"{name}.core", again)
        self.leave(b, name)

    def _core_forward(self, b: SegmentBuilder, layer: int, name: str, again: bool) -> None:
        costs = self._costs
        core = costs.block("attention_core", "forward")
        if costs.sizes.cp == 1:
            b.compute(name, core, again=again)
        elif costs.options.cp_comm_type == "all_gather":
            ring.gathered_forward(b, name, core, costs.key_value_bytes, again=again)
        else:
            tag = self._tag(layer, 1 if again else 0)
            ring.ring_forward(b, name, core, costs.key_value_bytes, costs.sizes.cp, tag, again=again)

    def _attention_backward(self, b: SegmentBuilder, layer: int, label: str, ready: Hook) -> None:
        costs, name, cp = self._costs, f"{label}.attention", self._costs.sizes.cp
        self.return_gradient(b, name)
        if costs.options.recompute_granularity == "selective":
            self._core_forward(b, layer, f"layer{layer}.recompute.attention.core", True)
        whole = self._dgrad("attention")
        if cp > 1:
            core = self._dgrad("attention_core")
            self._core_backward(b, layer, f"{name}.core")
            whole = whole - core
        self._gradients(b, layer, "attention", name, ready, lambda: b.compute(f"{name}.dgrad", whole))

    def _core_backward(self, b: SegmentBuilder, layer: int, name: str) -> None:
        costs, core = self._costs, self._dgrad("attention_core")
        if costs.options.cp_comm_type == "all_gather":
            ring.gathered_backward(b, name, core, costs.key_value_bytes, costs.sizes.cp)
        else:
            ring.ring_backward(b, name, core, costs.key_value_bytes, costs.sizes.cp, self._tag(layer, 2))

    def _tag(self, layer: int, pass_: int) -> int:
        cp = self._costs.sizes.cp
        return self._first_tag + layer * ring.ring_tags(cp) + pass_ * cp

    @property
    def _has_shared(self) -> bool:
        experts = self._costs.model.experts
        return experts is not None and experts.shared > 0

    def _experts_forward(self, b: SegmentBuilder, label: str, again: bool) -> None:
        """Router and shared experts; dispatch, experts, combine. Routing is balanced."""
        costs, routed = self._costs, self._costs.routed_bytes
        if self._has_shared:
            self.enter(b, f"{label}.shared_experts", "router")
        b.compute(f"{label}.router", costs.block("router", "forward"), again=again)
        self._dispatch(b, f"{label}.dispatch", routed)
        b.compute(f"{label}.experts", costs.block("experts", "forward"), again=again)
        self._combine(b, f"{label}.combine", routed)
        if self._has_shared:
            self.leave(b, f"{label}.shared_experts")

    def _experts_backward(self, b: SegmentBuilder, layer: int, label: str, ready: Hook) -> None:
        """The mirror: the gradients take the way of the outputs back to the experts, then that of the inputs."""
        costs, routed = self._costs, self._costs.routed_bytes
        self._dispatch(b, f"{label}.combine", routed)
        b.compute(f"{label}.experts.dgrad", self._dgrad("experts"))
        b.compute(f"{label}.experts.wgrad", costs.block("experts", "wgrad"))
        ready(b, layer, "experts")
        self._combine(b, f"{label}.dispatch", routed)
        if self._has_shared:
            self.block_backward(b, layer, "router", f"{label}.router", ready)
            return
        b.compute(f"{label}.router.dgrad", self._dgrad("router"))
        b.compute(f"{label}.router.wgrad", costs.block("router", "wgrad"))
        ready(b, layer, "router")

    def _dispatch(self, b: SegmentBuilder, name: str, routed: int) -> None:
        """Copies of tokens to the ranks of their experts, and to all ranks that share one."""
        b.collective(name, CommType.ALL_TO_ALL, "ep", routed)
        b.collective(f"{name}.gather", CommType.ALL_GATHER, "expert_tp", routed)

    def _combine(self, b: SegmentBuilder, name: str, routed: int) -> None:
        """The way back, partial results of ranks that share an expert summed first."""
        b.collective(f"{name}.scatter", CommType.REDUCE_SCATTER, "expert_tp", routed * self._costs.sizes.expert_tp)
        b.collective(name, CommType.ALL_TO_ALL, "ep", routed)
