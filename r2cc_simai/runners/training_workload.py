"""The job that a scenario file describes, training or serving: its workload, in memory, on its cluster."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, Protocol, TypeVar, get_args

from r2cc_simai.chakra.memory import trace_set
from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.model import Cluster
from r2cc_simai.config import Strict, validated
from r2cc_simai.errors import InputError
from r2cc_simai.runners.training import job_of
from r2cc_simai.training.job import TrainingJob
from r2cc_simai.workloads import megatron, rlhf, vllm
from r2cc_simai.workloads.compute_times import ComputeTimes, compute_times
from r2cc_simai.workloads.gpus import load_gpu
from r2cc_simai.workloads.manifest import Manifest
from r2cc_simai.workloads.megatron_options import MegatronOptions, parallel_sizes, resolve
from r2cc_simai.workloads.megatron_options import check as check_megatron
from r2cc_simai.workloads.models import Model, load_model
from r2cc_simai.workloads.program import Workload
from r2cc_simai.workloads.rlhf_options import RlhfOptions
from r2cc_simai.workloads.rlhf_options import check as check_rlhf
from r2cc_simai.workloads.vllm_options import VllmOptions
from r2cc_simai.workloads.vllm_options import resolve as resolve_vllm

Generator = Literal["megatron", "rlhf", "vllm"]
GENERATORS: tuple[Generator, ...] = get_args(Generator)
"""What a scenario file may write: `trace` has a command of each name, with the same options."""
Options = TypeVar("Options", bound=Strict)
KEPT = 1  # jobs in memory; the cases of one job follow each other


@dataclass(frozen=True)
class JobSpec:
    """What makes a job, by value. `options` are those of the generator as JSON, without the number of GPUs.

    `nic_rate_gbps` and `backups_per_nic` replace what the cluster says of its NICs; None: they do not.
    """

    generator: Generator
    options: str
    gpu: str
    mfu_scale: float
    cluster: str
    nic_rate_gbps: float | None = None
    backups_per_nic: int | None = None

    @property
    def hardware(self) -> Cluster:
        """The cluster with what the job replaces.

        Raises:
            InputError: there is no such cluster.
        """
        return _hardware(self.cluster, self.nic_rate_gbps, self.backups_per_nic)

    def check(self) -> None:
        """Reads options, models and GPU without making anything of them.

        Raises:
            InputError: the first thing that is wrong, with its key in front.
        """
        _keyed("gpu", lambda: load_gpu(self.gpu))
        _keyed(self.generator, lambda: _GENERATORS[self.generator][0](self))

    def job(self) -> TrainingJob:
        """The job; its name says with which settings (`settings_of`). Kept in memory for the next case.

        Raises:
            InputError: options that do not fit together.
        """
        return _job(self)

    def given(self) -> dict[str, Any]:
        """The options of the generator, with the GPUs of the whole cluster."""
        options: dict[str, Any] = json.loads(self.options)
        if "gpus" in options:
            raise InputError("gpus: unknown key; the job takes the whole cluster")
        return options | {"gpus": self.hardware.n_ranks}


class Written(Protocol):
    """A block of a scenario file that describes a job: the options of one generator, named like it, and the rest."""

    @property
    def megatron(self) -> dict[str, Any] | None: ...
    @property
    def rlhf(self) -> dict[str, Any] | None: ...
    @property
    def vllm(self) -> dict[str, Any] | None: ...
    @property
    def gpu(self) -> str | None: ...
    @property
    def mfu_scale(self) -> float: ...
    @property
    def nic_rate_gbps(self) -> float | None: ...
    @property
    def backups_per_nic(self) -> int | None: ...


def generators_in(block: Written) -> list[Generator]:
    """The generators of which a block has options."""
    return [name for name in GENERATORS if getattr(block, name) is not None]


def options_in(block: Written) -> dict[str, Any]:
    """The options that a block has of its generator."""
    return next((getattr(block, name) for name in generators_in(block)), {})


def label_of(block: Written) -> str:
    """What a block's job is called before it is made: its model."""
    options = options_in(block)
    return str(options.get("model") or options.get("actor_model") or generators_in(block)[0])


