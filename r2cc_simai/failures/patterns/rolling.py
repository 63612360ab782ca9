"""Rolling maintenance: one component after the other is taken out."""

from collections.abc import Iterator
from typing import Literal

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.errors import InputError
from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.pattern import Fraction, Seconds, Site, pattern
from r2cc_simai.failures.places import at_most, left


@pattern
def rolling(
    site: Site,
    over: Literal["rail", "leaf", "server", "nic"] = "rail",
    each: Seconds = 600.0,
    gap: Seconds = 300.0,
    count: int | None = None,
    first: int = 0,
    at: Seconds = 0.0,
    fraction: Fraction = 0.0,
) -> Iterator[Incident]:
    """Maintenance of one rail, leaf, server or NIC after the other, `each` so long, with a `gap` between."""
    names = _names(site.cluster, over)
    if not names:
        raise InputError(f"over={over}: {site.cluster.name} has no leaf switches; write over=rail")
    if not 0 <= first < len(names):
        raise InputError(f"first={first}: {site.cluster.name} has {over}s 0 to {len(names) - 1}")
    if each <= 0:
        raise InputError("each=0: a time above 0 is wanted")
    many = len(names) - first if count is None else count
    at_most("count", many, len(names) - first, f"{site.cluster.name}'s {over}s: {len(names)}, first={first}")
    for step, name in enumerate(names[first : first + many]):
        begin = at + step * (each + gap)
        yield Incident(name, begin, begin + each, left(fraction), "maintenance")


def _names(cluster: Cluster, over: str) -> list[str]:
    if over == "rail":
        return [f"rail{rail}" for rail in sorted({nic.rail for nic in cluster.nics})]
    if over == "leaf":
        return [f"leaf{leaf.index}" for leaf in cluster.leaves]
    if over == "server":
        return [f"server{server.index}" for server in cluster.servers]
    return [nic.full_name for nic in cluster.nics]
