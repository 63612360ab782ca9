"""`coll -J`: the simulated runs in the JSON of nccl-tests, a file for each strategy."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from r2cc_simai.errors import InputError

if TYPE_CHECKING:
    from r2cc_simai.measured.model import SizeResult
    from r2cc_simai.measured.nccl_tests_json_write import SimulatedRun
    from r2cc_simai.results import Row
    from r2cc_simai.runners.rows import Simulated


@dataclass(frozen=True)
class Asked:
    """What the options of `coll` asked for. `per_count` is the bytes of the buffer for an element of the count."""

    cluster: str
    failures: Sequence[str]
    options: Mapping[str, str]
    factor: float
    graphs: int
    per_count: int
    datatype: str
    op: str
    root: int


def file_of(path: Path, spec: str, n_strategies: int) -> Path:
    """The file of a strategy: `path`, with the strategy's name before the suffix where there are several.

    Raises:
        InputError: the file exists.
    """
    name = re.sub(r"[^\w.-]+", "-", spec)
    own = path if n_strategies == 1 else path.with_name(f"{path.stem}.{name}{path.suffix}")
    if own.exists():
        raise InputError(f"-J {own}: exists and is not written over; name another file")
    return own


def write(path: Path, runs: "Sequence[Simulated]", rows: "Sequence[Sequence[Row]]", asked: Asked) -> None:
    """Writes the runs of one strategy, smallest size first, with their rows.

    Raises:
        InputError: the file exists or cannot be written.
    """
    from r2cc_simai.measured.nccl_tests_json_write import write_nccl_tests_json

    write_nccl_tests_json(path, _run(runs, rows, asked))


def _run(runs: "Sequence[Simulated]", rows: "Sequence[Sequence[Row]]", asked: Asked) -> "SimulatedRun":
    from r2cc_simai.measured.nccl_tests_json_write import SimulatedRun
    from r2cc_simai.measured.settings import CLUSTER, FAILURES, SEPARATOR, STRATEGY

    cluster, job = runs[0].cluster, runs[0].result.job
    places = [(f"server{server.index}", gpu) for server in cluster.servers for gpu in range(len(server.ranks))]
    return SimulatedRun(
        collective=job.op,
        options=tuple(word for option in asked.options.items() for word in option),
        variables={
            CLUSTER: asked.cluster,
            STRATEGY: runs[0].result.strategy.spec,
            FAILURES: SEPARATOR.join(asked.failures),
        },
        hosts=tuple(host for host, _ in places),
        devices=tuple(device for _, device in places),
        sizes=tuple(size for own in rows if (size := _size(own, asked)) is not None),
        minimum=job.bytes,
        maximum=runs[-1].result.job.bytes,
        factor=asked.factor,
        iterations=job.iterations,
        warmup=job.warmup,
        graphs=asked.graphs,
    )


def _size(rows: "Sequence[Row]", asked: Asked) -> "SizeResult | None":
    """The steady iteration in both columns; None where no iteration was steady."""
    from r2cc_simai.measured.model import ColumnResult, SizeResult

    by = {row.metric: row.simulated for row in rows}
    time_s, algbw, busbw = (by.get(metric) for metric in ("time", "algbw", "busbw"))
    if time_s is None:
        return None
    column = ColumnResult(time_s, algbw or 0.0, busbw or 0.0, None)
    size = rows[0].bytes
    return SizeResult(size, size // asked.per_count, asked.datatype, asked.op, asked.root, column, column)
