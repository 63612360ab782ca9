"""Third-party packages as pip would leave them in a folder on the path: modules and a dist-info with entry points."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from r2cc_simai.strategies.registry import parse_strategy

Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Return a function that installs a package of one module and its entry points, and gives the folder."""
    modules: list[str] = []

    def put(
        distribution: str, module: str, source: str, entries: dict[str, str], group: str = "r2cc_simai.strategies"
    ) -> Path:
        folder = tmp_path / distribution
        info = folder / f"{distribution.replace('-', '_')}-0.1.dist-info"
        info.mkdir(parents=True)
        (folder / f"{module}.py").write_text(source)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 0.1\n")
        lines = [f"{name} = {value}" for name, value in entries.items()]
        (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))
        monkeypatch.syspath_prepend(folder)
        modules.append(module)
        return folder

    parse_strategy.cache_clear()
    yield put
    parse_strategy.cache_clear()
    for module in modules:
        sys.modules.pop(module, None)
