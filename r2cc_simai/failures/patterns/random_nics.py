"""NICs drawn over the whole cluster."""

from collections.abc import Iterator

from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.pattern import Fraction, Seconds, Site, pattern
from r2cc_simai.failures.places import at_most, end_of, left


@pattern(draws=True)
def random_nics(
    site: Site,
    count: int = 2,
    at: Seconds = 0.0,
    until: Seconds | None = None,
    for_: Seconds | None = None,
    fraction: Fraction = 0.0,
) -> Iterator[Incident]:
    """`count` distinct NICs, drawn evenly over the cluster, fail at once."""
    nics = site.cluster.nics
    at_most("count", count, len(nics), f"{site.cluster.name} has {len(nics)} NICs")
    for nic in sorted(site.random.choice(len(nics), size=count, replace=False).tolist()):
        yield Incident(nics[nic].full_name, at, end_of(at, until, for_), left(fraction))
