"""Names of the files of a trace, and which files belong to one."""

import re
from dataclasses import dataclass
from pathlib import Path

from r2cc_simai.errors import InputError

SUFFIX = ".et"
GROUPS = ".groups.json"
MANIFEST = ".manifest.json"
_FILE = re.compile(r"(?P<name>.+)\.(?P<folded>class)?(?P<number>0|[1-9][0-9]{0,8})\.et", re.ASCII)


def rank_file(name: str, rank: int) -> str:
    """Name of the file of a rank."""
    return f"{name}.{rank}{SUFFIX}"


def class_file(name: str, number: int) -> str:
    """Name of the file of a class of ranks, in a folded trace."""
    return f"{name}.class{number}{SUFFIX}"


@dataclass(frozen=True)
class TraceFiles:
    """The files of one trace that are there."""

    folder: Path
    name: str
    ranks: frozenset[int]
    """Ranks that have a file."""
    classes: frozenset[int]
    """Classes that have a file."""

    @property
    def prefix(self) -> Path:
        """FOLDER/NAME."""
        return self.folder / self.name

    @property
    def groups(self) -> Path:
        """Where the communicator groups are by default."""
        return self.folder / (self.name + GROUPS)

    @property
    def manifest(self) -> Path:
        """Where the manifest is, if there is one."""
        return self.folder / (self.name + MANIFEST)

    def paths(self) -> list[Path]:
        """All trace files that are there: of ranks, then of classes."""
        ranks = [self.folder / rank_file(self.name, rank) for rank in sorted(self.ranks)]
        return ranks + [self.folder / class_file(self.name, number) for number in sorted(self.classes)]


def find_files(prefix: Path) -> TraceFiles:
    """The trace FOLDER/NAME, or the only one that a folder has.

    Raises:
        InputError: there is no such trace, or a folder has several.
    """
    if prefix.is_dir():
        found = _traces(prefix)
        if not found:
            raise InputError(f"{prefix}: no trace in this folder; files NAME.<rank>{SUFFIX} are wanted")
        if len(found) > 1:
            names = ", ".join(str(prefix / name) for name in sorted(found)[:4])
            raise InputError(f"{prefix}: {len(found)} traces in this folder; name one of them: {names}")
        return next(iter(found.values()))
    if not prefix.parent.is_dir():
        raise InputError(f"{prefix}: there is no folder {prefix.parent}")
    single = _FILE.fullmatch(prefix.name)
    if single and prefix.is_file():
        raise InputError(f"{prefix}: one file of a trace; write {prefix.parent / single['name']} for the whole of it")
    files = files_of(prefix.parent, prefix.name)
    if not (files.ranks or files.classes or files.manifest.is_file()):
        raise InputError(f"{prefix}: no trace; there is no file {rank_file(prefix.name, 0)} in {prefix.parent}")
    return files


def files_of(folder: Path, name: str) -> TraceFiles:
    """The files of a trace in a folder; none may be there."""
    return _traces(folder).get(name, TraceFiles(folder, name, frozenset(), frozenset()))


def _traces(folder: Path) -> dict[str, TraceFiles]:
    ranks: dict[str, set[int]] = {}
    classes: dict[str, set[int]] = {}
    try:
        entries = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}") from None
    for entry in entries:
        match = _FILE.fullmatch(entry)
        if match:
            found = classes if match["folded"] else ranks
            found.setdefault(match["name"], set()).add(int(match["number"]))
    return {
        name: TraceFiles(folder, name, frozenset(ranks.get(name, ())), frozenset(classes.get(name, ())))
        for name in ranks.keys() | classes.keys()
    }
