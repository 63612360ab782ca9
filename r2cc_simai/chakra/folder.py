"""Reading a folder of Chakra traces: the classes of equal ranks, and which groups and peers each rank has."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from r2cc_simai.chakra.finding import Finding, Progress, raise_first
from r2cc_simai.chakra.groups import ALL_RANKS, Groups, read_groups
from r2cc_simai.chakra.manifest import TraceManifest, read_manifest
from r2cc_simai.chakra.names import TraceFiles, find_files, rank_file
from r2cc_simai.chakra.reading import RankTrace, read_ranks
from r2cc_simai.chakra.roles import RankRoles, check_groups, check_roles, missing_ranks
from r2cc_simai.engine._core import Trace
from r2cc_simai.errors import InputError

Int = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TraceSet:
    """All ranks of a job, as read from `PREFIX.<rank>.et` (or `PREFIX.class<k>.et`).

    Ranks whose traces are equal but for the groups and peers that they name share one class. A node of a class's trace
    names roles: the groups and peers of a rank in the order in which its trace first names them.
    """

    prefix: Path
    classes: tuple[Trace, ...]
    """One compiled trace a class; its own tables `groups` and `peers` are those of the first rank of the class."""
    rank_class: Int
    """Shape (n_ranks,): index into `classes`."""
    rank_groups: Int
    """Shape (n_ranks, group roles): index into `groups` of each role, or -1 where the class has no such role."""
    rank_peers: Int
    """Shape (n_ranks, peer roles): global rank of each role, or -1."""
    groups: tuple[tuple[int, ...], ...]
    """Members of each communicator group, ascending; the group of all ranks is there if a node uses it."""
    group_ids: tuple[int, ...]
    """Number of each group in the files (pg_name); 0 is the group of all ranks."""
    group_kind: tuple[str, ...]
    """ "tp", "dp", ... of each group; "" where no manifest says so."""
    replica: Int | None
    """Shape (n_ranks,): data-parallel replica of each rank, if a manifest says so."""
    manifest: dict[str, Any] | None
    """The generator's manifest (`Workload.manifest` as JSON), if there is one."""
    notes: tuple[Finding, ...]
    """Warnings and notes about the files that were read."""

    @property
    def n_ranks(self) -> int:
        """How many ranks the job has."""
        return len(self.rank_class)


def read_folder(prefix: Path, *, groups: Path | None = None, progress: Progress | None = None) -> TraceSet:
    """Reads the traces of all ranks.

    `prefix` is DIR/NAME of `NAME.<rank>.et`, or a folder that holds the traces of one NAME. The groups are in
    `NAME.groups.json` unless `groups` names another file. Of a trace that `write_workload` wrote, one file a class is
    read and its manifest trusted for the rest (`r2cc-simai trace validate` checks that it tells the truth); of any
    other trace, all files. Nodes of different ranks are not matched with each other.

    Raises:
        InputError: a file is missing or broken, or a node makes no sense; the line names file, node and reason.
    """
    files = find_files(prefix)
    manifest = read_manifest(files.manifest)
    tables = _by_manifest(files, manifest, progress) if manifest else _by_digest(files, progress)
    path = groups or files.groups
    listed, notes = _groups(path, tables)
    _check(tables, listed, path.name)
    return _assemble(files, tables, listed, manifest, notes)


@dataclass(frozen=True, eq=False)
class _Tables:
    """Classes, and by rank the class, the group numbers and the peers."""

    classes: list[RankTrace]
    rank_class: Sequence[int]
    groups: Sequence[tuple[int, ...]]
    peers: Sequence[tuple[int, ...]]
    files: Sequence[str]


