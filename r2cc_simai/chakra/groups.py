"""Communicator groups as ASTRA-sim has them in JSON: `{"1": [0, 1], "2": [2, 3]}`, numbers above 0."""

import json
from pathlib import Path
from typing import Any

from r2cc_simai.chakra.finding import ERROR, WARNING, Finding
from r2cc_simai.errors import InputError

ALL_RANKS = 0
"""Number of the group of all ranks, which no file lists."""
LARGEST = 2**31 - 1
Groups = dict[int, tuple[int, ...]]


def group_numbers(count: int) -> range:
    """Numbers for groups that all have the same number of digits: 1.., 10.., 100.., so that one can replace another."""
    digits = 1
    while 9 * 10 ** (digits - 1) < count:
        digits += 1
    first = 10 ** (digits - 1)
    return range(first, first + count)


def write_groups(path: Path, numbers: range, groups: tuple[tuple[int, ...], ...]) -> None:
    """Writes the groups, one a line."""
    lines = [f'"{number}": {json.dumps(members)}' for number, members in zip(numbers, groups, strict=True)]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="ascii")


def read_groups(path: Path) -> tuple[Groups, list[Finding]]:
    """Members of each group, ascending, and what is wrong with single groups.

    Raises:
        InputError: the file cannot be read, or is no such JSON.
    """
    try:
        data = json.loads(path.read_bytes(), object_pairs_hook=_pairs)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    if not isinstance(data, _Pairs):
        raise InputError(f'{path}: an object of groups is wanted: {{"1": [0, 1], "2": [2, 3]}}')
    groups: Groups = {}
    findings: list[Finding] = []
    for key, members in data:
        number = _number(path, key)
        _check_members(path, key, members)
        if number in groups:
            raise InputError(f"{path}: group {number} occurs twice")
        if number == ALL_RANKS:
            reason = "group 0: it is the group of all ranks and cannot be listed; numbers from 1 on are wanted"
            findings.append(Finding(ERROR, "group-number", path.name, reason))
            continue
        if list(members) != sorted(members):
            reason = f"group {number}: its ranks are not in ascending order, as ASTRA-sim wants them: {_short(members)}"
            findings.append(Finding(WARNING, "unsorted-group", path.name, reason))
        groups[number] = tuple(sorted(members))
    return groups, findings


class _Pairs(list[tuple[str, Any]]):
    """An object of JSON with keys that may occur twice."""


def _pairs(pairs: list[tuple[str, Any]]) -> _Pairs:
    return _Pairs(pairs)


def _number(path: Path, key: str) -> int:
    if key.isascii() and key.isdigit() and len(key) < 11 and int(key) <= LARGEST:
        return int(key)
    raise InputError(f"{path}: group {key[:40]!r}: a number from 1 to {LARGEST} is wanted as its key")


def _check_members(path: Path, key: str, members: Any) -> None:
    whole = isinstance(members, list) and not isinstance(members, _Pairs)
    if not whole or not members or not all(type(rank) is int and rank >= 0 for rank in members):
        raise InputError(f"{path}: group {key}: a list of ranks is wanted, such as [0, 1]")
    if len(set(members)) != len(members):
        raise InputError(f"{path}: group {key}: a rank occurs twice: {_short(members)}")


def _short(members: list[int]) -> str:
    return f"[{', '.join(map(str, members[:8]))}{', ...' if len(members) > 8 else ''}]"
