"""`component=1@t`: the repair of whatever is down on a component, as shorter incidents."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.failures.component import component_of, nics_of
from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.timeline import Component


@dataclass(frozen=True)
class Repair:
    """Every NIC of a component is in order again at a time in seconds."""

    component: str
    time_s: float


def repaired(parsed: Iterable[Incident | Repair], cluster: Cluster) -> list[Incident]:
    """The incidents, each ended on the NICs that a repair names where it had begun before the repair.

    Of what stands at one time, the last one written counts: a repair ends the incidents before it, not those after.
    """
    order = list(parsed)
    repairs = sorted(
        ((one.time_s, place, one) for place, one in enumerate(order) if isinstance(one, Repair)),
        key=lambda found: found[:2],
    )
    left = [(place, one) for place, one in enumerate(order) if isinstance(one, Incident)]
    for time_s, when, repair in repairs:
        mended = set(nics_of(cluster, component_of(repair.component)[0]))
        left = [
            (place, part)
            for place, one in left
            for part in (
                _ended(one, mended, time_s, cluster)
                if one.begin_s < time_s < one.end_s or (one.begin_s == time_s and place < when)
                else [one]
            )
        ]
    return [one for _, one in left]


def _ended(one: Incident, mended: set[int], time_s: float, cluster: Cluster) -> list[Incident]:
    """An incident that ends at a time on the mended NICs and goes on, NIC by NIC, on its others."""
    name, part = component_of(one.component)
    nics = nics_of(cluster, name)
    if not mended.intersection(nics):
        return [one]
    whole = mended.issuperset(nics)
    pieces = []
    for nic in nics:
        end_s = min(one.end_s, time_s) if nic in mended else one.end_s
        if end_s > one.begin_s:
            ending = "" if part is Component.NIC else f".{part.value}"
            component = one.component if whole else cluster.nics[nic].full_name + ending
            pieces.append(replace(one, component=component, end_s=end_s, cause=one.counts_as))
        if whole:
            break
    return pieces
