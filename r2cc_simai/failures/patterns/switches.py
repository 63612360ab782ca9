"""Switches that fail, with the NICs below them."""

from collections.abc import Iterator

from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.pattern import Fraction, Seconds, Site, pattern
from r2cc_simai.failures.places import end_of, left, rail_or_leaf


@pattern
def rail(
    site: Site,
    rail: int | None = None,
    leaf: int | None = None,
    at: Seconds = 0.0,
    until: Seconds | None = None,
    for_: Seconds | None = None,
    fraction: Fraction = 0.0,
) -> Iterator[Incident]:
    """A rail's switch (rail 0 by default), or one leaf of a leaf-spine fabric."""
    component = rail_or_leaf(site.cluster, rail, leaf)
    yield Incident(component, at, end_of(at, until, for_), left(fraction))


@pattern
def dual_tor(
    site: Site,
    rail: int | None = None,
    leaf: int | None = None,
    at: Seconds = 0.0,
    until: Seconds | None = None,
    for_: Seconds | None = None,
) -> Iterator[Incident]:
    """One of the two ToR switches of a rail or leaf dies: the NICs below keep half of their rate.

    In a dual-ToR fabric each NIC has two ports of half its rate, one to each switch of the pair.
    """
    component = rail_or_leaf(site.cluster, rail, leaf)
    yield Incident(component, at, end_of(at, until, for_), 0.5, "one of two ToRs")
