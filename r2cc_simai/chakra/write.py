"""Writing a workload as Chakra traces: `NAME.<rank>.et`, `NAME.groups.json` and `NAME.manifest.json`.

Ranks of a class have equal traces but for the numbers of their groups and peers. So a class is serialised once; for
each rank these numbers are put into gaps of a fixed width, and the bytes written. Memory is that of one file.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from r2cc_simai.chakra.classes import Classes, distinct, split
from r2cc_simai.chakra.encode import encode
from r2cc_simai.chakra.finding import Progress
from r2cc_simai.chakra.groups import group_numbers, write_groups
from r2cc_simai.chakra.manifest import RankClass, TraceManifest, is_unfinished, write_manifest
from r2cc_simai.chakra.names import class_file, files_of, rank_file
from r2cc_simai.errors import InputError

if TYPE_CHECKING:
    from r2cc_simai.workloads.program import Workload


def write_workload(
    workload: "Workload",
    directory: Path,
    *,
    fold: bool = False,
    force: bool = False,
    progress: Progress | None = None,
) -> list[Path]:
    """Writes the traces of all ranks, or with `fold` of one rank a class; returns the paths of all files.

    The manifest is finished last; until then a reader refuses the trace. What is left of an interrupted run is
    replaced, and with `force` any trace of the same name.

    Raises:
        InputError: the name is no file name, there is such a trace, or a file cannot be written.
    """
    name = workload.name
    if not name or "/" in name or name.startswith("."):
        raise InputError(f"name {name!r}: the beginning of a file name is wanted")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _make_room(directory, name, force)
        return _write(workload, directory, fold, progress)
    except OSError as error:
        raise InputError(f"{error.filename or directory}: {error.strerror}") from None


def _make_room(directory: Path, name: str, force: bool) -> None:
    there = files_of(directory, name)
    old = [path for path in (*there.paths(), there.groups) if path.exists()]
    if (old or there.manifest.exists()) and not force and not is_unfinished(there.manifest):
        raise InputError(f"{directory}: it has a trace {name} already; take another name, or --force to replace it")
    # First of all: neither half of an old trace nor half of the new one may pass for a whole.
    write_manifest(there.manifest, TraceManifest(complete=False))
    for path in old:
        path.unlink()


def _write(workload: "Workload", directory: Path, fold: bool, progress: Progress | None) -> list[Path]:
    classes = split(workload)
    numbers = group_numbers(len(workload.groups))
    there = files_of(directory, workload.name)
    paths: list[Path] = []
    total = len(classes.classes) if fold else workload.n_ranks
    for number, one in enumerate(classes.classes):
        encoded = encode(workload.programs[one.program], workload.n_ranks, len(str(numbers.start)))
        for rank in one.ranks[:1] if fold else one.ranks:
            group_of = {role: numbers[group] for role, group in classes.groups[rank].items()}
            file = class_file(workload.name, number) if fold else rank_file(workload.name, rank)
            paths.append(directory / file)
            with paths[-1].open("wb") as out:
                out.write(encoded.fill(group_of, classes.peers[rank]).data)
            if progress is not None:
                progress(len(paths), total)
    write_groups(there.groups, numbers, workload.groups)
    write_manifest(there.manifest, _manifest(workload, classes, numbers, fold))
    return [*paths, there.groups, there.manifest]


def _manifest(workload: "Workload", classes: Classes, numbers: range, fold: bool) -> TraceManifest:
    rank_class = [0] * workload.n_ranks
    entries = []
    for number, one in enumerate(classes.classes):
        for rank in one.ranks:
            rank_class[rank] = number
        first = one.ranks[0]
        file = class_file(workload.name, number) if fold else rank_file(workload.name, first)
        entries.append(RankClass(file=file, rank=first, ranks=len(one.ranks), program=one.program))
    return TraceManifest(
        complete=True,
        form="folded" if fold else "full",
        classes=tuple(entries),
        rank_class=tuple(rank_class),
        rank_groups=tuple(distinct(numbers[group] for group in roles.values()) for roles in classes.groups),
        rank_peers=tuple(distinct(roles.values()) for roles in classes.peers),
        replica=tuple(workload.replica.tolist()),
        group_kind={str(n): kind for n, kind in zip(numbers, workload.group_kind, strict=True)},
        workload=workload.manifest.model_dump(mode="json"),
    )
