"""Writes a run as nccl-tests does with `-J` (version 2 of its file), for programs that read that.

Both columns, out-of-place and in-place, hold the same result: a simulation knows no difference. Nothing is checked, so
`nwrong` is null. The two times of day are fixed, so that equal runs give equal files.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r2cc_simai.errors import InputError
from r2cc_simai.measured.model import SizeResult

VERSION = 2
NO_TIME = "1970-01-01 00:00:00"
_EXPERIMENTS = {
    "all_reduce": ("all_reduce_perf", "AllReduce"),
    "all_gather": ("all_gather_perf", "AllGather"),
    "reduce_scatter": ("reduce_scatter_perf", "ReduceScatter"),
    "broadcast": ("broadcast_perf", "Broadcast"),
    "reduce": ("reduce_perf", "Reduce"),
    "all_to_all": ("alltoall_perf", "AlltoAll"),
    "send_recv": ("sendrecv_perf", "SendRecv"),
}


@dataclass(frozen=True)
class SimulatedRun:
    """What a file says of a run. `hosts` holds the host of each rank, `devices` its number there."""

    collective: str
    options: tuple[str, ...]
    variables: dict[str, str]
    hosts: tuple[str, ...]
    devices: tuple[int, ...]
    sizes: tuple[SizeResult, ...]
    minimum: int
    maximum: int
    factor: float
    iterations: int
    warmup: int
    graphs: int


def write_nccl_tests_json(path: Path, run: SimulatedRun) -> None:
    """Writes the file; one that is there is left alone, as nccl-tests does.

    Raises:
        InputError: the file exists or cannot be written.
    """
    try:
        with path.open("x", encoding="ascii") as file:
            json.dump(document(run), file, indent=1)
            file.write("\n")
    except FileExistsError:
        raise InputError(f"{path}: exists and is not written over; name another file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error


def document(run: SimulatedRun) -> dict[str, Any]:
    """The object of a file."""
    program, experiment = _EXPERIMENTS[run.collective]
    busbw = [column.busbw / 1e9 for size in run.sizes for column in size.columns]
    return {
        "version": VERSION,
        "start_time": NO_TIME,
        "args": [program, *run.options],
        "env": [f"{name}={value}" for name, value in run.variables.items()],
        "nccl_version": 0,
        "config": _config(run),
        "results": [_entry(size, run.iterations, experiment) for size in run.sizes],
        "out_of_bounds": {"count": 0, "okay": "true"},
        "average_bus_bandwidth": {"bandwidth": sum(busbw) / len(busbw) if busbw else 0.0, "okay": "unchecked"},
        "errors": [],
        "end_time": NO_TIME,
    }


def _config(run: SimulatedRun) -> dict[str, Any]:
    return {
        "nthreads": 1,
        "ngpus": 1,
        "minimum_bytes": run.minimum,
        "maximum_bytes": run.maximum,
        "step_factor": int(run.factor) if run.factor == int(run.factor) else run.factor,
        "warmup_iters": run.warmup,
        "iterations": run.iterations,
        "aggregated_iterations": 1,
        "validation": 0,
        "graph": run.graphs,
        "blocking_collectives": "false",
        "per_iter_timing": "false",
        "parallel_init": "false",
        "devices": [
            {
                "rank": rank,
                "group": 0,
                "pid": rank + 1,
                "hostname": host,
                "device": device,
                "device_hex": "0000:00:00",
                "device_info": "simulated by r2cc-simai",
            }
            for rank, (host, device) in enumerate(zip(run.hosts, run.devices, strict=True))
        ],
    }


def _entry(size: SizeResult, iterations: int, experiment: str) -> dict[str, Any]:
    columns = {
        name: column
        and {"time": column.time_s * 1e6, "alg_bw": column.algbw / 1e9, "bus_bw": column.busbw / 1e9, "nwrong": None}
        for name, column in (("out_of_place", size.out_of_place), ("in_place", size.in_place))
    }
    return {
        "size": size.bytes,
        "count": size.count,
        "type": size.dtype,
        "redop": size.redop,
        "root": f"{size.root:6d}",
        **columns,
        "actual_iterations": iterations,
        "experiment_name": experiment,
    }
