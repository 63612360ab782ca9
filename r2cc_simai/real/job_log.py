"""Reads a log of a real training or serving job, whatever its form."""

from pathlib import Path

from r2cc_simai.errors import InputError
from r2cc_simai.measured.log_text import log_text, read_text
from r2cc_simai.real import megatron_log
from r2cc_simai.real.job_metrics import JobMeasurement
from r2cc_simai.real.megatron_log import Window, read_megatron
from r2cc_simai.real.vllm_json import read_vllm


def read_job_log(path: Path, window: Window, seq_length: int | None) -> list[JobMeasurement]:
    """What a log measured; `window` and `seq_length` are for logs of iterations.

    Raises:
        InputError: one line with file and line, on anything else and on a log that is cut short.
    """
    text = read_text(path)
    if text.lstrip().startswith("{"):
        return read_vllm(str(path), text)
    log = log_text(str(path), text)
    if log.find(megatron_log.SIGN) is not None:
        return [read_megatron(log, window, seq_length)]
    raise InputError(f"{path}:1: expected a log of Megatron-LM ('iteration N/ N | ..') or the JSON of vllm bench serve")
