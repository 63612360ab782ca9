"""A place for patterns to happen."""

import math

import numpy as np
import pytest

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.errors import InputError
from r2cc_simai.failures.incident import Incident
from r2cc_simai.failures.pattern import Site
from r2cc_simai.failures.registry import parse_pattern


@pytest.fixture
def site() -> Site:
    """Return four H100 servers, for a job without an end."""
    return Site(load_cluster("h100x4"), np.random.default_rng(0), math.inf)


@pytest.fixture
def incidents_or_none():
    """Return a function: the incidents of a pattern in a month on a cluster, None where that has too few components."""

    def found(text: str, cluster: str) -> tuple[Incident, ...] | None:
        try:
            return parse_pattern(text).incidents(load_cluster(cluster), 0, 720 * 3600)
        except InputError as error:
            if "is wanted" in str(error):
                return None
            raise

    return found
