"""Whether a serving workload adds up to what the closed forms say."""

from collections import Counter
from collections.abc import Iterator, Sequence

from r2cc_simai.workloads.manifest import Check
from r2cc_simai.workloads.model_math import parameters
from r2cc_simai.workloads.models import Model
from r2cc_simai.workloads.program import Workload
from r2cc_simai.workloads.serving_closed_forms import (
    Load,
    Total,
    cached_bytes_per_token,
    load_of,
    serving_flops,
    serving_traffic,
)
from r2cc_simai.workloads.serving_costs import padded_vocab
from r2cc_simai.workloads.vllm_options import VllmOptions
from r2cc_simai.workloads.vllm_pools import Pool

PUBLISHED = 0.005
"""Allowed relative difference from a published parameter count."""
FLOPS = 0.01
"""Allowed relative difference from 2 N + attention: N counts norms and biases, which multiply nothing."""


def check_manifest(workload: Workload, pools: Sequence[Pool]) -> list[Check]:
    """Every closed form against what the nodes of the programs add up to; counts and bytes have to be equal."""
    manifest = workload.manifest
    options = VllmOptions.model_validate(manifest.options)
    model = Model.model_validate(manifest.model)
    padded = model.model_copy(update={"vocab": padded_vocab(model.vocab, options.tensor_parallel_size)})
    loads = [load_of(pool.steps, pool.sizes.tp) for pool in pools]
    checks = []
    if model.published_parameters:
        tolerance = max(PUBLISHED, model.published_rounding / model.published_parameters)
        whole = parameters(model).total
        checks.append(_check("parameters, as published", model.published_parameters, whole, tolerance, of_trace=False))
    checks += [
        _check(f"tokens, {pool.phase}", wanted, load.W * pool.sizes.dp)
        for pool, load in zip(pools, loads, strict=True)
        for wanted in _all_tokens(pool, options)
    ]
    flops = sum(serving_flops(padded, pool.sizes, load) for pool, load in zip(pools, loads, strict=True))
    checks.append(_check("FLOPs, 2N + attention", flops, manifest.flops, FLOPS))
    wanted: Counter[tuple[str, str]] = Counter()
    for kind, comm, size in _totals(padded, options, pools, loads):
        wanted[kind, comm] += size
    counted = Counter({(entry.group_kind, entry.comm_type): entry.total_bytes for entry in manifest.traffic})
    for kind, comm in sorted({*wanted, *counted}):
        checks.append(_check(f"bytes, {kind} {comm}", wanted[kind, comm], counted[kind, comm]))
    return checks


def _all_tokens(pool: Pool, options: VllmOptions) -> Iterator[int]:
    """Tokens that all replicas work on, by the options; nothing where a limit on the steps cuts the work."""
    prompts = options.num_prompts or 0
    if pool.phase == "decode":
        yield prompts * (options.iterations or options.output_len - 1)
    elif options.kv_transfer or options.iterations is None:
        yield prompts * (options.input_len + (options.output_len - 1 if pool.phase == "mixed" else 0))


def _totals(model: Model, options: VllmOptions, pools: Sequence[Pool], loads: Sequence[Load]) -> Iterator[Total]:
    for pool, load in zip(pools, loads, strict=True):
        yield from serving_traffic(model, pool.sizes, load)
    if options.kv_transfer:
        prompts = (options.num_prompts or 0) * options.input_len
        yield "kv", "SEND", prompts * cached_bytes_per_token(model, options.tensor_parallel_size)


def _check(name: str, formula: float, trace: float, tolerance: float = 0.0, *, of_trace: bool = True) -> Check:
    return Check(name=name, formula=formula, trace=trace, tolerance=tolerance, of_trace=of_trace)
