"""Whether a training workload adds up to what the closed forms say."""

from collections import Counter

import numpy as np

from r2cc_simai.workloads.closed_forms import Job, activation_traffic, gradient_traffic, training_flops
from r2cc_simai.workloads.manifest import Check
from r2cc_simai.workloads.megatron_options import MegatronOptions, parallel_sizes
from r2cc_simai.workloads.model_math import parameters
from r2cc_simai.workloads.models import Model
from r2cc_simai.workloads.program import NONE, Workload
from r2cc_simai.workloads.traffic import count_traffic

PUBLISHED = 0.005
"""Allowed relative difference from a published parameter count."""
FLOPS = 0.01
"""Allowed relative difference from 6 N + attention: N counts norms and biases, which multiply nothing."""


def check_manifest(workload: Workload) -> list[Check]:
    """Every closed form against what the nodes of the programs add up to; counts and bytes have to be equal."""
    manifest = workload.manifest
    job = _job(workload)
    checks = []
    published, rounding = job_model(workload).published_parameters, job_model(workload).published_rounding
    if published:
        tolerance = max(PUBLISHED, rounding / published)
        checks.append(
            Check(
                name="parameters, as published",
                formula=published,
                trace=manifest.parameters,
                tolerance=tolerance,
                of_trace=False,
            )
        )
    checks.append(_check("parameters, padded vocabulary", parameters(job.model).total, manifest.parameters))
    checks.append(_check("FLOPs, 6N + attention", training_flops(job), manifest.model_flops, FLOPS))
    wanted: Counter[tuple[str, str]] = Counter()
    buckets = [(bucket.group_kind, bucket.parameters) for bucket in manifest.buckets]
    for kind, comm, size in (*activation_traffic(job), *gradient_traffic(job, buckets)):
        wanted[kind, comm] += size
    counted = _bytes(workload)
    for kind, comm in sorted({*wanted, *counted}):
        checks.append(_check(f"bytes, {kind} {comm}", wanted[kind, comm], counted[kind, comm]))
    return checks


def job_model(workload: Workload) -> Model:
    """The model as its file describes it."""
    return Model.model_validate(workload.manifest.model)


def _job(workload: Workload) -> Job:
    manifest = workload.manifest
    options = MegatronOptions.model_validate(manifest.options)
    padded = job_model(workload).model_copy(update={"vocab": manifest.layout["vocab"]})
    return Job(padded, options, parallel_sizes(options), manifest.layout["chunks"])


def _bytes(workload: Workload) -> Counter[tuple[str, str]]:
    """Bytes of all ranks by group kind and operation, from the nodes."""
    roles = [
        workload.group_kind[int(column[column != NONE][0])] for column in workload.rank_groups.T
    ]  # every role is used by some rank
    ranks = np.bincount(workload.rank_class, minlength=len(workload.programs))
    traffic = count_traffic(workload.programs, roles, ranks)
    return Counter({(entry.group_kind, entry.comm_type): entry.total_bytes for entry in traffic})


def _check(name: str, formula: float, trace: float, tolerance: float = 0.0) -> Check:
    return Check(name=name, formula=formula, trace=trace, tolerance=tolerance)
