"""`NAME.manifest.json`: what a trace was made of, its classes of equal ranks, and the groups and peers of each rank."""

import json
import os
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from r2cc_simai.config import Strict, validated
from r2cc_simai.errors import InputError


class RankClass(Strict):
    """Ranks whose traces are equal but for the groups and peers that they name."""

    file: str
    """The file that is read for all of them."""
    rank: NonNegativeInt
    """The rank whose file, groups and peers that is: the first of the class."""
    ranks: PositiveInt
    """How many there are."""
    program: NonNegativeInt
    """Class of ranks in the generator's own count; it may be split where roles coincide for some of its ranks."""


class TraceManifest(Strict):
    """The whole file. Lists over ranks have an entry for every rank."""

    format: Literal[1] = 1
    complete: bool
    """Written as false before and as true after the traces, so that an interrupted run can be told."""
    form: Literal["full", "folded"] = "full"
    """A file for every rank, or one for every class."""
    classes: tuple[RankClass, ...] = ()
    rank_class: tuple[NonNegativeInt, ...] = ()
    rank_groups: tuple[tuple[NonNegativeInt, ...], ...] = ()
    """Per rank: numbers of its groups (pg_name), in the order in which its trace first names them."""
    rank_peers: tuple[tuple[NonNegativeInt, ...], ...] = ()
    """Per rank: its peers, in the order in which its trace first names them."""
    replica: tuple[int, ...] = ()
    group_kind: dict[str, str] = Field(default={})
    """Kind of each group ("tp", "dp", ...) by its number."""
    workload: dict[str, Any] = Field(default={})
    """The generator's manifest."""


def write_manifest(path: Path, manifest: TraceManifest) -> None:
    """Writes a manifest, a key a line, in one step: a reader finds the old one or the new one."""
    data = manifest.model_dump(mode="json", exclude={"workload"})
    lines = [f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in data.items()]
    lines.append(f'"workload": {json.dumps(manifest.workload, indent=1)}')
    part = path.with_name(path.name + ".part")
    part.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    os.replace(part, path)


def read_manifest(path: Path) -> TraceManifest | None:
    """The manifest of a trace; None if it has none, or one that something else wrote (without a `format`).

    Raises:
        InputError: it is broken, its parts do not agree, or the trace was never finished.
    """
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    if not isinstance(data, dict):
        raise InputError(f"{path}: a JSON object is wanted")
    if "format" not in data:
        return None
    manifest = validated(TraceManifest, data, str(path))
    if not manifest.complete:
        raise InputError(f"{path}: the trace is incomplete, writing it was interrupted; write it again")
    wrong = _disagreement(manifest)
    if wrong:
        raise InputError(f"{path}: {wrong}")
    return manifest


def is_unfinished(path: Path) -> bool:
    """Whether a manifest says that the trace was never finished."""
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(data, dict) and data.get("format") == 1 and data.get("complete") is False


def _disagreement(manifest: TraceManifest) -> str:
    """What of a manifest contradicts the rest of it; empty if nothing does."""
    ranks, classes = len(manifest.rank_class), len(manifest.classes)
    if ranks == 0:
        return "rank_class: no ranks"
    for key in ("rank_groups", "rank_peers", "replica"):
        if len(getattr(manifest, key)) != ranks:
            return f"{key}: {len(getattr(manifest, key))} entries, rank_class has {ranks}"
    first: dict[int, int] = {}
    count = [0] * classes
    for rank, number in enumerate(manifest.rank_class):
        if number >= classes:
            return f"rank_class: class {number} of rank {rank}; there are {classes}"
        count[number] += 1
        one = first.setdefault(number, rank)
        for key, rows in (("rank_groups", manifest.rank_groups), ("rank_peers", manifest.rank_peers)):
            if len(rows[rank]) != len(rows[one]):
                return f"{key}: ranks {one} and {rank} of class {number} have unequal numbers of them"
        if any(peer >= ranks for peer in manifest.rank_peers[rank]):
            return f"rank_peers: rank {rank} has a peer beyond rank {ranks - 1}"
    for number, one_class in enumerate(manifest.classes):
        if count[number] != one_class.ranks or first.get(number) != one_class.rank:
            return f"classes.{number}: does not agree with rank_class"
        if "/" in one_class.file or one_class.file in ("", ".", ".."):
            return f"classes.{number}.file: the name of a file beside the manifest is wanted"
    return ""
