"""Reads a log of a real run, whatever its form."""

from collections.abc import Callable
from pathlib import Path
from re import Pattern

from r2cc_simai.errors import InputError
from r2cc_simai.measured import cuda_graph, hot_repair, nccl_tests
from r2cc_simai.measured.clean import clean_log
from r2cc_simai.measured.log_text import LogText, read_text
from r2cc_simai.measured.model import Measurement
from r2cc_simai.measured.nccl_tests_json import read_nccl_tests_json

FORMS: tuple[tuple[Pattern[str], Callable[[LogText], list[Measurement]]], ...] = (
    (cuda_graph.SIGN, cuda_graph.read_cuda_graph),
    (hot_repair.SIGN, hot_repair.read_hot_repair),
    (nccl_tests.SIGN, nccl_tests.read_nccl_tests),
)
"""Sign by which a text form is known, and its reader."""


def read_log(path: str | Path) -> list[Measurement]:
    """Every run that the log holds; its form is recognised by its content.

    Known are the text (13 or 21 columns) and JSON of nccl-tests, R2CC's hot-repair log and its CUDA-graph
    log. Raises InputError, one line with file, line and what was expected, on anything else and on a log
    that is empty or cut short.
    """
    text = read_text(Path(path))
    if text.lstrip().startswith("{"):
        return read_nccl_tests_json(str(path), text)
    log = clean_log(str(path), text)
    for sign, read in FORMS:
        if log.find(sign) is not None:
            return read(log)
    raise InputError(
        f"{path}:1: expected the output of nccl-tests (text or -J) or an R2CC hot-repair or CUDA-graph log"
    )
