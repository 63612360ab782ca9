"""NICs and cables that fail: one, several on a server, one on several servers."""

from collections.abc import Iterator

from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.pattern import Fraction, Seconds, Site, pattern
from r2cc_simai.failures.places import at_most, end_of, left, nic_of, server_of


@pattern
def nic(
    site: Site,
    server: int = 0,
    nic: str = "0",
    at: Seconds = 0.0,
    until: Seconds | None = None,
    for_: Seconds | None = None,
    fraction: Fraction = 0.0,
) -> Iterator[Incident]:
    """One NIC, by its place or name, is down or keeps a fraction of its rate."""
    yield Incident(nic_of(site.cluster, server, nic).full_name, at, end_of(at, until, for_), left(fraction))


@pattern
def nics(
    site: Site,
    count: int = 2,
    server: int = 0,
    first: int = 0,
    at: Seconds = 0.0,
    until: Seconds | None = None,
    for_: Seconds | None = None,
    fraction: Fraction = 0.0,
) -> Iterator[Incident]:
    """`count` NICs of one server at once, from its NIC `first` on."""
    own = server_of(site.cluster, server).nics
    start = nic_of(site.cluster, server, str(first)).index - own[0]
    at_most("count", count, len(own) - start, f"server{server}'s NICs: {len(own)}, first={first}")
    for number in own[start : start + count]:
        yield Incident(site.cluster.nics[number].full_name, at, end_of(at, until, for_), left(fraction))


@pattern
def servers(
    site: Site,
    count: int = 2,
    nic: str = "0",
    first: int = 0,
    at: Seconds = 0.0,
    until: Seconds | None = None,
    for_: Seconds | None = None,
    fraction: Fraction = 0.0,
) -> Iterator[Incident]:
    """The same NIC of `count` servers at once, from server `first` on."""
    known = len(site.cluster.servers)
    start = server_of(site.cluster, first).index
    at_most("count", count, known - start, f"{site.cluster.name}'s servers: {known}, first={first}")
    for server in range(start, start + count):
        yield Incident(nic_of(site.cluster, server, nic).full_name, at, end_of(at, until, for_), left(fraction))


@pattern
def cable(
    site: Site,
    server: int = 0,
    nic: str = "0",
    fraction: Fraction = 0.5,
    at: Seconds = 0.0,
    until: Seconds | None = None,
    for_: Seconds | None = None,
) -> Iterator[Incident]:
    """The cable of one NIC keeps a fraction of its rate; fraction=0: it is cut."""
    one = nic_of(site.cluster, server, nic)
    yield Incident(f"{one.full_name}.cable", at, end_of(at, until, for_), left(fraction))
