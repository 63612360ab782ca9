"""What the lines before a table of nccl-tests say of its run: program, settings, ranks and hosts."""

import re
from dataclasses import dataclass, field, replace

from r2cc_simai.errors import InputError

SECTION = re.compile(r"^=+ (.+?) =+$")
SETTING = re.compile(r"\b((?:R2CC|NCCL)_[A-Z0-9_]+)=(\S*)")
SHAPE = re.compile(r"\bnodes=(\d+) ranks=(\d+)\b")
START = re.compile(r"^# (nccl-tests version|Collective test starting|nThread \d)")
RANK = re.compile(r"^#\s+Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?Pid\s+(\d+)\s+on\s+(\S+)\s+device\s+(\d+)")
_STARTS = re.compile(r"# (nccl-tests version|Collective test starting|nThread \d)")
COUNTED = "such as all_reduce_perf"
_PROGRAM = re.compile(r"\b([a-z_0-9]+)_perf\b")


@dataclass(frozen=True)
class ListedRank:
    """A line of the list of ranks."""

    rank: int
    pid: int
    host: str
    device: int


@dataclass
class RunContext:
    """What is known of a run."""

    section: str = ""
    program: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    settings_line: int = 0
    shape: tuple[int, int] | None = None
    ranks: list[ListedRank] = field(default_factory=list)
    starts: list[str] = field(default_factory=list)

    def take(self, index: int, line: str) -> None:
        """Takes what a line says of the run."""
        if section := SECTION.match(line):
            self.section = section[1]
        if shape := SHAPE.search(line):
            self.shape = (int(shape[1]), int(shape[2]))
        if program := _PROGRAM.search(line):
            self.program = self.program or program[1] if line.startswith("# Collective test concluded") else program[1]
        self.starts += _STARTS.findall(line)
        if (rank := RANK.match(line)) and (listed := _listed(rank)) not in self.ranks:
            self.ranks.append(listed)
        if settings := dict(SETTING.findall(line)):
            self.variables |= settings
            self.settings_line = index

    def of_launch(self, other: "RunContext") -> "RunContext":
        """This context with the launcher's settings of another, where this one has none of its own."""
        if self.variables or self.shape or self.section:
            return self
        return replace(
            self,
            section=other.section,
            program=self.program or other.program,
            variables=other.variables,
            settings_line=other.settings_line,
            shape=other.shape,
        )

    @property
    def announced(self) -> bool:
        """Whether a table must follow."""
        return bool(self.shape or self.starts or self.ranks)

    @property
    def repeated(self) -> bool:
        """Whether more than one process began to speak."""
        return len(set(self.starts)) < len(self.starts) or self._processes > 1

    @property
    def hosts(self) -> tuple[str, ...]:
        """Hosts in the order in which they are listed."""
        return tuple(dict.fromkeys(one.host for one in self.ranks))

    @property
    def _processes(self) -> int:
        """How often each rank is listed: more than once where processes ran one by one and share a stream."""
        return max((sum(one.rank == other.rank for one in self.ranks) for other in self.ranks), default=1)

    def shape_at(self, where: str) -> tuple[int | None, int | None]:
        """(servers, ranks) of the run, from the list of ranks and from what the launcher printed.

        Raises:
            InputError: a list without gaps and the launcher disagree.
        """
        numbers = {one.rank for one in self.ranks}
        listed = (len(self.hosts), len(self.ranks)) if self.ranks else None
        if self._processes > 1:
            alone = len(self.hosts) // self._processes
            return alone or 1, len(numbers)
        if listed and self.shape and listed != self.shape:
            if numbers != set(range(len(numbers))):
                return self.shape
            raise InputError(
                f"{where}: expected the {self.shape[1]} ranks on {self.shape[0]} nodes that "
                f"the log announces, found {listed[1]} ranks on {listed[0]} nodes listed"
            )
        return listed or self.shape or (None, None)

    def remarks(self, where: str) -> list[str]:
        """What the list of ranks makes doubtful."""
        if self._processes > 1:
            found = f"{self._processes} processes list the same ranks: each ran on its own (nccl-tests without MPI?)"
            return [f"{where}: {found}"]
        numbers = {one.rank for one in self.ranks}
        gaps = sorted(set(range(max(numbers, default=-1))) - numbers)
        return [f"{where}: the list of ranks lacks rank {', '.join(map(str, gaps))}"] if gaps else []


def _listed(match: re.Match[str]) -> ListedRank:
    return ListedRank(int(match[1]), int(match[2]), match[3], int(match[4]))
