"""Whether a PPO workload adds up to what the closed forms say."""

from collections import Counter
from collections.abc import Iterator, Sequence

from r2cc_simai.workloads.engine_batches import Step
from r2cc_simai.workloads.manifest import Check
from r2cc_simai.workloads.model_math import parameters
from r2cc_simai.workloads.models import Model
from r2cc_simai.workloads.program import Workload
from r2cc_simai.workloads.rlhf_closed_forms import all_flops, all_traffic
from r2cc_simai.workloads.rlhf_layout import GENERATION_TP
from r2cc_simai.workloads.rlhf_options import RlhfOptions
from r2cc_simai.workloads.serving_closed_forms import load_of, serving_flops, serving_traffic
from r2cc_simai.workloads.serving_costs import padded_vocab
from r2cc_simai.workloads.serving_layout import ServingSizes

PUBLISHED = 0.005
"""Allowed relative difference from a published parameter count."""
FLOPS = 0.01
"""Allowed relative difference from 2 N + attention: N counts norms and biases, which multiply nothing."""


def check_manifest(workload: Workload, engine: ServingSizes, steps: Sequence[Step]) -> list[Check]:
    """Every closed form against what the nodes of the programs add up to; counts and bytes have to be equal.

    Args:
        workload: with its manifest.
        engine: layout of the generation engines.
        steps: of each engine for one batch of responses.
    """
    manifest = workload.manifest
    options = RlhfOptions.model_validate(manifest.options)
    models = {role: Model.model_validate(model) for role, model in manifest.model.items()}
    actor = models["actor"].model_copy(update={"vocab": padded_vocab(models["actor"].vocab, engine.tp)})
    load = load_of([*steps] * options.generation_batches, engine.tp)
    checks = list(_published(models))
    generated = options.rollout_batch_size * (options.sequence - 1)  # the last token is not looked at any more
    checks.append(Check(name="tokens, generation", formula=generated, trace=load.W * engine.dp))
    flops = all_flops(options, models) + serving_flops(actor, engine, load)
    checks.append(Check(name="FLOPs, by phase", formula=flops, trace=manifest.model_flops, tolerance=FLOPS))
    wanted: Counter[tuple[str, str]] = all_traffic(options, models)
    for kind, comm, size in serving_traffic(actor, engine, load, GENERATION_TP):
        wanted[kind, comm] += size
    counted = Counter({(entry.group_kind, entry.comm_type): entry.total_bytes for entry in manifest.traffic})
    for kind, comm in sorted({*wanted, *counted}):
        checks.append(Check(name=f"bytes, {kind} {comm}", formula=wanted[kind, comm], trace=counted[kind, comm]))
    return checks


def _published(models: dict[str, Model]) -> Iterator[Check]:
    for role, model in models.items():
        if model.published_parameters:
            yield Check(
                name=f"parameters of the {role}'s model, as published",
                formula=model.published_parameters,
                trace=parameters(model).total,
                tolerance=max(PUBLISHED, model.published_rounding / model.published_parameters),
                of_trace=False,
            )
