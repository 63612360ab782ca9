"""The components of a kind that a cluster has: how many, and their names."""

from collections.abc import Callable
from dataclasses import dataclass

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.errors import InputError
from r2cc_simai.failures.reliability import Kind


@dataclass(frozen=True)
class Population:
    """`count` components, numbered from 0; `name` gives the name of one as `--fail` takes it."""

    count: int
    name: Callable[[int], str]


def population_of(cluster: Cluster, kind: Kind) -> Population:
    """The components of `kind`. A `tor` is a leaf, or a rail's switch where the fabric has a switch per rail.

    Raises:
        InputError: the fabric has no such switches.
    """
    if kind == "nic":
        return Population(len(cluster.nics), lambda i: cluster.nics[i].full_name)
    if kind in ("port", "cable"):
        return Population(len(cluster.nics), lambda i: f"{cluster.nics[i].full_name}.{kind}")
    if kind == "server":
        return Population(len(cluster.servers), lambda i: f"server{i}")
    if kind == "leaf" or (kind == "tor" and cluster.leaves):
        if not cluster.leaves:
            raise InputError(f"{cluster.name} has no leaf switches; a fabric of kind leaf-spine has")
        return Population(len(cluster.leaves), lambda i: f"leaf{i}")
    if kind == "tor" and cluster.spec.fabric.kind != "switch-per-rail":
        raise InputError(f"{cluster.name} has no ToR switches; a fabric of kind leaf-spine or switch-per-rail has")
    rails = sorted({nic.rail for nic in cluster.nics})
    return Population(len(rails), lambda i: f"rail{rails[i]}")
