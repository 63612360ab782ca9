"""Links between the documents: every file is there, and every heading that is linked to exists in it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "simulator" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
GENERATED = ROOT / "docs" / "reference"


def anchors(path: Path) -> set[str]:
    """Anchors of a document's headings, as code hosts and the site make them."""
    found: set[str] = set()
    for heading in HEADING.findall(FENCE.sub("", path.read_text(encoding="utf-8"))):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        found.add(next(a for a in (anchor, *(f"{anchor}-{k}" for k in range(1, 99))) if a not in found))
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_relative_link_leads_somewhere(document: Path) -> None:
    wrong = []
    for target in LINK.findall(FENCE.sub("", document.read_text(encoding="utf-8"))):
        name, _, anchor = target.partition("#")
        path = (document.parent / name).resolve() if name else document
        if "://" in target or path.is_relative_to(GENERATED):
            continue
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path)):
            wrong.append(target)
    assert wrong == []
