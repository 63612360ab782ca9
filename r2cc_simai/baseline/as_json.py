"""The outcome of a check as one JSON object."""

import math
from dataclasses import asdict
from typing import Any

from r2cc_simai.baseline.numbers import Number
from r2cc_simai.baseline.verdict import Finding, Verdict


def to_json(verdict: Verdict, name: str) -> dict[str, Any]:
    """Return {"baseline", "ok", "compared", "findings"}; `compared` are numbers by strategy.

    A finding has the columns that name the number, its kind (moved, missing, new, error), whether the check `fails` for
    it, and before and now each with value, overhead_pct and seeds. A change that is infinite is null.
    """
    return {
        "baseline": name,
        "ok": verdict.ok,
        "compared": dict(sorted(verdict.compared.items())),
        "findings": [_finding(finding) for finding in verdict.findings],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    change, now = finding.change_pct, finding.now
    key = asdict(finding.key)
    del key["repeat"]
    return {
        **key,
        "kind": finding.kind.value,
        "fails": finding.fails,
        "before": _number(finding.before),
        "now": _number(now),
        "change_pct": None if change is None or math.isinf(change) else change,
        "overhead_change_points": finding.overhead_points,
        "allowed_pct": finding.allowed.value_pct,
        "allowed_points": finding.allowed.overhead_points,
        "measured": now.measured if now else None,
        "source": now.source if now else "",
        "error": now.error if now else "",
    }


def _number(number: Number | None) -> dict[str, Any] | None:
    if number is None:
        return None
    return {"value": number.value, "overhead_pct": number.overhead_pct, "seeds": number.seeds}
