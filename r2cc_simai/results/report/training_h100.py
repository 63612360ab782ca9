"""GPT 2.7B on two servers of eight H100: throughput under each strategy beside the published bars."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from r2cc_simai.results.report import labels, palette, plotting, training_settings, units
from r2cc_simai.results.report.document import Block, Cell, Plot, Section, SectionKind, Table, Text, columns
from r2cc_simai.results.table import Row
from r2cc_simai.results.tolerance import check

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCENARIO = "h100-training"
SETTINGS = "h100-training-settings"
FITTED = ("ideal", "balance")
"""The two bars that the two calibrated numbers are fitted to."""


def claims(row: Row) -> bool:
    """Claim the two scenarios."""
    return row.scenario in (SCENARIO, SETTINGS)


def build(rows: Sequence[Row]) -> Section:
    """Return the section: bars, a table with every residual, and how much depends on the settings."""
    told = [row for row in rows if row.metric == "tokens_per_s"]
    main = [row for row in told if row.scenario == SCENARIO] or told
    base = main[0].workload
    failed = [row for row in main if labels.family(row.strategy) != "ideal"]
    blocks: list[Block] = [
        Text(
            "Two numbers are calibrated and nothing else: the factor on the GPU's efficiencies by the healthy "
            "throughput, and the rate that NICs of nominally 400 Gb/s reach by Balance's bar, which says how long the "
            "gradients take (with one of eight NICs lost, Balance costs a seventh of that). All other bars are "
            "predictions; no strategy has a constant of its own."
        ),
        Text(f"Settings: {training_settings.prose(base)}."),
        Plot("h100-training", "Overhead over the healthy job: published and simulated.", _bars(failed)),
        Table("Throughput and overhead, every residual", _TITLES, tuple(map(_line, main))),
    ]
    others = [row for row in told if row.scenario == SETTINGS and row.strategy != "ideal"]
    if others:
        blocks += [
            Text(
                "Batch, sequence and the type of the gradients are not published. Whatever they are, the same two bars "
                "pin down the same exposed share, so that the predictions hardly move: below with both numbers fitted "
                "anew. What does matter is K, the chunks of R2CC-AllReduce's second stage, and on which server a "
                "second NIC fails."
            ),
            Table("The same with other settings", _OTHER_TITLES, tuple(_other(row, base) for row in others)),
        ]
    title = "Training GPT 2.7B on 2 × 8 H100"
    return Section(SCENARIO, title, tuple(blocks), tuple(_findings(main)))


_TITLES = columns(
    "<strategy", "<failure", "<what", "published", "simulated", "published overhead", "simulated overhead", "residual"
)
_OTHER_TITLES = columns("<settings", "<strategy", "<failure", "published overhead", "simulated overhead", "residual")


def _line(row: Row) -> tuple[Cell, ...]:
    what = "fitted" if labels.family(row.strategy) in FITTED else "predicted"
    return (
        Cell(_name(row)),
        Cell(_failure(row)),
        Cell(what),
        Cell(_tokens(row.measured)),
        Cell(_tokens(row.simulated)),
        *_compared(row),
    )


def _other(row: Row, base: str) -> tuple[Cell, ...]:
    settings = training_settings.difference(row.workload, base)
    return (Cell(settings), Cell(labels.strategy_name(row.strategy)), Cell(_failure(row)), *_compared(row))


def _compared(row: Row) -> tuple[Cell, ...]:
    published = training_settings.published_overhead(row)
    residual = None if published is None or row.overhead_pct is None else row.overhead_pct - published
    judged = check(row)
    tone = "" if judged is None else "ok" if judged.ok else "bad"
    return (
        Cell(training_settings.points(published)),
        training_settings.overhead(row),
        Cell(units.error(residual, "points"), tone=tone),  # type: ignore[arg-type]
    )


def _name(row: Row) -> str:
    backups = training_settings.parse(row.workload).get("backups")
    return labels.strategy_name(row.strategy) + (f", {backups} backup NICs" if backups else "")


def _failure(row: Row) -> str:
    if labels.family(row.strategy) == "ideal":
        return units.DASH
    failed = [part.partition("@")[0] for part in row.pattern.split()]
    return " and ".join(failed)


def _tokens(number: float | None) -> str:
    return units.DASH if number is None else f"{number:,.0f}/s"


def _bars(rows: Sequence[Row]) -> str:
    names = [f"{_name(row)}\n{_failure(row)}" for row in rows]
    series = [
        ("published", palette.MEASURED, [training_settings.published_overhead(row) for row in rows]),
        ("simulated", palette.SIMULATED, [row.overhead_pct for row in rows]),
    ]
    height = plotting.bars_height(len(rows), len(series))

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        figure.subplots_adjust(left=0.27, right=0.98, top=1 - 0.4 / height, bottom=0.5 / height)
        plotting.grouped_bars(axes, names, series, training_settings.points)
        axes.set_xlabel("overhead over the healthy job (%)")
        axes.legend(loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=2, borderaxespad=0.2)

    return plotting.draw(height, paint)


def _findings(rows: Sequence[Row]) -> list[str]:
    predicted = [row for row in rows if labels.family(row.strategy) not in FITTED and row.overhead_pct is not None]
    parts = [
        f"{_name(row)}{_how_many(row)} {training_settings.points(row.overhead_pct)} "
        f"(published {training_settings.points(training_settings.published_overhead(row))})"
        for row in predicted
        if row.measured
    ]
    if not parts:
        return []
    return [
        "Training GPT 2.7B on 2 × 8 H100 with a NIC down, predicted after fitting two numbers to the healthy and the "
        f"Balance bar: {'; '.join(parts)}."
    ]


def _how_many(row: Row) -> str:
    count = len(row.pattern.split())
    return f" with {count} NICs down" if count > 1 else ""


KIND = SectionKind(claims, build)
