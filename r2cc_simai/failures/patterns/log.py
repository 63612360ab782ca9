"""Failures that happened: the replay of an operator's event log."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from r2cc_simai.failures.event_log import read_event_log
from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.pattern import Site, pattern


@pattern
def log(site: Site, file: str, at: str = "") -> Iterable[Incident]:
    """Replay of an event log: a CSV with the columns time, component, state.

    `at` is the instant that is the job's time 0, written as the log writes its times; the first event by default.
    """
    path = Path(file) if site.base is None else site.base / file
    return read_event_log(path, site.cluster, at)
