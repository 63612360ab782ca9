"""Names of components and the NICs that fail with each of them."""

import re

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.errors import InputError
from r2cc_simai.failures.timeline import Component

_RANGE = re.compile(r"\[([\d,\-]+)\]")
_PART = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")
MOST_COMPONENTS = 100_000  # that one name may stand for


_PARTS = {f".{part}": part for part in (Component.PORT, Component.CABLE, Component.PATH)}


def component_of(name: str) -> tuple[str, Component]:
    """The NICs' name and the part of each that fails: `server0.nic3.cable` is the cable of `server0.nic3`.

    A name without a part is the NIC itself; a server, a rail or a leaf stands for its switch, hence for ports.
    """
    for ending, part in _PARTS.items():
        if name.endswith(ending) and "." in name.removesuffix(ending):
            return name.removesuffix(ending), part
    return name, Component.NIC if "." in name else Component.PORT


def kind_of(name: str) -> str:
    """What kind of component a name is: nic, port, cable, path, server, rail or leaf."""
    nic, part = component_of(name)
    return part.value if "." in nic else nic.rstrip("0123456789[],-")


def nics_of(cluster: Cluster, name: str) -> list[int]:
    """Numbers of the NICs that stop when the component `name` fails, each once, in order.

    `server0.nic3` or `server0.mlx5_2`: a NIC (or its port or cable); `server0`: all its NICs; `rail2`: the NICs of
    that rail on every server (its switch); `leaf3`: the NICs below a switch of a leaf-spine fabric. Numbers may be
    ranges: `server0.nic[0-3]`, `server[0,2].nic1`.

    Raises:
        InputError: the cluster has no such component.
    """
    found: dict[int, None] = {}
    for single in _expand_ranges(name):
        for nic in _nics_of_one(cluster, single):
            found[nic] = None
    return list(found)


def _expand_ranges(name: str) -> list[str]:
    match = _RANGE.search(name)
    if match is None:
        return [name]
    numbers: list[int] = []
    for part in match[1].split(","):
        ends = _PART.fullmatch(part)
        first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (0, -1)
        if last < first:
            raise InputError(f"{name!r}: {match[0]} is no range; write [0-3] or [0,2]")
        if len(numbers) + last - first >= MOST_COMPONENTS:
            raise InputError(f"{name!r}: {match[0]} names more components than any cluster has")
        numbers.extend(range(first, last + 1))
    head, tail = name[: match.start()], name[match.end() :]
    return [single for number in numbers for single in _expand_ranges(f"{head}{number}{tail}")]


def _nics_of_one(cluster: Cluster, name: str) -> list[int]:
    if name in cluster.nic_by_name:
        return [cluster.nic_by_name[name]]
    server, dot, nic = name.partition(".")
    if dot and re.fullmatch(r"server\d{1,18}", server) and int(server[6:]) < len(cluster.servers):
        names = ", ".join(cluster.nics[i].name for i in cluster.servers[int(server[6:])].nics)
        raise InputError(f"{name!r}: {cluster.name}'s {server} has no NIC {nic!r} ({names})")
    if not dot and re.fullmatch(r"server\d{1,18}", name) and int(name[6:]) < len(cluster.servers):
        return list(cluster.servers[int(name[6:])].nics)
    if not dot and re.fullmatch(r"rail\d{1,18}", name):
        nics = [nic.index for nic in cluster.nics if nic.rail == int(name[4:])]
        if nics:
            return nics
    leaves = cluster.leaves
    if not dot and re.fullmatch(r"leaf\d{1,18}", name) and int(name[4:]) < len(leaves):
        return list(leaves[int(name[4:])].nics)
    last = len(cluster.servers) - 1
    more = f", railN or leafN (0 to {len(leaves) - 1})" if leaves else " or railN"
    raise InputError(f"{name!r}: {cluster.name} has no such component; write serverN.NIC, serverN (0 to {last}){more}")