def _by_manifest(files: TraceFiles, manifest: TraceManifest, progress: Progress | None) -> _Tables:
    ranks = range(len(manifest.rank_class))
    if manifest.form == "full":
        raise_first(missing_ranks(files.ranks, len(ranks), lambda rank: rank_file(files.name, rank)))
    classes = []
    for one, read in zip(
        manifest.classes, read_ranks([files.folder / one.file for one in manifest.classes], progress), strict=True
    ):
        raise_first(read.findings)
        if (read.groups, read.peers) != (manifest.rank_groups[one.rank], manifest.rank_peers[one.rank]):
            raise InputError(f"{one.file}: its groups or peers are not those of rank {one.rank} in {files.manifest}")
        classes.append(read)
    names = [manifest.classes[number].file for number in manifest.rank_class]
    if manifest.form == "full":
        names = [rank_file(files.name, rank) for rank in ranks]
    return _Tables(classes, manifest.rank_class, manifest.rank_groups, manifest.rank_peers, names)


def _by_digest(files: TraceFiles, progress: Progress | None) -> _Tables:
    if not files.ranks:
        raise InputError(f"{files.prefix}: a trace of classes cannot be read without {files.manifest.name}")
    raise_first(missing_ranks(files.ranks, max(files.ranks) + 1, lambda rank: rank_file(files.name, rank)))
    tables = _Tables([], rank_class := [], groups := [], peers := [], [path.name for path in files.paths()])
    numbers: dict[bytes, int] = {}
    paths = [files.folder / rank_file(files.name, rank) for rank in sorted(files.ranks)]
    for read in read_ranks(paths, progress):
        raise_first(read.findings)
        number = numbers.setdefault(read.reading.digest, len(tables.classes))
        if number == len(tables.classes):
            tables.classes.append(read)
        rank_class.append(number)
        groups.append(read.groups)
        peers.append(read.peers)
    return tables


def _groups(path: Path, tables: _Tables) -> tuple[Groups, list[Finding]]:
    """The listed groups; a trace that needs none may do without the file."""
    if not path.exists() and all(set(numbers) <= {ALL_RANKS} for numbers in tables.groups):
        return {}, []
    listed, notes = read_groups(path)
    raise_first(notes)
    return listed, notes


def _check(tables: _Tables, listed: Groups, groups_file: str) -> None:
    n_ranks = len(tables.rank_class)
    raise_first(check_groups(listed, groups_file, n_ranks))
    for rank, number in enumerate(tables.rank_class):
        roles = RankRoles(rank, tables.files[rank], tables.groups[rank], tables.peers[rank])
        raise_first(check_roles(roles, listed, n_ranks, groups_file, partial(_trace, tables.classes[number])))


def _trace(read: RankTrace) -> Trace:
    return read.trace


def _assemble(
    files: TraceFiles, tables: _Tables, listed: Groups, manifest: TraceManifest | None, notes: list[Finding]
) -> TraceSet:
    n_ranks = len(tables.rank_class)
    if any(ALL_RANKS in numbers for numbers in tables.groups):
        listed = {ALL_RANKS: tuple(range(n_ranks)), **listed}
    index = {number: i for i, number in enumerate(listed)}
    kinds = manifest.group_kind if manifest else {}
    return TraceSet(
        prefix=files.prefix,
        classes=tuple(read.trace for read in tables.classes),
        rank_class=np.array(tables.rank_class, dtype=np.int64),
        rank_groups=role_table([[index[number] for number in numbers] for numbers in tables.groups]),
        rank_peers=role_table(tables.peers),
        groups=tuple(listed.values()),
        group_ids=tuple(listed),
        group_kind=tuple(kinds.get(str(number), "") for number in listed),
        replica=np.array(manifest.replica, dtype=np.int64) if manifest else None,
        manifest=manifest.workload if manifest else None,
        notes=(*notes, *(finding for read in tables.classes for finding in read.findings)),
    )


def role_table(rows: Sequence[Sequence[int]]) -> Int:
    """Rows of unequal length as an array; -1 where a row has ended."""
    table = np.full((len(rows), max(map(len, rows), default=0)), -1, dtype=np.int64)
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
    return table
