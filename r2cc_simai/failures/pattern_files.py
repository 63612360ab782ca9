"""Patterns that a user keeps in a file: Python functions with `@pattern`, or one pattern in YAML."""

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from r2cc_simai.errors import InputError
from r2cc_simai.failures.pattern import Pattern
from r2cc_simai.plugins import one_line

YAML_SUFFIXES = (".yml", ".yaml")


def patterns_in(path: Path) -> tuple[Pattern, ...]:
    """The patterns that a `.py` or `.yml` file defines, at least one.

    Raises:
        InputError: no such file, it cannot be loaded, or it defines no pattern.
    """
    if path.suffix in YAML_SUFFIXES:
        from r2cc_simai.failures.yaml_pattern import read_pattern

        return (read_pattern(path),)
    if path.suffix != ".py":
        raise InputError(f"{path}: a pattern file ends in .py or .yml")
    module = _module(path)
    found = {id(one): one for one in vars(module).values() if isinstance(one, Pattern)}
    own = [one for one in found.values() if getattr(one.function, "__module__", None) == module.__name__]
    if not own:
        raise InputError(f"{path}: defines no pattern; write @pattern above a function")
    return tuple(replace(one, origin=str(path)) for one in own)


def _module(path: Path) -> ModuleType:
    """The file, run as a module of a name of its own; nothing is written beside it."""
    try:
        source = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or 'cannot be read'}") from None
    module = ModuleType(f"r2cc_simai_pattern_file:{path.resolve()}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where dataclasses and type hints look for it
    try:
        exec(compile(source, str(path), "exec"), vars(module))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except Exception as error:
        raise InputError(f"{path}: cannot be loaded: {one_line(error)}") from error
    return module
