"""Reads the JSON that `vllm bench serve --save-result` writes: one object, or with --append-result one a line.

Times of requests (TTFT: to the first token; TPOT: per output token after it; ITL: between tokens; E2EL: the whole
request) come as mean, median, standard deviation and percentiles in ms.
"""

import json
import re
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

from r2cc_simai.errors import InputError
from r2cc_simai.real.job_metrics import JobMeasurement, JobMetric

_TIME = re.compile(r"(mean|median|p\d+(?:\.\d+)?)_(ttft|tpot|itl|e2el)_ms")
_RATES = {
    "request_throughput": "requests_per_s",
    "output_throughput": "output_tokens_per_s",
    "total_token_throughput": "total_tokens_per_s",
    "request_goodput": "good_requests_per_s",
}
_REQUIRED = ("completed", "request_throughput", "output_throughput", "mean_ttft_ms", "mean_tpot_ms")


def read_vllm(name: str, text: str) -> list[JobMeasurement]:
    """Every run of a file: `ttft_mean`, `tpot_p99`, .. in seconds, `requests_per_s`, `output_tokens_per_s`, ..

    Raises:
        InputError: no JSON, cut short, a key that is missing, a value that is no number, or a run without a request.
    """
    return [_measurement(where, document) for where, document in _documents(name, text)]


def _documents(name: str, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a file, each with the line on which it begins."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        line = text.count("\n", 0, at) + 1
        try:
            document, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            expected = "expected the JSON of vllm bench serve, complete"
            raise InputError(f"{name}:{error.lineno}: {expected}: {error.msg}") from None
        if not isinstance(document, dict):
            raise InputError(f"{name}:{line}: expected a JSON object of vllm bench serve")
        yield f"{name}:{line}", document


def _measurement(where: str, document: Mapping[str, Any]) -> JobMeasurement:
    for key in _REQUIRED:
        if key not in document:
            raise InputError(f"{where}: expected key {key!r} in the JSON of vllm bench serve --save-result")
    if not _value(where, document, "completed"):
        raise InputError(f"{where}: no request was completed, so that nothing was measured")
    metrics = []
    for key in document:
        match = _TIME.fullmatch(key)
        if match is not None:
            metrics.append(JobMetric(f"{match[2]}_{match[1]}", "s", _value(where, document, key) / 1e3))
        elif key in _RATES and document[key] is not None:
            metrics.append(JobMetric(_RATES[key], "1/s", _value(where, document, key), True))
    failed = int(_value(where, document, "failed")) if document.get("failed") is not None else 0
    remarks = (f"{where}: {failed} requests failed",) if failed else ()
    return JobMeasurement(where, "vllm", str(document.get("model_id", "")), tuple(metrics), remarks)


def _value(where: str, document: Mapping[str, Any], key: str) -> float:
    value = document[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 0:
        raise InputError(f"{where}: {key}: expected a number from 0 on, found {str(value)[:40]!r}")
    return float(value)
