"""Reads the JSON that nccl-tests writes with `-J`: one run an object, of which the end may be missing."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from r2cc_simai.errors import InputError
from r2cc_simai.measured.model import ColumnResult, Measurement, SizeResult
from r2cc_simai.measured.nccl_table import column_result
from r2cc_simai.measured.open_json import Document, Entry, read_documents
from r2cc_simai.measured.settings import failure_warnings, run_settings
from r2cc_simai.measured.skipped import Skipped

_PROGRAM = re.compile(r"([a-z_0-9]+)_perf$")


def read_nccl_tests_json(name: str, text: str) -> list[Measurement]:
    """Every run of an nccl-tests JSON file that has results, in order.

    What could not be read is said in the warnings of the first run.

    Raises:
        InputError: no result of any run can be read.
    """
    skipped = Skipped(name)
    runs = []
    for document in read_documents(name, text, skipped):
        try:
            runs.append(_measurement(name, document, skipped))
        except InputError as error:
            skipped.remark(f"run skipped: {error}", error)
        except KeyError as error:
            problem = InputError(f"{name}:{document.line}: expected key {error} in the JSON of nccl-tests -J")
            skipped.remark(f"run skipped: {problem}", problem)
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            problem = InputError(f"{name}:{document.line}: expected values as nccl-tests -J writes them: {error}")
            skipped.remark(f"run skipped: {problem}", problem)
    if not runs:
        assert skipped.first is not None  # each document that yields no run leaves a complaint
        raise skipped.first
    return [replace(runs[0], warnings=(*runs[0].warnings, *skipped.notes)), *runs[1:]]


def _measurement(name: str, document: Document, skipped: Skipped) -> Measurement:
    keys, where = document.keys, f"{name}:{document.line}"
    variables = dict(entry.split("=", 1) for entry in keys.get("env") or [] if "=" in entry)
    settings = run_settings(variables, where)
    if document.entries is None:
        raise InputError(f"{where}: expected key 'results' with a list in the JSON of nccl-tests -J")
    collective = _collective(where, keys["args"])
    hosts, n_ranks = _ranks(keys["config"])
    n_nodes = len(set(hosts)) or None
    sizes = _sizes(name, document.entries, skipped)
    if not sizes:
        raise skipped.first or InputError(f"{where}: expected at least one entry in 'results'")
    return Measurement(
        source=f"{name}:results" if document.line == 1 else f"{where}:results",
        collective=collective,
        mode=settings.mode,
        host_names=tuple(dict.fromkeys(hosts)),
        nic_names=settings.nic_names,
        n_nodes=n_nodes,
        n_ranks=n_ranks,
        failed=settings.failed,
        failures=settings.failures,
        cluster=settings.cluster,
        sizes=sizes,
        warnings=(*_warnings(where, document, sizes), *failure_warnings(settings, n_nodes, where)),
    )


def _ranks(config: Mapping[str, Any]) -> tuple[list[str], int | None]:
    """Hosts of the devices listed, and the number of ranks.

    nccl-tests lists one device a process, also where a process drives several (`-t`, `-g`): ranks then go up by as
    many from one entry to the next.
    """
    devices = config["devices"]
    hosts = [str(device["hostname"]) for device in devices]
    each = int(config.get("nthreads", 1)) * int(config.get("ngpus", 1))
    in_steps = [int(device["rank"]) for device in devices] == [each * i for i in range(len(devices))]
    return hosts, len(devices) * (each if in_steps else 1) or None


def _collective(where: str, args: list[str]) -> str:
    program = _PROGRAM.search(args[0]) if args else None
    if program is None:
        raise InputError(f"{where}: expected the program's name (such as all_reduce_perf) as args[0]")
    return program[1]


def _sizes(name: str, entries: list[Entry], skipped: Skipped) -> tuple[SizeResult, ...]:
    found = []
    for entry in entries:
        try:
            found.append(_size(entry.values))
        except KeyError as error:
            reason = f"expected key {error} in an entry of 'results'"
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            reason = f"expected values as nccl-tests -J writes them: {error}"
        else:
            continue
        skipped.line(entry.line, reason, InputError(f"{name}:{entry.line}: {reason}"))
    return tuple(found)


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


def _warnings(where: str, document: Document, sizes: tuple[SizeResult, ...]) -> list[str]:
    name = where.removesuffix(":1")
    found = [f"{name}: {size.bytes} bytes: {size.wrong} wrong elements" for size in sizes if size.wrong]
    if "out_of_bounds" not in document.keys:
        read = f"{len(sizes)} result{'s' if len(sizes) > 1 else ''} read, the last of {sizes[-1].bytes} bytes"
        found.append(f"{name}: the run did not end (no 'out_of_bounds'): {read}")
    elif (n_wrong := int(document.keys["out_of_bounds"]["count"])) and not found:
        found.append(f"{name}: {n_wrong} values out of bounds")
    return found
