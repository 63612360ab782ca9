"""The documentation site: one build without a warning, and in it everything that has a name."""

import subprocess
import sys
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
import typer
from docs_commands import walk
from docs_keys import all_models
from docs_site import COPIES, PAGES, inside

from r2cc_simai.cli.main import app
from r2cc_simai.collectives.operations import OPERATIONS
from r2cc_simai.failures.registry import pattern_names
from r2cc_simai.results import COLUMNS
from r2cc_simai.strategies.registry import STRATEGIES

ROOT = Path(__file__).resolve().parents[2]
Read = Callable[[str], str]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the site, built as `make docs` builds it."""
    pytest.importorskip("sphinx", reason="the site needs pip install 'r2cc-simai[docs]'")
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", str(out / "cache")]
    built = subprocess.run(
        [*command, str(ROOT / "docs"), str(out / "html")], capture_output=True, text=True, check=False
    )
    assert (built.returncode, built.stderr) == (0, "")
    return out / "html"


@pytest.fixture
def read(site: Path) -> Read:
    """Return a function that reads a page's HTML."""
    return lambda name: unescape((site / f"{name}.html").read_text(encoding="utf-8"))


def test_every_command_and_option_is_in_the_reference(read: Read) -> None:
    html = read("reference/commands")
    commands = dict(walk(typer.main.get_command(app), "r2cc-simai"))
    assert len(commands) > 15
    for name, command in commands.items():
        assert f"{name}" in html
        for parameter in command.params:
            assert parameter.param_type_name == "argument" or all(f">{o}<" in html for o in parameter.opts)


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("strategies", list(STRATEGIES)),
        ("patterns", pattern_names()),
        ("collectives", list(OPERATIONS)),
        ("columns", list(COLUMNS)),
        ("exit-codes", ["InputError", "PartitionedError", "MissingComponentError", "MismatchError"]),
        ("backends", ["flow", "chunk", "r7525", "h100"]),
    ],
)
def test_everything_with_a_name_is_in_the_reference(read: Read, page: str, names: list[str]) -> None:
    html = read(f"reference/{page}")
    assert names
    assert [name for name in names if name not in html] == []


def test_every_key_of_every_file_is_in_the_reference(read: Read) -> None:
    html = read("reference/keys")
    models = list(all_models())
    assert len(models) > 30
    keys = {key for model in models for key in model.model_fields}
    assert sorted(key for key in keys if f">{key}<" not in html) == []


def test_the_python_reference_tells_what_a_function_raises(read: Read) -> None:
    html = read("reference/api/cluster")
    assert "load_cluster" in html
    assert "Raises" in html
    assert "`" not in html.partition("<article")[2].partition("</article>")[0]


def test_the_site_needs_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        html = page.read_text(encoding="utf-8")
        assert 'src="http' not in html
        assert 'rel="stylesheet" type="text/css" href="http' not in html


def test_links_to_files_outside_the_documents_lead_to_their_copies_or_are_code() -> None:
    assert inside("tutorial", "[R](../README.md#quick-start)") == "[R](../docs/reference/readme.md#quick-start)"
    assert inside("tutorial", "[the presets](../workloads/clusters)") == "the presets (`workloads/clusters`)"
    assert inside("tutorial", "[m](models.md#flow) [web](https://x.org)") == (
        "[m](../docs/models.md#flow) [web](https://x.org)"
    )
    assert inside("reference/readme", "[t](docs/tutorial.md)") == "[t](../../docs/tutorial.md)"
    assert set(COPIES.values()).isdisjoint(PAGES)
