"""Which part is to blame: three probes, and what the drivers say of their own links.

The R2CC paper (arXiv 2512.25059) probes three pairs: local NIC - remote NIC, local NIC - an auxiliary NIC, auxiliary
NIC - remote NIC. If only the first fails, the path between the two is broken; if a second one fails, the NIC that
both have in common is cut off. A NIC that is cut off is dead, or its port or cable is: its own driver tells (device
gone, or link down), and the ends exchange their verdicts over the bootstrap network.
"""

from dataclasses import dataclass

from r2cc_simai.detection.model import Part
from r2cc_simai.failures.timeline import Component

_AT_LOCAL = (Component.NIC, Component.PORT, Component.CABLE)


@dataclass(frozen=True)
class Probes:
    """Which of the three probes is answered. A probe that was not sent, for want of a third NIC, is None."""

    local_remote: bool
    local_auxiliary: bool | None
    auxiliary_remote: bool | None


def answers(component: Component, auxiliary: bool = True) -> Probes:
    """What the probes meet while a component is broken."""
    if not auxiliary:
        return Probes(False, None, None)
    return Probes(
        local_remote=False,
        local_auxiliary=component not in _AT_LOCAL,
        auxiliary_remote=component is not Component.REMOTE_NIC,
    )


def verdict(probes: Probes, local_link_down: bool = False) -> Part | None:
    """The part that the answers speak against; None where they name none (an answer came, or the third NIC is mute).

    `local_link_down`: the local driver has the device but no link, so a local NIC that is cut off is not dead itself.
    """
    if probes.local_remote:
        return None
    pair = (probes.local_auxiliary, probes.auxiliary_remote)
    if pair == (True, True):
        return Part.CABLE
    if pair == (True, False):
        return Part.REMOTE_NIC
    if pair == (False, True):
        return Part.CABLE if local_link_down else Part.LOCAL_NIC
    return None


def blamed(component: Component, auxiliary: bool = True) -> Part | None:
    """The verdict on a broken component after both ends have exchanged theirs."""
    return verdict(answers(component, auxiliary), local_link_down=component in (Component.PORT, Component.CABLE))
