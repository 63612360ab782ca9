"""Leaf switches of a leaf-spine fabric: which NICs hang on each, and what joins it to the spine.

Servers in a row form pods of `servers_per_leaf`. A rail-optimised pod has a leaf for each rail, any other one leaf for
all NICs of its servers. A leaf's uplinks carry the rates of its NICs over the oversubscription, per direction, and are
one pipe here: how flows are hashed onto its links is no part of the model.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from r2cc_simai.cluster.spec import FabricSpec

if TYPE_CHECKING:
    from r2cc_simai.cluster.model import Nic


@dataclass(frozen=True)
class Leaf:
    """A leaf switch: its NICs by number, and bytes/s on the wire to the spine and from it."""

    index: int
    pod: int
    nics: tuple[int, ...]
    uplink_rate: float


def leaves_of(fabric: FabricSpec, nics: Sequence["Nic"]) -> tuple[Leaf, ...]:
    """The leaf switches in order of pod and rail; none on a fabric of another kind."""
    if fabric.kind != "leaf-spine" or fabric.servers_per_leaf is None:
        return ()
    by_rail = fabric.rail_optimized is not False
    below: dict[tuple[int, int], list[int]] = defaultdict(list)
    for nic in nics:
        below[nic.server // fabric.servers_per_leaf, nic.rail if by_rail else 0].append(nic.index)
    share = fabric.oversubscription or 1.0
    return tuple(
        Leaf(index, pod, tuple(own), sum(nics[n].rate for n in own) / share)
        for index, ((pod, _), own) in enumerate(sorted(below.items()))
    )
