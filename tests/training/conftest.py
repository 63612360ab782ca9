"""Small training jobs, made in memory."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pytest

from r2cc_simai.chakra.folder import TraceSet
from r2cc_simai.chakra.memory import trace_set
from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.runners.training import job_of
from r2cc_simai.training.job import TrainingJob
from r2cc_simai.workloads.compute_times import compute_times
from r2cc_simai.workloads.megatron import generate
from r2cc_simai.workloads.megatron_options import MegatronOptions
from r2cc_simai.workloads.models import load_model

Maker = Callable[..., TrainingJob]


@lru_cache(maxsize=16)
def traces(model: str, layers: int, options: MegatronOptions) -> TraceSet:
    """A GPT of fewer layers than it has, so that tests are quick."""
    small = load_model(model).model_copy(update={"layers": layers})
    return trace_set(generate("small", small, options, compute_times("roofline", "A100-SXM4-80GB")))


@pytest.fixture
def make_job() -> Maker:
    """Makes a job: options of Megatron, on servers of a preset."""

    def make(cluster: str, model: str = "gpt3-2.7b", layers: int = 4, **options: Any) -> TrainingJob:
        where = load_cluster(cluster)
        return job_of(traces(model, layers, MegatronOptions(gpus=where.n_ranks, **options)), where)

    return make
