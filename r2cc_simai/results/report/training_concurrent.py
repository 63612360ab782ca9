"""512 GPUs with several NICs down at once: the mean over drawn failures."""

from collections.abc import Sequence
from statistics import mean, stdev

from r2cc_simai.results.report import labels, training_lines, training_published, training_settings, units
from r2cc_simai.results.report.document import Block, Cell, Plot, Section, SectionKind, Table, Text, columns
from r2cc_simai.results.table import Row

SCENARIO = "training-512"
SETTINGS = "training-512-settings"
_PUBLISHED = {1: "overhead of 512 GPUs with 1 failure", 10: "overhead of 512 GPUs with 10 failures"}


def claims(row: Row) -> bool:
    """Claim the two scenarios."""
    return row.scenario in (SCENARIO, SETTINGS)


def build(rows: Sequence[Row]) -> Section:
    """Return the section: mean overhead over the number of failures, with its standard error and the largest."""
    told = [row for row in rows if row.metric == "tokens_per_s" and row.overhead_pct is not None]
    main = [row for row in told if row.scenario == SCENARIO] or told
    base = main[0].workload
    blocks: list[Block] = [
        Text(
            "NICs are drawn from all of the cluster and down from the start, the same ones for all strategies. All "
            "wait for the server that has lost most, so that failures on different servers cost hardly more than one. "
            "Ten on 64 servers hit one of them twice about every other time."
        ),
        Text(f"Settings, chosen since the paper's are unknown: {training_settings.prose(base)}."),
        Plot("training-512", "Mean overhead by the number of NICs down at once.", _plot(main)),
        Table("Overhead: mean ± standard error, and the largest of the draws", _TITLES, tuple(_lines(main))),
    ]
    others = [row for row in told if row.scenario == SETTINGS]
    if others:
        blocks.append(_settings(others, base))
    return Section(SCENARIO, "512 GPUs with 1 to 10 NICs down at once", tuple(blocks), tuple(_findings(main)))


_TITLES = columns("<strategy", "NICs down", "draws", "mean overhead", "largest", "published (R²CC)")


def _draws(rows: Sequence[Row]) -> dict[tuple[str, int], list[float]]:
    found: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        found.setdefault((row.strategy, len(row.pattern.split())), []).append(row.overhead_pct or 0.0)
    return {key: found[key] for key in sorted(found, key=lambda k: (labels.strategy_order(k[0]), k[1]))}


def _plot(rows: Sequence[Row]) -> str:
    points: dict[str, list[tuple[float, float]]] = {}
    for (strategy, count), values in _draws(rows).items():
        points.setdefault(strategy, []).append((float(count), mean(values)))
    known = ((float(count), training_published.value(name)) for count, name in _PUBLISHED.items())
    published = [(count, figure) for count, figure in known if figure is not None]
    return training_lines.lines(points, "NICs down at once", "overhead over the healthy job (%)", published)


def _lines(rows: Sequence[Row]) -> list[tuple[Cell, ...]]:
    return [
        (
            Cell(labels.strategy_name(strategy)),
            Cell(f"{count}"),
            Cell(f"{len(values)}"),
            Cell(_mean(values)),
            Cell(training_settings.points(max(values))),
            Cell(_published(strategy, count)),
        )
        for (strategy, count), values in _draws(rows).items()
    ]


def _settings(rows: Sequence[Row], base: str) -> Table:
    lines = []
    for workload in dict.fromkeys(row.workload for row in rows):
        for (strategy, count), values in _draws([row for row in rows if row.workload == workload]).items():
            settings = training_settings.difference(workload, base)
            cells = (settings, labels.strategy_name(strategy), f"{count}", f"{len(values)}", _mean(values))
            lines.append(tuple(map(Cell, cells)))
    titles = columns("<what differs", "<strategy", "NICs down", "draws", "mean overhead")
    return Table("The same with other settings", titles, tuple(lines))


def _mean(values: Sequence[float]) -> str:
    spread = f" ± {stdev(values) / len(values) ** 0.5:.2f}" if len(values) > 1 else ""
    return f"{mean(values):.2f}{spread}%"


def _published(strategy: str, count: int) -> str:
    figure = training_published.value(_PUBLISHED.get(count, ""))
    return f"{figure:g}%" if labels.family(strategy) == "r2cc-allreduce" and figure is not None else units.DASH


def _findings(rows: Sequence[Row]) -> list[str]:
    draws = _draws(rows)
    parts = []
    for strategy in dict.fromkeys(s for s, _ in draws):
        counts = [count for s, count in draws if s == strategy]
        few, many = (mean(draws[strategy, count]) for count in (counts[0], counts[-1]))
        published = [training_published.value(_PUBLISHED.get(count, "")) for count in (counts[0], counts[-1])]
        note = ""
        if labels.family(strategy) == "r2cc-allreduce" and None not in published:
            note = f" (published {published[0]:g}% to {published[1]:g}%)"
        parts.append(f"{labels.strategy_name(strategy)} {few:.2f}% to {many:.2f}%{note}")
    ends = sorted({count for _, count in draws})
    return [f"512 GPUs, {ends[0]} to {ends[-1]} NICs down at once, mean overhead: {'; '.join(parts)}."]


KIND = SectionKind(claims, build)
