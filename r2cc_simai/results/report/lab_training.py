"""Training through a failure in the lab: losses step by step, and what the failure did to their bits."""

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from r2cc_simai.results.report import labels, palette, plotting, units
from r2cc_simai.results.report.document import Block, Cell, Heading, Plot, Section, SectionKind, Table, Text, columns
from r2cc_simai.results.table import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PREFIX = "training-lab-"
HEALTHY = "ideal"
_LOSS = re.compile(r"loss\[(\d+)\]")
_HEIGHT = 4.6

Jobs = dict[str, dict[str, Row]]  # strategy, metric


def claims(row: Row) -> bool:
    """Claim the rows of jobs trained in the lab."""
    return row.scenario.startswith(PREFIX)


def build(rows: Sequence[Row]) -> Section:
    """Return the section: for each training file a plot of the losses and a table of the jobs."""
    blocks: list[Block] = [
        Text(
            "A small language model is trained data-parallel on the emulated cluster: the gradients of all ranks are "
            "summed by AllReduces with real bytes, and a NIC is cut in the middle of one. Floating-point sums depend "
            "on the order of their additions, which is the schedule's. Hot repair moves connections and leaves the "
            "schedule alone, so that not one bit may change; a strategy that plans anew adds in another order from the "
            "next AllReduce on. Beside that each job is trained in one process with the same schedules, and has to be "
            "the same bit for bit."
        )
    ]
    scenarios = list(dict.fromkeys(row.scenario for row in rows))
    findings: list[str] = []
    for scenario in scenarios:
        jobs = _by_strategy([row for row in rows if row.scenario == scenario])
        name = scenario.removeprefix(PREFIX)
        blocks += [Heading(name)] if len(scenarios) > 1 else []
        blocks += _blocks(name, jobs)
        findings += _findings(name, jobs)
    return Section("lab-training", "Training through a failure", tuple(blocks), tuple(findings))


def _by_strategy(rows: Sequence[Row]) -> Jobs:
    jobs: Jobs = {}
    for row in rows:
        jobs.setdefault(row.strategy, {})[row.metric] = row
    return jobs


def _blocks(name: str, jobs: Jobs) -> list[Block]:
    some = next(row for strategy, metrics in jobs.items() for row in metrics.values() if strategy != HEALTHY)
    return [
        Text(f"`{name}`: {some.workload}, on the lab `{some.cluster}`. Failure: `{some.pattern}`."),
        Plot(
            f"lab-training-{name}",
            "Loss of the healthy job, and how far the losses of the others are from it. Steps that are equal bit for "
            "bit have no point.",
            _losses(jobs),
        ),
        Table("Jobs", _TITLES, tuple(_line(strategy, metrics) for strategy, metrics in jobs.items())),
    ]


_TITLES = columns(
    "<strategy",
    "first replanned AllReduce",
    "equal losses",
    "equal parameters",
    "last loss (nat)",
    "perplexity",
    "difference",
    "AllReduce before",
    "hit by the cut",
    "after",
    "recoveries",
    "<all bits as in one process",
)


def _line(strategy: str, rows: dict[str, Row]) -> tuple[Cell, ...]:
    losses = _points(rows)
    replanned = _value(rows, "replanned_in")
    faulty = bool(_value(rows, "faults"))
    same = all(row.measured == row.simulated for row in rows.values() if row.simulated is not None)
    return (
        Cell(labels.strategy_name(strategy)),
        Cell(f"step {replanned:.0f}" if replanned else units.DASH),
        _steps(rows, "identical_losses", len(losses)),
        _steps(rows, "identical_parameters", len(losses)),
        Cell(f"{losses[-1][1]:.6f}"),
        Cell(f"{_value(rows, 'perplexity'):.6f}"),
        Cell(f"{_difference_pct(rows):+.6f}%", tone="bad" if faulty else "ok"),
        *(Cell(_milliseconds(rows, metric)) for metric in ("time_before", "time_cut", "time_after")),
        Cell(f"{_value(rows, 'recoveries'):.0f}"),
        Cell("yes" if same else "no", tone="ok" if same else "bad"),
    )


def _steps(rows: dict[str, Row], metric: str, steps: int) -> Cell:
    equal = int(_value(rows, metric))
    return Cell(f"all {steps} steps" if equal == steps else f"{equal} of {steps} steps")


def _milliseconds(rows: dict[str, Row], metric: str) -> str:
    return f"{1e3 * _value(rows, metric):.1f} ms" if metric in rows else units.DASH


def _value(rows: dict[str, Row], metric: str) -> float:
    return rows[metric].measured or 0.0


def _difference_pct(rows: dict[str, Row]) -> float:
    own = rows["perplexity"]
    return 100 * ((own.measured or 0.0) / own.ideal - 1) if own.ideal else math.nan


def _points(rows: dict[str, Row]) -> list[tuple[int, float, float]]:
    """Step, loss and the healthy job's loss."""
    found = [(_LOSS.fullmatch(metric), row) for metric, row in rows.items()]
    return sorted((int(match[1]), row.measured or 0.0, row.ideal or 0.0) for match, row in found if match)


def _losses(jobs: Jobs) -> str:
    strategies = sorted(jobs, key=labels.strategy_order)
    colors, dashes = palette.strategy_colors(strategies), palette.strategy_dashes(strategies)

    def paint(figure: "Figure") -> None:
        above, below = figure.subplots(2, 1, sharex=True)
        figure.subplots_adjust(left=0.085, right=0.97, top=0.93, bottom=0.11, hspace=0.28)
        for strategy in strategies:
            points, style = _points(jobs[strategy]), {"color": colors[strategy], "linestyle": dashes[strategy]}
            name = labels.strategy_name(strategy)
            if strategy == HEALTHY:
                above.plot([p[0] for p in points], [p[1] for p in points], label=name, **style)
                continue
            apart = [(step, abs(own - ideal)) for step, own, ideal in points if own != ideal]
            text = name if apart else f"{name}: equal bit for bit"
            below.plot([p[0] for p in apart], [p[1] for p in apart], label=text, marker="o", markersize=3, **style)
        below.set_yscale("log")
        above.set_ylabel("loss (nat)")
        below.set_ylabel("difference (nat)")
        below.set_xlabel("step")
        for axes in (above, below):
            axes.legend(loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=4, borderaxespad=0.2)

    return plotting.draw(_HEIGHT, paint)


def _findings(name: str, jobs: Jobs) -> list[str]:
    parts = []
    for strategy, rows in jobs.items():
        if strategy == HEALTHY:
            continue
        replanned = _value(rows, "replanned_in")
        what = (
            f"equal bit for bit up to step {_value(rows, 'identical_parameters'):.0f}, perplexity "
            f"{_difference_pct(rows):+.2g}% at the end"
            if replanned
            else "equal bit for bit to the end"
        )
        parts.append(f"{labels.strategy_name(strategy)} {what}")
    return [f"Training through a failure (`{name}`): {'; '.join(parts)}."] if parts else []


KIND = SectionKind(claims, build)
