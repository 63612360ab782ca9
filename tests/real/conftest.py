"""What tests of real clusters share."""

from pathlib import Path

import pytest


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    """Return a hosts file: three servers with two processes each."""
    path = tmp_path / "hosts"
    path.write_text("# the testbed\nnode-1 slots=2\nnode-2:2\nnode-3 slots=2 max_slots=4\n")
    return path
