"""The executors by name, and their options as a user writes them."""

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel

from r2cc_simai.config import validated
from r2cc_simai.errors import InputError
from r2cc_simai.runners.case_run import RunCase
from r2cc_simai.runners.executors.base import Executor, Work

NAMES = ("processes", "slurm", "ray")
M = TypeVar("M", bound=BaseModel)


def executor(name: str, options: Sequence[str], workers: int, work: Work, run_case: RunCase) -> Executor:
    """The executor of a name. `options` are `key=value`; `workers`: processes of this machine, one runs the cases here.

    Raises:
        InputError: no such executor or option.
        MissingComponentError: the library that it needs is not installed.
    """
    if name == "processes":
        from r2cc_simai.runners.executors.processes import Processes, ProcessOptions
        from r2cc_simai.runners.executors.serial import Serial

        chosen = _options(ProcessOptions, name, options)
        return Serial(work.setup, run_case) if workers == 1 else Processes(workers, work.setup, chosen)
    if name == "slurm":
        from r2cc_simai.runners.executors.slurm import Slurm, SlurmOptions

        return Slurm(work, _options(SlurmOptions, name, options))
    if name == "ray":
        from r2cc_simai.runners.executors.ray import Ray, RayOptions

        return Ray(work, _options(RayOptions, name, options))
    raise InputError(f"--executor {name}: no such executor (allowed: {', '.join(NAMES)})")


def _options(model: type[M], name: str, options: Sequence[str]) -> M:
    values: dict[str, str] = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals or not value:
            raise InputError(f"--executor-option {option!r}: write key=value")
        if key in values:
            raise InputError(f"--executor-option {key}: stands twice")
        values[key] = value
    return validated(model, values, f"--executor-option of {name}")