def spec_of(block: Written, cluster: str) -> JobSpec:
    """The job of a block on a cluster, of which it takes all."""
    return JobSpec(
        generator=generators_in(block)[0],
        options=json.dumps(options_in(block)),
        gpu=str(block.gpu),
        mfu_scale=block.mfu_scale,
        cluster=cluster,
        nic_rate_gbps=block.nic_rate_gbps,
        backups_per_nic=block.backups_per_nic,
    )


def settings_of(spec: JobSpec, manifest: Manifest) -> str:
    """All that a result of the job depends on, as `key=value` pairs after the model's name."""
    pairs = _GENERATORS[spec.generator][2](manifest)
    pairs["gpu"] = load_gpu(spec.gpu).name
    if spec.mfu_scale != 1:
        pairs["mfu_scale"] = f"{spec.mfu_scale:g}"
    if spec.nic_rate_gbps is not None:
        pairs["nic_gbps"] = f"{spec.nic_rate_gbps:g}"
    if spec.backups_per_nic is not None:
        pairs["backups"] = str(spec.backups_per_nic)
    return " ".join([str(pairs.pop("model")), *(f"{key}={value}" for key, value in pairs.items())])


@lru_cache(maxsize=KEPT)
def _job(spec: JobSpec) -> TrainingJob:
    times = compute_times("roofline", spec.gpu, mfu_scale=spec.mfu_scale)
    workload = _GENERATORS[spec.generator][1](spec, times)
    return replace(job_of(trace_set(workload), spec.hardware), name=settings_of(spec, workload.manifest))


@lru_cache(maxsize=16)
def _hardware(name: str, nic_rate_gbps: float | None, backups_per_nic: int | None) -> Cluster:
    cluster = load_cluster(name)
    spec = cluster.spec
    if nic_rate_gbps is not None:
        change = {"rate_gbps": nic_rate_gbps, "line_rate_gbps": None}
        nics = [nic.model_copy(update=change) for nic in spec.server.nics]
        spec = spec.model_copy(update={"server": spec.server.model_copy(update={"nics": nics})})
    if backups_per_nic is not None:
        failover = spec.failover.model_copy(update={"backups_per_nic": backups_per_nic})
        spec = spec.model_copy(update={"failover": failover})
    return cluster if spec is cluster.spec else Cluster(cluster.name, spec)


def _read(spec: JobSpec, kind: type[Options], check: Callable[[Options, Model], object]) -> tuple[Model, Options]:
    """The model and the options of a job that has one model; `check` raises for what does not fit together."""
    given = spec.given()
    model = load_model(str(given.pop("model", "")))
    options = validated(kind, given, "options")
    check(options, model)
    return model, options


def _megatron_options(spec: JobSpec) -> tuple[Model, MegatronOptions]:
    return _read(spec, MegatronOptions, lambda options, model: check_megatron(resolve(options, model), model))


def _megatron(spec: JobSpec, times: ComputeTimes) -> Workload:
    model, options = _megatron_options(spec)
    return megatron.generate(model.name, model, options, times)


def _megatron_settings(manifest: Manifest) -> dict[str, object]:
    options = MegatronOptions.model_validate(manifest.options)
    sizes = parallel_sizes(options)
    own = sum(bucket.parameters for bucket in manifest.buckets if bucket.rank_class == 0)
    pairs: dict[str, object] = {"model": manifest.model["name"], "tp": sizes.tp, "pp": sizes.pp, "dp": sizes.dp}
    pairs |= {key: size for key, size in (("cp", sizes.cp), ("ep", sizes.ep)) if size > 1}
    pairs |= {
        "batch": options.global_batch_size,
        "micro_batch": options.micro_batch_size,
        "sequence": options.seq_length,
        "gradients": "fp32" if options.accumulate_allreduce_grads_in_fp32 else "bf16",
        "gradient_gb": f"{own * options.gradient_bytes / 1e9:.3g}",
        "overlap": "yes" if options.overlap_grad_reduce else "no",
    }
    flags = {
        "optimizer": "distributed" if options.use_distributed_optimizer else None,
        "sequence_parallel": "yes" if options.sequence_parallel else None,
        "virtual_stage_layers": options.num_layers_per_virtual_pipeline_stage,
        "recompute": options.recompute_granularity if options.recompute_granularity != "none" else None,
        "bucket": options.ddp_bucket_size,
    }
    return pairs | {key: value for key, value in flags.items() if value is not None}


