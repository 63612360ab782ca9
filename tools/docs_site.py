"""What the build of the documentation site generates, and how links to files outside docs/ are treated."""

import re
from pathlib import Path
from typing import get_origin

from docs_api import api_pages
from docs_commands import commands_page
from docs_docstrings import as_rst
from docs_keys import keys_page
from docs_registries import (
    backends_page,
    collectives_page,
    columns_page,
    exit_codes_page,
    patterns_page,
    strategies_page,
)

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "commands": commands_page,
    "keys": keys_page,
    "strategies": strategies_page,
    "collectives": collectives_page,
    "patterns": patterns_page,
    "backends": backends_page,
    "columns": columns_page,
    "exit-codes": exit_codes_page,
}
COPIES = {"README.md": "readme", "CHANGELOG.md": "changelog", "simulator/README.md": "simulator"}
"""Pages outside docs/ that are a part of the site."""
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
_IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")


def write_reference(folder: Path) -> None:
    """Writes every generated page; one that is as it was keeps its time, so that it is not built again."""
    pages = {f"{stem}.md": make() for stem, make in PAGES.items()}
    api = api_pages()
    pages |= {f"api/{stem}.rst": text for stem, text in api.items()}
    pages |= {f"{stem}.md": (ROOT / path).read_text(encoding="utf-8") for path, stem in COPIES.items()}
    pages["api/index.rst"] = _contents("Python API", sorted(api, key=list(api).index))
    pages["index.rst"] = _contents("Reference", [*PAGES, "api/index", "simulator", "changelog"])
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for old in folder.rglob("*.*"):
        if old.relative_to(folder).as_posix() not in pages:
            old.unlink()


def _contents(title: str, names: list[str]) -> str:
    lines = [title, "=" * len(title), "", ".. toctree::", "   :maxdepth: 1", ""]
    return "\n".join([*lines, *(f"   {name}" for name in names), ""])


def inside(docname: str, text: str) -> str:
    """A page's Markdown with its links to files outside docs/: to their copies on the site, or as plain code."""
    copied = {stem: path for path, stem in COPIES.items()}
    own = docname.removeprefix("reference/")
    here = (ROOT / "docs" / docname).parent
    home = (ROOT / copied[own]).parent if docname.startswith("reference/") and own in copied else here
    text = _IMAGE.sub(lambda m: f"![{m[1]}]({_moved(m[2], home, here)})", text)
    return _LINK.sub(lambda m: _link(m, home, here), text)


def _link(match: re.Match[str], home: Path, here: Path) -> str:
    words, target = match[1], match[2]
    path, _, anchor = target.partition("#")
    if not path or "://" in target:
        return match[0]
    whole = (home / path).resolve()
    name = whole.relative_to(ROOT).as_posix() if whole.is_relative_to(ROOT) else path
    if name in COPIES:
        page = ROOT / "docs" / "reference" / f"{COPIES[name]}.md"
    elif name.startswith("docs/"):
        page = whole
    else:
        return f"`{name}`" if words in (path, name) else f"{words} (`{name}`)"
    return f"[{words}]({_relative(page, here)}{'#' + anchor if anchor else ''})"


def _moved(target: str, home: Path, here: Path) -> str:
    return target if "://" in target else _relative((home / target).resolve(), here)


def _relative(path: Path, here: Path) -> str:
    return Path(*[".."] * len(here.relative_to(ROOT).parts), path.relative_to(ROOT)).as_posix()


def process_docstring(_app: object, _what: str, _name: str, _of: object, _options: object, lines: list[str]) -> None:
    """Sphinx's hook for docstrings."""
    lines[:] = as_rst(lines)


def skip_member(_app: object, _what: str, _name: str, member: object, skip: bool, _options: object) -> bool | None:
    """Sphinx's hook for members: aliases of types are no part of the reference."""
    return True if get_origin(member) is not None else skip or None


def process_source(_app: object, docname: str, source: list[str]) -> None:
    """Sphinx's hook for pages."""
    source[0] = inside(docname, source[0])
