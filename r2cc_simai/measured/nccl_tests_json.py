"""Reads the JSON that nccl-tests writes with `-J`: one run a file."""

import json
import re
from collections.abc import Mapping
from typing import Any

from r2cc_simai.errors import InputError
from r2cc_simai.measured.model import ColumnResult, Measurement, SizeResult
from r2cc_simai.measured.nccl_table import column_result
from r2cc_simai.measured.settings import failure_warnings, run_settings

_PROGRAM = re.compile(r"([a-z_0-9]+)_perf$")


def read_nccl_tests_json(name: str, text: str) -> list[Measurement]:
    """The run of an nccl-tests JSON file.

    Raises InputError when it is no JSON (a run that was killed leaves it open), lacks a key, or ended
    before its results were complete.
    """
    document = _document(name, text)
    try:
        return [_measurement(name, document)]
    except KeyError as error:
        raise InputError(f"{name}:1: expected key {error} in the JSON of nccl-tests -J") from error
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(f"{name}:1: expected values as nccl-tests -J writes them: {error}") from error


def _document(name: str, text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        where = f"{name}:{error.lineno}"
        raise InputError(f"{where}: expected the JSON of nccl-tests -J, complete: {error.msg}") from error
    if not isinstance(document, dict):
        raise InputError(f"{name}:1: expected the JSON object of nccl-tests -J")
    return document


def _measurement(name: str, document: Mapping[str, Any]) -> Measurement:
    variables = dict(entry.split("=", 1) for entry in document.get("env", []) if "=" in entry)
    settings = run_settings(variables, f"{name}:1")
    hosts = [str(device["hostname"]) for device in document["config"]["devices"]]
    n_nodes = len(set(hosts)) or None
    sizes = tuple(_size(row) for row in document["results"])
    n_wrong = int(document["out_of_bounds"]["count"])
    if not sizes:
        raise InputError(f"{name}:1: expected at least one entry in 'results'")
    return Measurement(
        source=f"{name}:results",
        collective=_collective(name, document["args"]),
        mode=settings.mode,
        host_names=tuple(dict.fromkeys(hosts)),
        nic_names=settings.nic_names,
        n_nodes=n_nodes,
        n_ranks=len(hosts) or None,
        failed=settings.failed,
        sizes=sizes,
        warnings=_warnings(name, sizes, n_wrong) + failure_warnings(settings, n_nodes, f"{name}:1"),
    )


def _collective(name: str, args: list[str]) -> str:
    program = _PROGRAM.search(args[0]) if args else None
    if program is None:
        raise InputError(f"{name}:1: expected the program's name (such as all_reduce_perf) as args[0]")
    return program[1]


def _size(row: Mapping[str, Any]) -> SizeResult:
    columns = [_column(row[key]) for key in ("out_of_place", "in_place")]
    if columns == [None, None]:
        raise ValueError(f"size {row['size']} has no result")
    return SizeResult(
        bytes=int(row["size"]),
        count=int(row["count"]),
        dtype=str(row["type"]),
        redop=str(row["redop"]),
        root=int(row["root"]),
        out_of_place=columns[0],
        in_place=columns[1],
    )


def _column(result: Mapping[str, Any] | None) -> ColumnResult | None:
    if result is None:
        return None
    time_us = result["cpu_time"] if "cpu_time" in result else result["time"]
    wrong = result["nwrong"]
    return column_result(
        float(time_us),
        float(result["alg_bw"]),
        float(result["bus_bw"]),
        None if wrong is None else float(wrong),
    )


def _warnings(name: str, sizes: tuple[SizeResult, ...], n_wrong: int) -> tuple[str, ...]:
    rows = tuple(f"{name}: {size.bytes} bytes: {size.wrong} wrong elements" for size in sizes if size.wrong)
    if n_wrong and not rows:
        return (f"{name}: {n_wrong} values out of bounds",)
    return rows
