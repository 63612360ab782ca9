"""Which case a worker gets next: one that shares a job and strategy with its last one, as long as there are such."""

from collections import deque
from collections.abc import Iterable, Iterator

from r2cc_simai.runners.case_run import Task, affinity

Group = tuple[object, ...]


class CaseQueue:
    """Cases that nobody has taken yet, in groups of equal affinity."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self._groups: dict[Group, deque[Task]] = {}
        for task in tasks:
            self._groups.setdefault(affinity(task), deque()).append(task)
        self._of: dict[int, Group] = {}

    def __bool__(self) -> bool:
        return bool(self._groups)

    def take(self, worker: int) -> Task | None:
        """The next case for a worker: of its group, else of the first group without a worker, else of the largest."""
        if not self._groups:
            return None
        group = self._of.get(worker)
        if group not in self._groups:
            taken = set(self._of.values())
            free = (other for other in self._groups if other not in taken)
            group = next(free, None) or max(self._groups, key=lambda other: len(self._groups[other]))
            self._of[worker] = group
        assert group is not None
        left = self._groups[group]
        task = left.popleft()
        if not left:
            del self._groups[group]
        return task

    def give_back(self, tasks: Iterable[Task]) -> None:
        """Cases that were taken and did not run are the next of their groups."""
        for task in reversed(list(tasks)):
            self._groups.setdefault(affinity(task), deque()).appendleft(task)

    def batches(self, most: int) -> Iterator[list[Task]]:
        """Take everything, in batches of one group and at most so many cases."""
        groups, self._groups = self._groups, {}
        for group in groups.values():
            cases = list(group)
            yield from (cases[i : i + most] for i in range(0, len(cases), most))
