"""The settings of a job of traces, as the column `workload` has them, in words."""

from collections.abc import Callable, Sequence

from r2cc_simai.results.report import labels, units
from r2cc_simai.results.report.document import Cell, Table, columns
from r2cc_simai.results.table import Row

Told = Callable[[Row], Cell]
"""What a table says of a row."""
_NEVER_TOLD = frozenset({"days", "checkpoint_min"})  # of the day, not of the job


def parse(workload: str) -> dict[str, str]:
    """Return the pairs `key=value` of a job, its model under `model`."""
    model, *pairs = workload.split()
    return {"model": model} | {key: value for key, _, value in (pair.partition("=") for pair in pairs)}


def prose(workload: str, without: Sequence[str] = ()) -> str:
    """Return the settings as one line: model, parallelism, batch, gradients, GPU, calibration; but for some keys."""
    said = {key: value for key, value in parse(workload).items() if key not in without}
    parts = [said.pop("model")]
    parts += [f"{key.upper()} {said.pop(key)}" for key in ("tp", "pp", "dp", "cp", "ep") if key in said]
    parts += [_SAID.get(key, _plain(key))(value) for key, value in said.items() if key not in _NEVER_TOLD]
    return ", ".join(part for part in parts if part)


def difference(workload: str, base: str) -> str:
    """Return the settings in which a job differs from another one; of those, not what follows from the others."""
    own, other = parse(workload), parse(base)
    changed = {key: value for key, value in own.items() if other.get(key) != value and key not in _FOLLOW}
    return ", ".join(_SAID.get(key, _plain(key))(value) for key, value in changed.items()) or "as above"


def apart(workload: str, others: Sequence[str], without: Sequence[str] = ()) -> str:
    """Return the settings in which a job differs from any of the others, but for some keys and what follows from the
    rest."""
    own = {key: value for key, value in parse(workload).items() if key not in without and key not in _NEVER_TOLD}
    changed = [key for key, value in own.items() if any(parse(other).get(key) != value for other in others)]
    told = [key for key in changed if key not in _FOLLOW] or changed
    return ", ".join(_SAID.get(key, _plain(key))(own[key]) for key in told)


def by_strategy(caption: str, rows: Sequence[Row], base: str, ratio: bool = False) -> Table:
    """Return the overhead of each strategy (a column) for each job of `rows` (a line, in what it differs from `base`).

    With `ratio` a last column says how many times as much as R2CC-AllReduce AdapCC costs.
    """
    strategies = sorted({row.strategy for row in rows}, key=labels.strategy_order)
    lines = []
    for workload in dict.fromkeys(row.workload for row in rows):
        own = {row.strategy: row for row in rows if row.workload == workload}
        cells = [overhead(own[s]) if s in own else Cell(units.DASH) for s in strategies]
        lines.append((Cell(difference(workload, base)), *cells, *([Cell(_ratio(own))] if ratio else [])))
    titles = [labels.strategy_name(s) for s in strategies] + (["AdapCC / R2CC-AllReduce"] if ratio else [])
    return Table(caption, columns("<what differs", *titles), tuple(lines))


def _ratio(rows: dict[str, Row]) -> str:
    families = {labels.family(s): row.overhead_pct for s, row in rows.items()}
    ours, other = families.get("r2cc-allreduce"), families.get("adapcc")
    return f"{other / ours:.1f}×" if ours and other else units.DASH


_FOLLOW = frozenset({"dp", "gradient_gb"})


def _plain(key: str) -> Callable[[str], str]:
    return lambda value: f"{key.replace('_', ' ')} {value}"


_SAID: dict[str, Callable[[str], str]] = {
    "model": lambda v: v,
    "tp": lambda v: f"TP {v}",
    "pp": lambda v: f"PP {v}",
    "batch": lambda v: f"batch of {int(v):,} sequences",
    "micro_batch": lambda v: f"{v} at a time",
    "sequence": lambda v: f"{int(v):,} tokens each",
    "gradients": lambda v: f"{v} gradients",
    "gradient_gb": lambda v: f"{v} GB of them on a GPU",
    "overlap": lambda v: "overlapped with the backward pass" if v == "yes" else "not overlapped with the backward pass",
    "gpu": lambda v: f"compute times by the roofline of {v}",
    "mfu_scale": lambda v: f"efficiencies × {float(v):.3f}",
    "nic_gbps": lambda v: f"NICs at an effective {float(v):.1f} Gb/s",
    "backups": lambda v: f"{v} backup NICs",
    "rollout": lambda v: f"{int(v):,} prompts",
    "prompt": lambda v: f"{int(v):,} tokens of prompt",
    "response": lambda v: f"{int(v):,} tokens of response",
    "weights": lambda v: f"new weights by {v.replace('_', ' ')}",
    "phase": lambda v: {"prefill": "prompts only", "decode": "decoding", "mixed": "chunked prefill"}.get(v, v),
    "input": lambda v: f"prompts of {int(v):,} tokens",
    "output": lambda v: f"{int(v):,} tokens in answer",
    "batched_tokens": lambda v: f"at most {int(v):,} tokens a step",
    "steps": lambda v: f"{int(v):,} steps",
    "expert_parallel": lambda _: "whole experts on each rank",
    "prefill_gpus": lambda v: f"prompts on {int(v):,} of the GPUs",
}


def overhead(row: Row) -> Cell:
    """Return a row's overhead with two decimals, since training overheads are small."""
    return Cell(points(row.overhead_pct))


def points(number: float | None) -> str:
    """Return percent with two decimals: `0.75%`."""
    return units.DASH if number is None else units.error(number).lstrip("+")


def published_overhead(row: Row) -> float | None:
    """Return the overhead in percent that the published throughput means."""
    return None if not row.measured or not row.ideal else 100.0 * (row.ideal / row.measured - 1.0)
