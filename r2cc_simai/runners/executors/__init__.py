"""Where the cases of a sweep run: this process, processes of this machine, Slurm, or Ray. Results are the same on each.

`executor(name, options)` makes one; `base.Executor` is all that a sweep knows of it.
"""

from r2cc_simai.runners.executors.base import Executor, Work
from r2cc_simai.runners.executors.choice import NAMES, executor

__all__ = ["NAMES", "Executor", "Work", "executor"]
