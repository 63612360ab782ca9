"""How `failures list`, `show` and `draw` print patterns, events and incidents."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from r2cc_simai.cluster.model import Cluster
    from r2cc_simai.failures.incident import Incident
    from r2cc_simai.failures.pattern import Pattern
    from r2cc_simai.failures.timeline import Timeline

MOST_LINES = 100
"""A longer table is cut, with a line that says so."""

Draws = Sequence[tuple[int, "tuple[Incident, ...]"]]
"""Seeds, and the incidents of each."""


def state(fraction: float) -> str:
    """`down`, `up`, `50% of its rate`."""
    if fraction == 0:
        return "down"
    return "up" if fraction == 1 else f"{100 * fraction:.4g}% of its rate"


def when(seconds: float) -> str:
    """A time as people read it: `250 ms`, `31.5 s`, `2 h 15 min`, `3 d 4 h`."""
    from r2cc_simai.units import format_time

    if seconds < 600:
        return "0 s" if seconds == 0 else format_time(seconds)
    days, rest = divmod(round(seconds / 60), 24 * 60)
    hours, minutes = divmod(rest, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "min")]
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or "0 min"


def print_patterns(patterns: "Sequence[Pattern]") -> None:
    """Each pattern with its summary, and its options below it."""
    width = max(len(one.name) for one in patterns)
    for one in patterns:
        origin = f" ({one.origin})" if one.origin else ""
        typer.echo(f"{one.name:<{width}}  {_plain(one.summary)}{origin}")
        options = " ".join([*(option.shown for option in one.options), *(["[seed=...]"] if one.draws else [])])
        if options:
            typer.echo(f"{'':{width}}    {options}")


def print_meaning(pattern: "Pattern") -> None:
    """What a pattern is and takes, in full."""
    typer.echo(f"{pattern.name}: {_plain(pattern.summary) or 'no description'}.")
    for paragraph in pattern.details.split("\n\n") if pattern.details else []:
        typer.echo(textwrap.fill(_plain(paragraph), 100))
    for option in pattern.options:
        typer.echo(f"  {option.shown:<20} {option.takes}")
    if pattern.draws:
        typer.echo(f"  {'[seed=...]':<20} a whole number; without it the seed of the scenario counts")


def print_events(timeline: "Timeline", cluster: "Cluster", *, whole: bool) -> None:
    """The events of a timeline, in order of time."""
    from r2cc_simai.cli import show
    from r2cc_simai.units import format_size

    lines = []
    for event in timeline.events if whole else timeline.events[:MOST_LINES]:
        nic = cluster.nics[event.nic]
        time = f"{event.time_s:g} s" if event.at_bytes is None else f"after {format_size(event.at_bytes)}"
        left = nic.payload_rate * event.fraction / 1e9
        lines.append([time, nic.full_name, str(nic.rail), state(event.fraction), f"{left:.4g}"])
    head = f"{timeline.pattern} on {cluster.name}: {len(timeline.events)} events"
    show.table(head, ("time", "NIC", "rail", "state", "payload rate left (GB/s)"), lines, text=2)
    _say_cut(len(timeline.events), len(lines), "--all prints them")


def print_draws(title: str, draws: Draws) -> None:
    """The incidents of each seed, and a summary by cause."""
    from r2cc_simai.cli import show

    every = [(seed, one) for seed, incidents in draws for one in incidents]
    lines = [
        [
            str(seed),
            when(one.begin_s),
            one.component,
            state(one.state),
            one.counts_as,
            "for good" if one.end_s == float("inf") else when(one.end_s),
        ]
        for seed, one in every[:MOST_LINES]
    ]
    show.table(title, ("seed", "time", "component", "state", "cause", "until"), lines, text=6)
    _say_cut(len(every), len(lines), "--json prints them")
    if not every:
        typer.echo("Nothing fails.")
    for cause, numbers in summary(draws).items():
        typer.echo(
            f"{cause}: {numbers['incidents']} incidents, {numbers['mean']:.4g} a draw "
            f"({numbers['least']} to {numbers['most']})"
        )


def summary(draws: Draws) -> dict[str, dict[str, Any]]:
    """For every cause: its incidents in all draws, their mean, least and greatest number in a draw."""
    causes = sorted({one.counts_as for _, incidents in draws for one in incidents})
    counts = {cause: [sum(one.counts_as == cause for one in incidents) for _, incidents in draws] for cause in causes}
    return {
        cause: {"incidents": sum(each), "mean": sum(each) / len(each), "least": min(each), "most": max(each)}
        for cause, each in counts.items()
    }


def incident_rows(draws: Draws) -> Iterator[dict[str, Any]]:
    """The incidents for JSON; an end that never comes is null."""
    for seed, incidents in draws:
        for one in incidents:
            yield {
                "seed": seed,
                "component": one.component,
                "begin_s": one.begin_s,
                "end_s": None if one.end_s == float("inf") else one.end_s,
                "state": one.state,
                "cause": one.counts_as,
            }


def _plain(text: str) -> str:
    """Text of a docstring as a line for the terminal."""
    return " ".join(text.replace("`", "").split())


def _say_cut(there: int, shown: int, how: str) -> None:
    if there > shown:
        typer.echo(f"... and {there - shown} more; {how}")
