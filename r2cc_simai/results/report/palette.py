"""Colours of the plots, and what each becomes on a dark page.

A plot is drawn in the light colours. The HTML page replaces each by a CSS variable of its own, so that one
SVG serves both themes.
"""

from r2cc_simai.results.report.labels import family

INK = "#1f2430"
MUTED = "#6b7281"
GRID = "#e3e6eb"
PAPER = "#fffffe"
BAND = "#d9efe1"
SIMULATED = "#2563ea"
MEASURED = "#a3aab5"
BOUND = "#4b5362"
DOWN = "#dc2625"
SLOWER = "#d97707"
WORKS = "#8fc3a4"

DARK = {
    INK: "#e6e9ef",
    MUTED: "#9aa3b2",
    GRID: "#2e3542",
    PAPER: "#171b22",
    BAND: "#1e3a2b",
    SIMULATED: "#6ea0ff",
    MEASURED: "#6d7685",
    BOUND: "#b6bec9",
    SLOWER: "#f5b544",
    WORKS: "#3d7d5a",
    "#b45308": "#f0a04b",
    "#0b7a75": "#3fc1b5",
    "#7c3aec": "#b794f6",
    DOWN: "#f87c7c",
    "#8a5a3b": "#c99b78",
    "#be1859": "#f472a6",
    "#64748a": "#a2b0c2",
    "#3f6211": "#a3d156",
}
"""Every colour of a plot in its light form, and its dark form."""

_OF_FAMILY = {
    "ideal": "#64748a",
    "hot-repair": "#b45308",
    "balance": SIMULATED,
    "r2cc-allreduce": "#0b7a75",
    "optcc": "#7c3aec",
    "adapcc": DOWN,
    "nccl": "#8a5a3b",
    "nccl-failover": "#be1859",
    "auto": "#3f6211",
}
_OTHERS = ("#be1859", "#3f6211", "#8a5a3b", "#64748a")


def strategy_colors(strategies: list[str]) -> dict[str, str]:
    """Return a colour for each strategy: fixed for the known ones, in turn for the others."""
    unknown = sorted({family(s) for s in strategies} - set(_OF_FAMILY))
    spare = {name: _OTHERS[i % len(_OTHERS)] for i, name in enumerate(unknown)}
    return {s: _OF_FAMILY.get(family(s)) or spare[family(s)] for s in strategies}


def strategy_dashes(strategies: list[str]) -> dict[str, str]:
    """Return a line style for each strategy: variants of one family differ by it."""
    styles = ("-", "-.", ":", "--")
    seen: dict[str, int] = {}
    dashes = {}
    for strategy in strategies:
        index = seen.get(family(strategy), 0)
        dashes[strategy] = styles[index % len(styles)]
        seen[family(strategy)] = index + 1
    return dashes
