"""The outcome of a check as Markdown, for the comment under a change or the summary of a job."""

from collections.abc import Sequence

from r2cc_simai.baseline.numbers import plain
from r2cc_simai.baseline.verdict import Finding, Kind, Verdict
from r2cc_simai.baseline.wording import COLUMNS, TEXT_COLUMNS, cells, headline, listed, moved_groups

SHOWN = 20
FOLDED = 130
"""Rows of the table, and further rows in the part that is folded away: together below what a comment may hold."""

_WORDS = {
    Kind.ERROR: "cases that failed",
    Kind.MISSING: "numbers of the baseline that the run does not have",
    Kind.NEW: "numbers that the baseline does not have",
}


def render_markdown(verdict: Verdict, name: str, update: str) -> str:
    """Return the summary: verdict, a line a strategy, a table of the largest moves, and the rest folded away.

    `name` is the baseline's, `update` the command that accepts the run as the new baseline.
    """
    outcome = "passed" if verdict.ok else "failed"
    parts = [f"### Overhead numbers against baseline {_code(name)}: {outcome}", f"{escape(headline(verdict))}."]
    moved = verdict.of_kind(Kind.MOVED)
    if moved:
        parts.append("\n".join(f"- {escape(group.sentence())}" for group in moved_groups(verdict)))
        parts.append("The largest moves; a positive change is a loss, also of numbers of which more is better.")
        parts.append(_table(moved[:SHOWN]))
        if moved[SHOWN:]:
            parts.append(_folded(f"{len(moved) - SHOWN} more", _table(moved[SHOWN : SHOWN + FOLDED]), len(moved)))
    for kind, words in _WORDS.items():
        found = verdict.of_kind(kind)
        if found:
            lines = "\n".join(f"- {escape(line)}" for line in listed(found[:FOLDED]))
            parts.append(_folded(f"{len(found)} {words}", lines, len(found)))
    if not verdict.ok:
        parts.append(f"If that is meant, update the baseline and commit it: {_code(update)}")
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Return text that Markdown and HTML show as it is; texts of numbers hold printable characters alone."""
    for sign in "\\`*_|[]#~":
        text = text.replace(sign, "\\" + sign)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _table(findings: Sequence[Finding]) -> str:
    head = "| " + " | ".join(escape(column) for column in COLUMNS) + " |"
    rule = "|" + "|".join(":---" if i < TEXT_COLUMNS else "---:" for i in range(len(COLUMNS))) + "|"
    return "\n".join([head, rule, *("| " + " | ".join(map(escape, cells(f))) + " |" for f in findings)])


def _folded(title: str, body: str, count: int) -> str:
    shown = f"\n\nThe first {FOLDED}; `r2cc-simai baseline check --json` lists all." if count > FOLDED + SHOWN else ""
    return f"<details>\n<summary>{title}</summary>\n\n{body}{shown}\n\n</details>"


def _code(text: str) -> str:
    """A code span; what would end it is left out."""
    return "`" + plain(text).replace("`", "") + "`"
