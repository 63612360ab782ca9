"""What built-in patterns share: the component that an option names, and when an incident ends."""

import math

from r2cc_simai.cluster.model import Cluster, Nic, Server
from r2cc_simai.errors import InputError


def server_of(cluster: Cluster, server: int) -> Server:
    """The server of a number.

    Raises:
        InputError: the cluster has no such server.
    """
    if not 0 <= server < len(cluster.servers):
        raise InputError(f"server={server}: {cluster.name} has servers 0 to {len(cluster.servers) - 1}")
    return cluster.servers[server]


def nic_of(cluster: Cluster, server: int, nic: str) -> Nic:
    """The NIC of a server by its place (`3`) or its name (`mlx5_2`).

    Raises:
        InputError: the server has no such NIC.
    """
    own = [cluster.nics[number] for number in server_of(cluster, server).nics]
    for place, one in enumerate(own):
        if nic in (one.name, str(place)):
            return one
    raise InputError(f"nic={nic}: {cluster.name}'s server{server} has NICs 0 to {len(own) - 1} ({_names(own)})")


def component_or_first(cluster: Cluster, component: str) -> str:
    """The component that an option names; the first NIC of server 0 where it names none."""
    return component or cluster.nics[0].full_name


def rail_or_leaf(cluster: Cluster, rail: int | None, leaf: int | None) -> str:
    """The switch that two options name: `leaf2`, `rail1`; rail 0 where neither is given.

    Raises:
        InputError: both are given.
    """
    if rail is not None and leaf is not None:
        raise InputError(f"rail={rail} and leaf={leaf}: give one of them")
    if leaf is not None:
        if not 0 <= leaf < len(cluster.leaves):
            has = f"leaves 0 to {len(cluster.leaves) - 1}" if cluster.leaves else "no leaf switches; write rail="
            raise InputError(f"leaf={leaf}: {cluster.name} has {has}")
        return f"leaf{leaf}"
    rails = {nic.rail for nic in cluster.nics}
    if (rail or 0) not in rails:
        raise InputError(f"rail={rail}: {cluster.name} has rails {min(rails)} to {max(rails)}")
    return f"rail{rail or 0}"


def end_of(at: float, until: float | None, for_: float | None) -> float:
    """When an incident that begins at `at` ends, in seconds; infinite where no option says so.

    Raises:
        InputError: both options are given, or the end is not after the begin.
    """
    if until is not None and for_ is not None:
        raise InputError("until and for: give one of them")
    if until is not None:
        if until <= at:
            raise InputError(f"until={until:g} s: not after at={at:g} s")
        return until
    if for_ is not None and for_ <= 0:
        raise InputError("for=0: a time above 0 is wanted")
    return math.inf if for_ is None else at + for_


def left(fraction: float) -> float:
    """The share of the rate that is left in a failure.

    Raises:
        InputError: all of it.
    """
    if fraction >= 1:
        raise InputError(f"fraction={fraction:g}: that is no failure; 0 (down) to below 1 is wanted")
    return fraction


def at_most(key: str, number: int, most: int, of: str) -> int:
    """A count from 1 to `most`.

    Raises:
        InputError: it is not.
    """
    if not 1 <= number <= most:
        raise InputError(f"{key}={number}: 1 to {most} is wanted; {of}")
    return number


def _names(nics: list[Nic]) -> str:
    return ", ".join(nic.name for nic in nics)
