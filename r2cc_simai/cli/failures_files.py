"""The option `--pattern-file`, which several commands have."""

from pathlib import Path
from typing import Annotated

import typer

PatternFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--pattern-file", metavar="FILE", help="Failure patterns of your own, .py or .yml (see 'failures new')."
    ),
]


def load_patterns(files: list[Path] | None) -> None:
    """Adds the patterns of files to those that --fail knows.

    Raises:
        InputError: a file is wrong.
    """
    if not files:
        return
    from r2cc_simai.failures.registry import load_pattern_file

    for file in files:
        load_pattern_file(file)
