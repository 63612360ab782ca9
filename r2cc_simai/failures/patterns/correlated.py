"""NICs that fail together because something joins them: a batch of optics, a switch, a server."""

from collections.abc import Iterator

from r2cc_simai.failures.component import component_of, nics_of
from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.pattern import Fraction, Seconds, Site, pattern
from r2cc_simai.failures.places import at_most, end_of, left


@pattern(draws=True)
def optics(
    site: Site,
    size: int = 8,
    p: Fraction = 0.5,
    window: Seconds = 86_400.0,
    at: Seconds = 0.0,
    for_: Seconds | None = None,
    fraction: Fraction = 0.0,
) -> Iterator[Incident]:
    """A bad batch of optics: `size` NICs over the whole cluster, each of which fails with probability `p`.

    Which ones are drawn evenly, without repetition; when, evenly between `at` and `at` + `window`.
    """
    nics = site.cluster.nics
    at_most("size", size, len(nics), f"{site.cluster.name} has {len(nics)} NICs")
    batch = site.random.choice(len(nics), size=size, replace=False)
    fails = site.random.random(size) < p
    begins = at + window * site.random.random(size)
    for nic, begin in sorted(zip(batch[fails].tolist(), begins[fails].tolist(), strict=True)):
        yield Incident(f"{nics[nic].full_name}.port", begin, end_of(begin, None, for_), left(fraction), "optics batch")


@pattern(draws=True)
def tor(
    site: Site,
    component: str = "rail0",
    window: Seconds = 10.0,
    p: Fraction = 1.0,
    at: Seconds = 0.0,
    for_: Seconds | None = None,
    fraction: Fraction = 0.0,
) -> Iterator[Incident]:
    """A switch or server dies bit by bit: each NIC below `component` fails within `window`, with probability `p`."""
    nics = nics_of(site.cluster, component_of(component)[0])
    fails = site.random.random(len(nics)) < p
    begins = at + window * site.random.random(len(nics))
    for nic, fail, begin in zip(nics, fails.tolist(), begins.tolist(), strict=True):
        if fail:
            name = f"{site.cluster.nics[nic].full_name}.port"
            yield Incident(name, begin, end_of(begin, None, for_), left(fraction), "tor")
