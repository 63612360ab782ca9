"""Overhead over the lost bandwidth X for n servers: Figure 7 of the R2CC paper, by simulation."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from r2cc_simai.results.report import labels, palette, plotting, units
from r2cc_simai.results.report.document import Block, Cell, Plot, Section, SectionKind, Table, Text, columns
from r2cc_simai.results.table import Row
from r2cc_simai.results.tolerance import check

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SCENARIO = "figure7"
PER_LINE = 3
MARKERS = "osD^v"


def claims(row: Row) -> bool:
    """Claim the times of scenario `figure7` whose cluster names n and whose pattern names X."""
    return (
        row.scenario == SCENARIO
        and row.metric == "time"
        and row.overhead_pct is not None
        and labels.servers(row.cluster) is not None
        and labels.lost_fraction(row.pattern) is not None
    )


def build(rows: Sequence[Row]) -> Section:
    """Return the section: small multiples, and a table a strategy."""
    grid = _Grid(rows)
    blocks: list[Block] = [
        Text(
            "One server of n loses the fraction X of its bandwidth. Overhead = time of the AllReduce "
            "over that of the healthy ring of the same n, minus 1. The dashed line is the lower bound "
            "that no algorithm can beat."
        ),
        Plot(
            "figure7",
            f"Overhead over X for n = {grid.ns[0]} to {grid.ns[-1]} servers. Lines: backend "
            f"{grid.main_backend}{_markers_caption(grid)}.",
            plotting.draw(0.75 + 2.25 * _lines(len(grid.ns)), grid.paint),
        ),
    ]
    blocks += [grid.table(strategy) for strategy in grid.strategies]
    blocks.append(grid.bound_table())
    return Section(SCENARIO, "Overhead over the lost bandwidth X (Figure 7)", tuple(blocks), tuple(grid.findings()))


class _Grid:
    """The rows by n, X, strategy and backend."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.cells: dict[tuple[int, float, str, str], Row] = {}
        self.bounds: dict[tuple[int, float], float] = {}
        for row in rows:
            n, x = labels.servers(row.cluster), labels.lost_fraction(row.pattern)
            assert n is not None
            assert x is not None
            self.cells[n, x, row.strategy, row.backend] = row
            if row.bound and row.ideal:
                self.bounds[n, x] = 100.0 * (row.bound / row.ideal - 1.0)
        self.ns = sorted({key[0] for key in self.cells})
        self.xs = sorted({key[1] for key in self.cells})
        self.strategies = sorted({key[2] for key in self.cells}, key=labels.strategy_order)
        self.backends = sorted({key[3] for key in self.cells}, key=lambda b: (b != "flow", b))
        self.main_backend = self.backends[0]

    def points(self, n: int, strategy: str, backend: str) -> list[tuple[float, float]]:
        """Return (X, overhead in percent) in order of X."""
        found = [(x, self.cells.get((n, x, strategy, backend))) for x in self.xs]
        return [(x, row.overhead_pct) for x, row in found if row and row.overhead_pct is not None]

    def bound_points(self, n: int) -> list[tuple[float, float]]:
        """Return (X, lower bound's overhead in percent) in order of X."""
        return [(x, self.bounds[n, x]) for x in self.xs if (n, x) in self.bounds]

    def paint(self, figure: "Figure") -> None:
        """Draw a panel an n."""
        lines = _lines(len(self.ns))
        per_line = min(PER_LINE, len(self.ns))
        panels = figure.subplots(lines, per_line, sharex=True, sharey=True, squeeze=False).flatten()
        height = figure.get_size_inches()[1]
        figure.subplots_adjust(
            left=0.065, right=0.83, wspace=0.08, hspace=0.28, top=1.0 - 0.3 / height, bottom=0.5 / height
        )
        top = 1.06 * max([row.overhead_pct or 0.0 for row in self.cells.values()] + [1.0])
        for index, (n, axes) in enumerate(zip(self.ns, panels, strict=False)):
            last_in_line = index % per_line == per_line - 1 or index == len(self.ns) - 1
            self._paint_panel(axes, n, top, labelled=last_in_line)
        for axes in panels[len(self.ns) :]:
            axes.set_visible(False)
        figure.supylabel("overhead over the healthy ring (%)", fontsize=9.0, color=palette.MUTED, x=0.005)
        figure.supxlabel("X = lost fraction of one server's bandwidth", fontsize=9.0, color=palette.MUTED, y=0.01)

    def _paint_panel(self, axes: "Axes", n: int, top: float, labelled: bool) -> None:
        colors = palette.strategy_colors(self.strategies)
        dashes = palette.strategy_dashes(self.strategies)
        ends = []
        for strategy in self.strategies:
            drawn = [(b, points) for b in self.backends if (points := self.points(n, strategy, b))]
            for backend, points in drawn:
                look = self._line(dashes[strategy]) if backend == self.main_backend else self._marker(backend)
                axes.plot([p[0] for p in points], [p[1] for p in points], color=colors[strategy], **look)
            if drawn:
                ends.append((*drawn[0][1][-1], labels.strategy_name(strategy), colors[strategy]))
        bound = self.bound_points(n)
        if bound:
            axes.plot(
                [p[0] for p in bound],
                [p[1] for p in bound],
                color=palette.BOUND,
                linestyle=(0, (4, 2.5)),
                lw=1.3,
            )
            ends.append((*bound[-1], "lower bound", palette.BOUND))
        axes.set_title(f"n = {n}")
        axes.set_ylim(0.0, top)
        axes.set_xticks(self.xs, [units.fraction(x) for x in self.xs])
        axes.tick_params(labelbottom=True, length=2)
        if labelled:
            pad = 0.035 * (self.xs[-1] - self.xs[0] or 1.0)
            plotting.label_ends(axes, [(x + pad, y, text, color) for x, y, text, color in ends], (0.0, top))

    def _line(self, dash: str) -> dict[str, Any]:
        return {"linestyle": dash}

    def _marker(self, backend: str) -> dict[str, Any]:
        marker = MARKERS[(self.backends.index(backend) - 1) % len(MARKERS)]
        return {"marker": marker, "linestyle": "", "markerfacecolor": palette.PAPER, "markeredgewidth": 1.3}

    def table(self, strategy: str) -> Table:
        """Return a strategy's overhead, n by X, with the published value and other backends beside it."""
        rows = [(Cell(f"{n}"), *(self._cell(n, x, strategy) for x in self.xs)) for n in self.ns]
        return Table(
            f"{labels.strategy_name(strategy)}: overhead by {self.main_backend}",
            columns("n", *(f"X = {units.fraction(x)}" for x in self.xs)),
            tuple(rows),
        )

    def _cell(self, n: int, x: float, strategy: str) -> Cell:
        found = {b: self.cells[n, x, strategy, b] for b in self.backends if (n, x, strategy, b) in self.cells}
        main = found.get(self.main_backend)
        notes = [f"{b} {units.percent(row.overhead_pct)}" for b, row in found.items() if b != self.main_backend]
        published = next((r for r in found.values() if r.measured and r.ideal), None)
        if published and published.measured and published.ideal:
            notes.append(f"published {units.percent(100.0 * (published.measured / published.ideal - 1.0))}")
        checks = [c for c in map(check, found.values()) if c]
        bad = any(not c.ok for c in checks)
        return Cell(units.percent(main.overhead_pct if main else None), " · ".join(notes), "bad" if bad else "")

    def bound_table(self) -> Table:
        """Return the lower bound's overhead, n by X."""
        rows = [(Cell(f"{n}"), *(Cell(units.percent(self.bounds.get((n, x)))) for x in self.xs)) for n in self.ns]
        return Table(
            "Lower bound: overhead that no algorithm can avoid",
            columns("n", *(f"X = {units.fraction(x)}" for x in self.xs)),
            tuple(rows),
        )

    def findings(self) -> list[str]:
        """Return the overheads at the headline points."""
        return [self._headline(n, x) for n, x in self._headline_points()]

    def _headline_points(self) -> list[tuple[int, float]]:
        n = 8 if 8 in self.ns else self.ns[0]
        return [(n, x) for x in (0.125, 0.5) if x in self.xs] or [(n, self.xs[-1])]

    def _headline(self, n: int, x: float) -> str:
        found = [(s, self.cells.get((n, x, s, self.main_backend))) for s in self.strategies]
        parts = [f"{units.percent(r.overhead_pct)} with {labels.strategy_name(s)}" for s, r in found if r]
        limit = f" No algorithm gets below {units.percent(self.bounds[n, x])}." if (n, x) in self.bounds else ""
        return (
            f"When one of {n} servers loses {units.fraction(x)} of its bandwidth, AllReduce takes longer by "
            f"{', '.join(parts)}.{limit}"
        )


def _lines(panels: int) -> int:
    return -(-panels // PER_LINE)


def _markers_caption(grid: _Grid) -> str:
    others = grid.backends[1:]
    return f"; hollow markers: {', '.join(others)}" if others else ""


KIND = SectionKind(claims, build)
