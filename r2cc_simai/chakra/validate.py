"""Checking a whole trace: every file by itself, then the ranks against each other, the groups and the manifest."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
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
    def errors(self) -> int:
        """How many errors there are, those that are not listed included."""
        return sum(1 + one.more for one in self.findings if one.severity == ERROR)

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
    return Report(path, 1, 1, 1, len(read.trace), tuple(sorted(read.findings, key=_rank)))


def validate(prefix: Path, *, groups: Path | None = None, progress: Progress | None = None) -> Report:
    """Checks the traces of all ranks of `prefix` (as for `read_folder`), reading all files whatever a manifest says.

    Raises:
        InputError: there is no such trace, or a file cannot be read at all.
    """
    files = find_files(prefix)
    job = _Job(files, read_manifest(files.manifest), groups or files.groups)
    if not job.folded and not files.ranks:
        raise InputError(f"{files.prefix}: a trace of classes cannot be read without {files.manifest.name}")
    reads = _Reads()
    for read in read_ranks([files.folder / name for name in job.names()], progress):
        reads.add(read)
    findings = [] if job.folded else missing_ranks(job.present, job.n_ranks, lambda rank: rank_file(files.name, rank))
    findings += reads.findings
    if job.manifest is not None and not reads.broken:
        findings += _check_manifest(files, job.manifest, reads, job.represented)
    findings += _check_together(job, job.ranks(reads), findings)
    return Report(
        prefix=files.prefix,
        files=len(reads.files),
        ranks=job.n_ranks,
        classes=len(set(reads.digest)),
        nodes=sum(reads.nodes[k] for k in job.file_of),
        findings=tuple(sorted(findings, key=_rank)),
    )


@dataclass(frozen=True, eq=False)
class _Job:
    """What is to be checked."""

    files: TraceFiles
    manifest: TraceManifest | None
    groups: Path

    @property
    def folded(self) -> bool:
        return self.manifest is not None and self.manifest.form == "folded"

    @property
    def n_ranks(self) -> int:
        return len(self.manifest.rank_class) if self.manifest else max(self.files.ranks) + 1

    @property
    def present(self) -> Sequence[int]:
        """Ranks that have a file, their own or that of their class."""
        return range(self.n_ranks) if self.folded else sorted(r for r in self.files.ranks if r < self.n_ranks)

    @property
    def represented(self) -> Sequence[int]:
        """The rank that each file is of."""
        return [one.rank for one in self.manifest.classes] if self.manifest and self.folded else self.present

    @property
    def file_of(self) -> Sequence[int]:
        """Which of the files is that of each rank that has one."""
        return self.manifest.rank_class if self.manifest and self.folded else range(len(self.present))

    def names(self) -> list[str]:
        """The files to read."""
        if self.manifest and self.folded:
            return [one.file for one in self.manifest.classes]
        return [rank_file(self.files.name, rank) for rank in self.present]

    def ranks(self, reads: _Reads) -> Ranks:
        """The ranks that have a file; groups and peers of a folded trace are those of its manifest."""
        tables = self.manifest if self.manifest and self.folded else None
        return Ranks(
            files=[reads.files[k] for k in self.file_of],
            groups=tables.rank_groups if tables else reads.groups,
            peers=tables.rank_peers if tables else reads.peers,
            participation=[reads.participation[k] for k in self.file_of],
            read=lambda rank: _reread(self.files, reads.files[self.file_of[rank]]),
        )


def _reread(files: TraceFiles, name: str) -> Trace:
    return read_rank(files.folder / name).trace


def _groups(path: Path, used: Sequence[tuple[int, ...]]) -> tuple[Groups, list[Finding]]:
    """The listed groups; a trace that needs none may do without the file."""
    if not path.exists() and all(set(numbers) <= {ALL_RANKS} for numbers in used):
        return {}, []
    return read_groups(path)


def _check_together(job: _Job, ranks: Ranks, so_far: Sequence[Finding]) -> list[Finding]:
    """Groups, peers and partners; partners only where everything else is sound, since one error would cause many."""
    groups, found = _groups(job.groups, ranks.groups)
    found += check_groups(groups, job.groups.name, job.n_ranks)
    for k, rank in enumerate(job.present):
        roles = RankRoles(rank, ranks.files[k], ranks.groups[k], ranks.peers[k])
        found += check_roles(roles, groups, job.n_ranks, job.groups.name, partial(ranks.read, k))
    if any(one.severity == ERROR for one in (*so_far, *found)):
        reason = "collectives and messages of different ranks were not compared, since there are errors"
        return [*found, Finding(NOTE, "not-compared", job.files.name, reason)]
    return found + check_collectives(ranks, groups) + check_messages(ranks)


def _check_manifest(
    files: TraceFiles, manifest: TraceManifest, reads: _Reads, represented: Sequence[int]
) -> list[Finding]:
    """Where a manifest does not tell the truth: ranks of a class that differ, groups and peers, ranks beyond."""
    findings = []
    for rank in sorted(rank for rank in files.ranks if rank >= len(manifest.rank_class)):
        reason = f"{files.manifest.name} has {len(manifest.rank_class)} ranks"
        findings.append(Finding(ERROR, "manifest", rank_file(files.name, rank), reason))
    first: dict[int, tuple[bytes, str]] = {}
    for k, rank in enumerate(represented):
        file, number = reads.files[k], manifest.rank_class[rank]
        digest, other = first.setdefault(number, (reads.digest[k], file))
        reason = ""
        if digest != reads.digest[k]:
            reason = f"differs from {other}, although both are of class {number} in {files.manifest.name}"
        elif (reads.groups[k], reads.peers[k]) != (manifest.rank_groups[rank], manifest.rank_peers[rank]):
            reason = f"its groups or peers are not those of rank {rank} in {files.manifest.name}"
        if reason:
            findings.append(Finding(ERROR, "manifest", file, reason))
    return findings


def _rank(finding: Finding) -> int:
    return SEVERITIES.index(finding.severity)
