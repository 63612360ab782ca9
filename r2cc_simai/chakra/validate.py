"""Checking a whole trace: every file by itself, then the ranks against each other, the groups and the manifest."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from r2cc_simai.chakra.cross import Participation, Ranks, check_collectives, check_messages
from r2cc_simai.chakra.finding import ERROR, NOTE, SEVERITIES, Finding, Progress
from r2cc_simai.chakra.groups import ALL_RANKS, Groups, read_groups
from r2cc_simai.chakra.manifest import TraceManifest, read_manifest
from r2cc_simai.chakra.names import TraceFiles, find_files, rank_file
from r2cc_simai.chakra.reading import RankTrace, read_rank, read_ranks
from r2cc_simai.chakra.roles import RankRoles, check_groups, check_roles, missing_ranks
from r2cc_simai.engine._core import Trace
from r2cc_simai.errors import InputError


@dataclass(frozen=True, eq=False)
class Report:
    """What was found in a trace: errors first, in the order of the files."""

    prefix: Path
    files: int
    ranks: int
    classes: int
    nodes: int
    """Of all ranks."""
    findings: tuple[Finding, ...]

    @property
    def first_error(self) -> Finding | None:
        """The error to be told where there is room for one."""
        return next((one for one in self.findings if one.severity == ERROR), None)


@dataclass(eq=False)
class _Reads:
    """What is kept of the files: little of each."""

    files: list[str] = field(default_factory=list)
    groups: list[tuple[int, ...]] = field(default_factory=list)
    peers: list[tuple[int, ...]] = field(default_factory=list)
    digest: list[bytes] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)
    participation: list[Participation] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    broken: int = 0
    known: dict[Participation, Participation] = field(default_factory=dict)

    def add(self, read: RankTrace) -> None:
        reading = read.reading
        one = Participation(tuple(reading.collectives), tuple(reading.sends), tuple(reading.receives))
        self.files.append(read.path.name)
        self.groups.append(read.groups)
        self.peers.append(read.peers)
        self.digest.append(reading.digest)
        self.nodes.append(len(read.trace))
        self.participation.append(self.known.setdefault(one, one))
        self.findings.extend(read.findings)
        self.broken += read.broken


def validate_file(path: Path) -> Report:
    """Checks one file by itself.

    Raises:
        InputError: it cannot be read.
    """
    read = read_rank(path)
    return Report(path, 1, 1, 1, len(read.trace), _sorted(read.findings))


def validate(prefix: Path, *, groups: Path | None = None, progress: Progress | None = None) -> Report:
    """Checks the traces of all ranks of `prefix` (as for `read_folder`), reading all files whatever a manifest says.

    Raises:
        InputError: there is no such trace, or a file cannot be read at all.
    """
    files = find_files(prefix)
    manifest = read_manifest(files.manifest)
    folded = manifest is not None and manifest.form == "folded"
    if not folded and not files.ranks:
        raise InputError(f"{files.prefix}: a trace of classes cannot be read without {files.manifest.name}")
    n_ranks = len(manifest.rank_class) if manifest else max(files.ranks) + 1
    present = range(n_ranks) if folded else sorted(rank for rank in files.ranks if rank < n_ranks)
    missing = [] if folded else missing_ranks(present, n_ranks, lambda rank: rank_file(files.name, rank))
    paths = [files.folder / name for name in _names(files, manifest, present)]
    reads = _Reads()
    for read in read_ranks(paths, progress):
        reads.add(read)
    findings = [*missing, *reads.findings]
    if manifest is not None:
        findings += _check_manifest(files, manifest, reads, present)
    ranks = _ranks(files, manifest, reads, present)
    listed, found = _groups(groups or files.groups, ranks.groups)
    findings += found
    findings += check_groups(listed, (groups or files.groups).name, n_ranks)
    findings += _check_together(ranks, listed, (groups or files.groups).name, present, n_ranks, _errors(findings))
    total = sum(reads.nodes[k] for k in (manifest.rank_class if manifest and folded else range(len(reads.nodes))))
    return Report(files.prefix, len(paths), n_ranks, len(set(reads.digest)), total, _sorted(findings))


def _names(files: TraceFiles, manifest: TraceManifest | None, present: Sequence[int]) -> list[str]:
    if manifest is not None and manifest.form == "folded":
        return [one.file for one in manifest.classes]
    return [rank_file(files.name, rank) for rank in present]


def _ranks(files: TraceFiles, manifest: TraceManifest | None, reads: _Reads, present: Sequence[int]) -> Ranks:
    """The ranks that there are; those of a folded trace as its manifest says."""
    if manifest is not None and manifest.form == "folded":
        of = manifest.rank_class
        groups, peers = manifest.rank_groups, manifest.rank_peers
        return Ranks(
            [reads.files[k] for k in of],
            groups,
            peers,
            [reads.participation[k] for k in of],
            lambda rank: _reread(files, reads.files[of[rank]]),
        )
    return Ranks(
        reads.files, reads.groups, reads.peers, reads.participation, lambda rank: _reread(files, reads.files[rank])
    )


def _reread(files: TraceFiles, name: str) -> Trace:
    return read_rank(files.folder / name).trace


def _groups(path: Path, used: Sequence[tuple[int, ...]]) -> tuple[Groups, list[Finding]]:
    """The listed groups; a trace that needs none may do without the file."""
    if not path.exists() and all(set(numbers) <= {ALL_RANKS} for numbers in used):
        return {}, []
    return read_groups(path)


def _errors(findings: Sequence[Finding]) -> int:
    return sum(one.severity == ERROR for one in findings)


def _check_together(
    ranks: Ranks, groups: Groups, groups_file: str, present: Sequence[int], n_ranks: int, errors: int
) -> list[Finding]:
    """Groups, peers and partners; partners only where everything else is sound, since one error would cause many."""
    found = []
    for k, rank in enumerate(present):
        roles = RankRoles(rank, ranks.files[k], ranks.groups[k], ranks.peers[k])
        found += check_roles(roles, groups, n_ranks, groups_file, lambda k=k: ranks.read(k))
    if errors or found:
        reason = "partners in collectives and messages were not compared, since there are errors"
        return [*found, Finding(NOTE, "not-compared", groups_file, reason)]
    return check_collectives(ranks, groups) + check_messages(ranks)


def _check_manifest(files: TraceFiles, manifest: TraceManifest, reads: _Reads, present: Sequence[int]) -> list[Finding]:
    """Where a manifest does not tell the truth: ranks of a class that differ, groups and peers, ranks beyond."""
    findings = []
    for rank in sorted(rank for rank in files.ranks if rank >= len(manifest.rank_class)):
        reason = f"{files.manifest.name} has {len(manifest.rank_class)} ranks"
        findings.append(Finding(ERROR, "manifest", rank_file(files.name, rank), reason))
    folded = manifest.form == "folded"
    digest: dict[int, tuple[bytes, str]] = {}
    for k, rank in enumerate([one.rank for one in manifest.classes] if folded else present):
        file, number = reads.files[k], manifest.rank_class[rank]
        first = digest.setdefault(number, (reads.digest[k], file))
        reason = ""
        if first[0] != reads.digest[k]:
            reason = f"differs from {first[1]}, although both are of class {number} in {files.manifest.name}"
        elif (reads.groups[k], reads.peers[k]) != (manifest.rank_groups[rank], manifest.rank_peers[rank]):
            reason = f"its groups or peers are not those of rank {rank} in {files.manifest.name}"
        if reason:
            findings.append(Finding(ERROR, "manifest", file, reason))
    return findings


def _sorted(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda one: SEVERITIES.index(one.severity)))


def one_per_kind(findings: Sequence[Finding]) -> list[tuple[Finding, int, int]]:
    """The first finding of each kind, how many there are of it, and in how many files."""
    first: dict[str, Finding] = {}
    count: Counter[str] = Counter()
    files: dict[str, set[str]] = {}
    for one in findings:
        first.setdefault(one.kind, one)
        count[one.kind] += 1 + one.more
        files.setdefault(one.kind, set()).add(one.file)
    return [(one, count[kind], len(files[kind])) for kind, one in first.items()]
