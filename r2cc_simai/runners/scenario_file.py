"""Reading a scenario file as plain data: mappings, lists, texts, finite numbers; each key once."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from r2cc_simai.config import read_yaml
from r2cc_simai.errors import InputError

LONGEST_TEXT = 2000


def read_scenario(path: Path) -> dict[str, Any]:
    """The mapping that a scenario file holds.

    Raises:
        InputError: no such file, no YAML, a key that stands twice, or a value that is neither text nor a finite number.
    """
    try:
        data = read_yaml(path)
        double = next(_doubles(path), None)
    except (ValueError, RecursionError) as error:  # what PyYAML makes of numbers, dates and depths that make no sense
        reason = "nested too deeply" if isinstance(error, RecursionError) else " ".join(str(error).split())
        raise InputError(f"{path}: not YAML: {reason}") from None
    if double is not None:
        raise InputError(f"{path}: line {double[1]}: key {double[0]!r} stands twice in one mapping")
    odd = next(_odd(data, "", ()), None)
    if odd is not None:
        raise InputError(f"{path}: {odd}")
    return data


def checked(where: str, check: Callable[[], object]) -> None:
    """Runs a check of what a file names; `where` (file, block, key) stands in front of what is wrong.

    Raises:
        InputError: what the check raised; or a name that no file can have, a number that is too large to count with.
    """
    try:
        check()
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    except OSError as error:
        raise InputError(f"{where}: {error.filename!r}: {error.strerror}") from None
    except OverflowError:
        raise InputError(f"{where}: a number is too large") from None


def _doubles(path: Path) -> Iterator[tuple[str, int]]:
    """Keys that stand twice in one mapping, with their line; YAML readers take the last one without a word."""
    import yaml

    seen: set[int] = set()
    left = [yaml.compose(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))]
    while left:
        node = left.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            keys: set[str] = set()
            for key, value in node.value:
                if key.value in keys and isinstance(key, yaml.ScalarNode):
                    yield key.value, key.start_mark.line + 1
                keys.add(str(key.value))
                left.append(value)
        elif isinstance(node, yaml.SequenceNode):
            left.extend(node.value)


def _odd(value: Any, where: str, above: tuple[int, ...]) -> Iterator[str]:
    """What is wrong with a value: the place in the file and what would be right."""
    name = where or "the file"
    if id(value) in above:
        yield f"{name}: contains itself"
    elif isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                yield f"{name}: key {key!r} is no text; write it in quotes"
            yield from _odd(inner, f"{where}.{key}".lstrip("."), (*above, id(value)))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _odd(inner, f"{where}.{index}".lstrip("."), (*above, id(value)))
    elif isinstance(value, int) and not isinstance(value, bool):
        if abs(value) >= 2**63:
            yield f"{name}: a number below 2^63 is wanted"
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield f"{name}: {value} is no number; a finite one is wanted"
    elif isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            yield f"{name}: a text of {len(value)} characters; at most {LONGEST_TEXT}"
    elif not isinstance(value, bool | None):
        yield f"{name}: {value!r} is neither text nor a number; write it in quotes"
