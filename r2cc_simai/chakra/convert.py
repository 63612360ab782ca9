"""A trace as one JSON file, with everything that its files say.

    {"format": "r2cc-simai-trace-1", "name": NAME,
     "groups": {"1": [0, 1], ...}, "manifest": {...} or null,
     "files": [{"file": "NAME.0.et", "ranks": [0],
                "metadata": {"version": "0.0.4", "attributes": {...}},
                "nodes": [{"id": 1, "name": "...", "type": "COMM_COLL", "ctrl_deps": [], "data_deps": [],
                           "start_time_micros": 0, "duration_micros": 0, "inputs": {...}, "outputs": {...},
                           "attributes": {"comm_size": 4096, "pg_name": "1", ...}}, ...]}, ...]}

`inputs` and `outputs` are there where the node has them; `ranks` are several where a file is that of a class; a type
that Chakra lacks is a number. Attributes are numbers, booleans, strings, lists of these, or null where they hold
nothing; bytes are hexadecimal; floating-point numbers that JSON lacks are "NaN", "Infinity" and "-Infinity". Nothing is
checked but that the files can be read.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.chakra.finding import Progress
from r2cc_simai.chakra.manifest import TraceManifest, read_manifest
from r2cc_simai.chakra.names import TraceFiles, class_file, find_files, rank_file
from r2cc_simai.chakra.reading import file_bytes
from r2cc_simai.engine._core import TraceError, metadata_json, nodes_json
from r2cc_simai.errors import InputError

FORMAT = "r2cc-simai-trace-1"
PIECE = 4 << 20
"""Bytes of JSON that are held at a time."""


def convert(
    prefix: Path,
    output: Path,
    *,
    rank: int | None = None,
    groups: Path | None = None,
    progress: Progress | None = None,
) -> int:
    """Writes the traces of all ranks, or of one, to a file and returns its size in bytes; memory is that of one trace.

    Raises:
        InputError: a file is missing or cannot be read as a trace, or the output cannot be written.
    """
    files = find_files(prefix)
    manifest = read_manifest(files.manifest)
    parts = _parts(files, manifest, rank)
    part = output.with_name(output.name + ".part")
    try:
        with part.open("wb") as out:
            _write(out, files, manifest, groups or files.groups, parts, progress)
            size = out.tell()
        os.replace(part, output)
    except OSError as error:
        raise InputError(f"{output}: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)
    return size


def _parts(files: TraceFiles, manifest: TraceManifest | None, rank: int | None) -> list[tuple[str, list[int]]]:
    """Each file with the ranks that it is of."""
    parts = [(rank_file(files.name, one), [one]) for one in sorted(files.ranks)]
    if manifest is not None and manifest.form == "folded":
        parts = [
            (one.file, [r for r, k in enumerate(manifest.rank_class) if k == number])
            for number, one in enumerate(manifest.classes)
        ]
    elif not parts:
        parts = [(class_file(files.name, number), []) for number in sorted(files.classes)]
    if rank is None:
        return parts
    for name, ranks in parts:
        if rank in ranks:
            return [(name, [rank])]
    count = sum(len(ranks) for _, ranks in parts)
    raise InputError(f"--rank {rank}: {files.prefix} has the traces of {count} ranks")


def _write(
    out: BinaryIO,
    files: TraceFiles,
    manifest: TraceManifest | None,
    groups: Path,
    parts: Sequence[tuple[str, list[int]]],
    progress: Progress | None,
) -> None:
    head: dict[str, Any] = {
        "format": FORMAT,
        "name": files.name,
        "groups": _json(groups) if groups.exists() else {},
        "manifest": manifest.workload if manifest else None,
    }
    out.write(b"{" + b",\n".join(json.dumps(key).encode() + b": " + _dump(value) for key, value in head.items()))
    out.write(b',\n"files": [')
    for number, (name, ranks) in enumerate(parts):
        out.write(b",\n" if number else b"\n")
        out.write(b'{"file": ' + _dump(name) + b', "ranks": ' + _dump(ranks))
        _write_file(out, files.folder / name)
        out.write(b"}")
        if progress is not None:
            progress(number + 1, len(parts))
    out.write(b"\n]}\n")


def _write_file(out: BinaryIO, path: Path) -> None:
    data: NDArray[np.uint8] = file_bytes(path)
    try:
        metadata, at = metadata_json(data)
        out.write(b', "metadata": ' + metadata + b', "nodes": [')
        comma = b"\n"
        while at < len(data):
            piece, at = nodes_json(data, at, PIECE)
            out.write(comma + piece)
            comma = b",\n"
        out.write(b"\n]")
    except TraceError as error:
        raise InputError(f"{path.name}: {error}") from None


def _dump(value: Any) -> bytes:
    return json.dumps(value, separators=(", ", ": ")).encode()


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from None
