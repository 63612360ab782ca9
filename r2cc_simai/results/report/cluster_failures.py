"""Pictures of the clusters with their failures, of some of a run's patterns."""

import math
from collections.abc import Mapping, Sequence

from r2cc_simai.errors import SimaiError
from r2cc_simai.results.report import facets, labels
from r2cc_simai.results.report.document import Block, Plot, Section, Text
from r2cc_simai.results.table import Row
from r2cc_simai.results.tolerance import LAB

SLUG = "clusters"
MOST = 6
"""Pictures at most."""
DRAWS = 2
"""Pictures of one drawn pattern at most."""
TRIED = 10
"""Pairs of cluster and failure that are tried at most, where some cannot be read."""
LONGEST = 80
"""Characters of a pattern in a title."""
HOURS = "hours"
"""Metric whose value is the length of the job, up to which failures are drawn."""
NONE = ("", "none")
Place = tuple[str, str, int | None]
"""A cluster's name, the failure pattern on it, and the seed of one that draws."""


def build(rows: Sequence[Row], files: Mapping[str, str] | None = None) -> Section | None:
    """Return the section; None where nothing failed. What cannot be read any more is left out, and that said.

    `files` are the files of clusters that have one, by the clusters' names.
    """
    places = _places(rows)
    if not places:
        return None
    hours = {_place(row): row.simulated for row in rows if row.metric == HOURS and row.simulated is not None}
    shown: list[Block] = []
    left_out: list[str] = []
    drawn: list[Row] = []
    for place in _telling(list(places)):
        if len(shown) == MOST:
            break
        picture = _picture(place, (files or {}).get(place[0], place[0]), hours.get(place), len(shown))
        if isinstance(picture, Plot):
            shown.append(picture)
            drawn += places[place]
        else:
            left_out.append(picture)
    blocks: list[Block] = [Text(_said(len(shown), len(places))), *shown]
    if left_out:
        blocks.append(Text(f"Left out, since their cluster or failure cannot be read here: {'; '.join(left_out)}."))
    return Section(SLUG, "Clusters and failures", tuple(blocks), (), facets.of_rows(drawn))


def _said(shown: int, there_are: int) -> str:
    if shown == there_are:
        return "Where the failures of this run lie."
    return f"Where failures lie: {shown} of the {there_are} pairs of cluster and failure in this run."


def _place(row: Row) -> Place:
    return row.cluster, row.pattern, row.seed


def _places(rows: Sequence[Row]) -> dict[Place, list[Row]]:
    found: dict[Place, list[Row]] = {}
    for row in rows:
        if row.pattern not in NONE and not row.scenario.startswith(LAB):  # a lab's cluster is described elsewhere
            found.setdefault(_place(row), []).append(row)
    return found


def _telling(places: Sequence[Place]) -> list[Place]:
    """Return some places: the first of each kind of cluster, then those where most fails; few draws of a pattern."""
    drawn: dict[tuple[str, str], list[Place]] = {}
    for place in places:
        drawn.setdefault(place[:2], []).append(place)
    places = [place for draws in drawn.values() for place in draws[:DRAWS]]
    first = {labels.cluster_kind(place[0]): place for place in reversed(places)}.values()
    chosen = [place for place in places if place in first]
    others = sorted((place for place in places if place not in first), key=lambda place: -len(place[1].split()))
    return [*chosen, *others][:TRIED]


def _picture(place: Place, description: str, hours: float | None, number: int) -> Plot | str:
    """Return the plot, or what is wrong with it."""
    from r2cc_simai.cluster.load import load_cluster
    from r2cc_simai.failures.parse import incidents_of
    from r2cc_simai.results.report.cluster_picture import cluster_svg

    _, pattern, seed = place
    title = _title(place)
    try:
        cluster = load_cluster(description)
        horizon_s = math.inf if hours is None else 3600.0 * hours
        texts = [labels.without_bytes(text) for text in pattern.split()]
        incidents = incidents_of(texts, cluster, seed=seed or 0, horizon_s=horizon_s)
    except (SimaiError, OSError) as error:
        return f"{title} ({' '.join(str(error).split())})"
    caption = f"{title}. Red: down at some time, amber: slower, green: never touched."
    return Plot(f"{SLUG}-{number}", caption, cluster_svg(cluster, incidents, title))


def _title(place: Place) -> str:
    name, pattern, seed = place
    text = labels.short_pattern(pattern)
    text = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    return f"{name}: {text}" + ("" if seed is None else f", seed {seed}")
