"""Bytes that each NIC of the r7525 servers carries in an iteration: simulated beside counted."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from r2cc_simai.results.report import comparison, labels, palette, plotting, units
from r2cc_simai.results.report.document import Plot, Section, SectionKind, Text
from r2cc_simai.results.table import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SLUG = "r7525-bytes"
PER_LINE = 2
MOST = 12
"""Runs that the plot shows at most; the table has all."""
Run = tuple[str, str, str, str, int]
"""What tells runs apart: scenario, strategy, pattern, backend, size in bytes."""


def claims(row: Row) -> bool:
    """Claim the per-NIC counters of the scenarios `r7525-*` and `table4`."""
    ours = row.scenario.startswith("r7525-") or row.scenario == "table4"
    return ours and labels.counter(row.metric) is not None


def build(rows: Sequence[Row]) -> Section:
    """Return the section: a panel a run that was measured, and a table of all."""
    runs: dict[Run, list[Row]] = {}
    for row in sorted(rows, key=_order):
        runs.setdefault(_run(row), []).append(row)
    measured = {run: own for run, own in runs.items() if any(r.measured is not None for r in own)} or runs
    shown = dict(list(measured.items())[:MOST])
    ordered = [row for own in measured.values() for row in own if row.measured is not None] or rows
    leading = (comparison.STRATEGY, comparison.PATTERN, comparison.METRIC, comparison.BACKEND)
    return Section(
        SLUG,
        "r7525, bytes per NIC",
        (
            Text(
                "Bytes per NIC and iteration, packet headers included, against the counters of the NICs. Allowed: 1%."
            ),
            _plot(shown),
            comparison.table("Bytes per NIC and iteration", ordered, leading),
        ),
    )


def _order(row: Row) -> tuple[object, ...]:
    return (
        row.scenario,
        labels.strategy_order(row.strategy),
        labels.natural(row.pattern),
        row.backend,
        row.bytes,
        row.metric,
    )


def _run(row: Row) -> Run:
    return row.scenario, row.strategy, row.pattern, row.backend, row.bytes


def _plot(runs: dict[Run, list[Row]]) -> Plot:
    lines = -(-len(runs) // PER_LINE)
    tallest = max(len(own) for own in runs.values())
    height = lines * (0.85 + 0.5 * tallest)
    caption = "Bytes per NIC in an iteration, measured and simulated, a panel a run."
    return Plot(SLUG, caption, plotting.draw(height, lambda figure: _paint(figure, runs, lines)))


def _paint(figure: "Figure", runs: dict[Run, list[Row]], lines: int) -> None:
    panels = figure.subplots(lines, PER_LINE, squeeze=False).flatten()
    height = figure.get_size_inches()[1]
    figure.subplots_adjust(
        left=0.14, right=0.985, wspace=0.42, hspace=0.45, top=1 - 0.62 / height, bottom=0.42 / height
    )
    suffix = comparison.backend_suffix([row for rows in runs.values() for row in rows])
    for axes, (run, rows) in zip(panels, runs.items(), strict=False):
        series = [
            ("measured", palette.MEASURED, [row.measured for row in rows]),
            ("simulated", palette.SIMULATED, [row.simulated for row in rows]),
        ]
        plotting.grouped_bars(axes, [_nic(row) for row in rows], series, _text, room=0.28)
        plotting.byte_ticks(axes)
        axes.set_title(_title(run, suffix(rows[0])), fontsize=8.5)
    for axes in panels[len(runs) :]:
        axes.set_visible(False)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="upper left", ncols=2, borderaxespad=0.2)


def _nic(row: Row) -> str:
    found = labels.counter(row.metric)
    return f"{found[1]} {found[0]}" if found else row.metric


def _text(count: float) -> str:
    return units.size(count, fixed=True)


def _title(run: Run, suffix: str) -> str:
    _, strategy, pattern, _, _ = run
    failure = f"\n{labels.short_pattern(pattern)}" if pattern else ""
    return f"{labels.strategy_name(strategy)}{suffix}{failure}"


KIND = SectionKind(claims, build)
