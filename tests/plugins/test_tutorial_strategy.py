"""The section "Your own strategy" of docs/tutorial.md, installed as a package and run."""

import csv
import re
import tomllib
from pathlib import Path

from r2cc_simai.cli.main import run
from r2cc_simai.strategies.plugins import GROUP

DOCS = (Path(__file__).parents[2] / "docs/tutorial.md").read_text(encoding="utf-8")
SECTION = re.search(r"^## Your own strategy$(.*?)(?=^## )", DOCS, re.MULTILINE | re.DOTALL)[1]
FILES = {name: text for text, name in re.findall(r"^```\w+\n(# (\S+)\n.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)}


def test_the_sweep_prints_what_the_docs_say(install, tmp_path, monkeypatch):
    """The policy is Balance where 1 of 8 NICs is gone (12.5% < 20%), and R2CC-AllReduce where 4 are (50%)."""
    entries = tomllib.loads(FILES["pyproject.toml"])["project"]["entry-points"][GROUP]
    install("policy", "policy", FILES["policy.py"], entries)
    monkeypatch.chdir(tmp_path)
    Path("policy.yml").write_text(FILES["policy.yml"])
    assert run(["sweep", "policy.yml", "--out", "run", "--workers", "1"]) == 0
    with Path("run/results.csv").open(newline="") as file:
        table = [row for row in csv.reader(file) if row[8] in ("metric", "time")]
    shown = "\n".join(",".join(row[column] for column in (3, 5, 8, 12)) for row in table)
    assert f"{shown}\n```" in SECTION
