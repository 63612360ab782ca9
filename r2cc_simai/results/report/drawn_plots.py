"""Plots of the section on drawn failures: distributions of the overhead, and the loss by cause."""

from typing import TYPE_CHECKING

import numpy as np

from r2cc_simai.results.report import labels, palette, plotting
from r2cc_simai.results.report.document import Plot
from r2cc_simai.results.report.drawn_words import gpu_h
from r2cc_simai.results.statistics import CauseLoss, Sample, Study, quantile
from r2cc_simai.results.statistics.lost_time import ranked_causes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINTS = 200
"""Steps of a curve: a plot does not grow with the draws."""
LOG_FROM = 30.0
"""Ratio of the largest to the least overhead from which on the axis is logarithmic."""
NOTHING = 1e-9
"""An overhead in percent that is none."""
COLORS = ("#2563ea", "#b45308", "#0b7a75", "#7c3aec", "#dc2625", "#3f6211", "#be1859")
OTHERS = "other causes"
OTHERS_COLOR = palette.MEASURED


def distributions(study: Study, slug: str) -> Plot:
    """Return the empirical distribution of each strategy's overhead, p99 as a dot."""
    metric = study.metrics[0]
    drawn = study.overheads(metric)
    shown = {s: drawn[s] for s in sorted(drawn, key=labels.strategy_order) if s != "ideal"}
    caption = f"Share of the draws whose overhead ({labels.metric_name(metric)}) is at most so much; the dot is p99."
    if any((sample.values <= NOTHING).any() for sample in shown.values()):
        caption += " A curve starts above 0% where some draws cost nothing."
    return Plot(slug, caption, plotting.draw(3.6, lambda figure: _paint_distributions(figure, shown)))


def causes(study: Study, slug: str) -> Plot:
    """Return a bar a strategy: the shares of the causes in the lost GPU-hours, with their sum at its end."""
    strategies = sorted(study.causes, key=labels.strategy_order)
    shown = {s: study.causes[s] for s in strategies if any(one.share_pct for one in study.causes[s])}
    height = 1.0 + 0.32 * len(shown)
    caption = "What the lost GPU-hours are lost to; at the end of each bar how many they are a month."
    return Plot(slug, caption, plotting.draw(height, lambda figure: _paint_causes(figure, shown)))


def _paint_distributions(figure: "Figure", shown: dict[str, Sample]) -> None:
    axes = figure.subplots()
    figure.subplots_adjust(left=0.065, right=0.8, top=0.96, bottom=0.14)
    finite = np.concatenate([s.values[np.isfinite(s.values)] for s in shown.values()])
    some = finite[finite > NOTHING]
    least, largest = (float(some.min()), float(some.max())) if len(some) else (0.1, 1.0)
    logarithmic = largest > LOG_FROM * least
    left = least / 1.6 if logarithmic else min(0.0, float(finite.min(initial=0.0)))
    right = largest * (1.6 if logarithmic else 1.05)
    colors, dashes = palette.strategy_colors(list(shown)), palette.strategy_dashes(list(shown))
    for strategy, sample in shown.items():
        _curve(axes, sample, left, right, colors[strategy], dashes[strategy], labels.strategy_name(strategy))
    if logarithmic:
        axes.set_xscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(0.0, 103.0)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.10f}".rstrip("0").rstrip(".") + "%")
    axes.xaxis.set_minor_formatter(lambda *_: "")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0f}%")
    axes.set_xlabel("overhead over the healthy job")
    axes.set_ylabel("share of the draws")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), labelcolor=palette.INK)


def _curve(axes: "Axes", sample: Sample, left: float, right: float, color: str, dash: str, name: str) -> None:
    """Draws the inverse of the distribution at so many shares; what is left of the axis starts at its edge."""
    shares = np.linspace(0.0, 1.0, min(POINTS, len(sample.values)) + 1)
    values = np.clip(quantile(sample.values, shares), left, right)
    axes.step([left, *values, right], [0.0, *(100.0 * shares), 100.0], where="post", color=color, ls=dash, label=name)
    p99 = float(quantile(sample.values, 0.99))
    if left < p99 < right:
        axes.plot([p99], [99.0], "o", color=color)


def _paint_causes(figure: "Figure", shown: dict[str, list[CauseLoss]]) -> None:
    axes = figure.subplots()
    height = figure.get_size_inches()[1]
    figure.subplots_adjust(left=0.17, right=0.8, top=1 - 0.1 / height, bottom=0.5 / height)
    ranked = ranked_causes(list(shown.values()))
    named = ranked if len(ranked) <= len(COLORS) else ranked[: len(COLORS) - 1]
    stacks = [(cause, color, [cause]) for cause, color in zip(named, COLORS, strict=False)]
    if len(named) < len(ranked):
        stacks.append((OTHERS, OTHERS_COLOR, ranked[len(named) :]))
    begins = np.zeros(len(shown))
    for name, color, members in stacks:
        shares = np.array([sum(one.share_pct or 0.0 for one in own if one.cause in members) for own in shown.values()])
        axes.barh(range(len(shown)), shares, left=begins, height=0.66, color=color, label=name)
        begins += shares
    for y, own in enumerate(shown.values()):
        axes.text(101.0, y, f"{gpu_h(sum(one.gpu_h for one in own))} GPU-h", va="center", fontsize=8.5)
    axes.set_yticks(range(len(shown)), [labels.strategy_name(s) for s in shown])
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_xlim(0.0, 118.0)
    axes.set_xticks([0, 25, 50, 75, 100])
    axes.spines["bottom"].set_bounds(0.0, 100.0)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0f}%")
    axes.set_xlabel("share of the lost GPU-hours")
    axes.tick_params(axis="y", length=0, labelcolor=palette.INK)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.02), labelcolor=palette.INK)