def _rlhf_options(spec: JobSpec) -> tuple[dict[str, Model], RlhfOptions]:
    options = validated(RlhfOptions, spec.given(), "options")
    models = {
        "actor": load_model(options.actor_model),
        "critic": load_model(options.critic_model),
        "reward": load_model(options.reward_model),
    }
    check_rlhf(options, models)
    return models, options


def _rlhf(spec: JobSpec, times: ComputeTimes) -> Workload:
    models, options = _rlhf_options(spec)
    return rlhf.generate(f"rlhf-{models['actor'].name}", models, options, times)


def _rlhf_settings(manifest: Manifest) -> dict[str, object]:
    options = RlhfOptions.model_validate(manifest.options)
    models = {options.actor_model, options.critic_model, options.reward_model}
    return {
        "model": f"rlhf-{'+'.join(sorted(models))}",
        "tp": options.tensor_model_parallel_size,
        "pp": options.pipeline_model_parallel_size,
        "dp": options.replicas,
        "generation_tp": options.generation_tensor_parallel_size,
        "rollout": options.rollout_batch_size,
        "mini_batch": options.ppo_mini_batch_size,
        "micro_batch": options.micro_batch_size,
        "prompt": options.prompt_length,
        "response": options.response_length,
        "gradients": "fp32" if options.accumulate_allreduce_grads_in_fp32 else "bf16",
        "overlap": "yes" if options.overlap_grad_reduce else "no",
        "weights": options.weight_sync,
    }


def _vllm_options(spec: JobSpec) -> tuple[Model, VllmOptions]:
    return _read(spec, VllmOptions, resolve_vllm)


def _vllm(spec: JobSpec, times: ComputeTimes) -> Workload:
    model, options = _vllm_options(spec)
    return vllm.generate(model.name, model, options, times)


def _vllm_settings(manifest: Manifest) -> dict[str, object]:
    options = VllmOptions.model_validate(manifest.options)
    pairs: dict[str, object] = {
        "model": manifest.model["name"],
        "tp": options.tensor_parallel_size,
        "pp": options.pipeline_parallel_size,
        "dp": options.data_parallel_size,
        "phase": options.phase or "prefill+decode",
        "batch": options.batch_size,
        "input": options.input_len,
        "output": options.output_len,
    }
    flags = {
        "expert_parallel": "yes" if options.enable_expert_parallel else None,
        "prefill_gpus": options.prefill_gpus,
        "batched_tokens": options.max_num_batched_tokens if options.phase != "decode" else None,
        "steps": options.iterations,
    }
    return pairs | {key: value for key, value in flags.items() if value is not None}


_GENERATORS: dict[
    Generator,
    tuple[
        Callable[[JobSpec], object],
        Callable[[JobSpec, ComputeTimes], Workload],
        Callable[[Manifest], dict[str, object]],
    ],
] = {
    "megatron": (_megatron_options, _megatron, _megatron_settings),
    "rlhf": (_rlhf_options, _rlhf, _rlhf_settings),
    "vllm": (_vllm_options, _vllm, _vllm_settings),
}


def _keyed(key: str, read: Callable[[], object]) -> None:
    try:
        read()
    except InputError as error:
        raise InputError(f"{key}: {str(error).removeprefix('options: ')}") from None
