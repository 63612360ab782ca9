"""How far the simple split Y = X is from the optimal Y*: Table 1 of the R2CC paper, by simulation."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from r2cc_simai.errors import InputError, MissingComponentError
from r2cc_simai.paths import published_dir
from r2cc_simai.results.report import closed_form, labels, units
from r2cc_simai.results.report.document import Block, Cell, Section, SectionKind, Table, Text, columns
from r2cc_simai.results.table import Row

SCENARIO = "table1"
PUBLISHED_CSV = "table1.csv"


@dataclass(frozen=True)
class Gap:
    """The relative gap of one (n, X) in percent: simulated, and as printed in the paper (or "")."""

    n: int
    x: float
    k: str
    backend: str
    simulated: float
    published: str

    def as_printed(self) -> str:
        """Return the simulated gap with as many decimals as the published one has (5 without one)."""
        decimals = len(self.published.partition(".")[2]) if self.published else 5
        return f"{self.simulated:.{decimals}f}"


def claims(row: Row) -> bool:
    """Claim the R2CC-AllReduce times of scenario `table1` whose cluster names n and whose pattern names X."""
    return (
        row.scenario == SCENARIO
        and row.metric == "time"
        and bool(row.simulated)
        and labels.family(row.strategy) == "r2cc-allreduce"
        and labels.servers(row.cluster) is not None
        and labels.lost_fraction(row.pattern) is not None
    )


def build(rows: Sequence[Row]) -> Section:
    """Return the section: a table of gaps, simulated, published and in closed form."""
    gaps = find_gaps(rows, published_gaps())
    blocks: list[Block] = [
        Text(
            "R2CC-AllReduce sends the fraction Y of the data by the partial ring of the healthy servers. "
            "Y = X needs no tuning; Y* = X(n−1)² / (X(n−1)² + (1−X)n(n−2)) is optimal. Gap = (T(X) − "
            "T(Y*)) / T(Y*), from two simulated times each. Closed form: T(Y) = max(T1, T2) + T3, for K "
            "→ ∞."
        ),
        _table(gaps),
    ]
    if not any(gap.published for gap in gaps):
        blocks.append(Text(f"No published digits to compare with: `{PUBLISHED_CSV}` is missing or has other points."))
    return Section(SCENARIO, "Y = X against the optimal split (Table 1)", tuple(blocks), tuple(_findings(gaps)))


def published_gaps() -> dict[tuple[int, float], str]:
    """Return the gaps in percent as printed in the paper, by (n, X); empty where the file is absent.

    Raises InputError when the file lacks one of the columns n, x, gap_pct.
    """
    try:
        path = published_dir() / PUBLISHED_CSV
    except MissingComponentError:
        return {}
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        records = list(csv.DictReader(line for line in file if not line.startswith("#")))
    try:
        return {(int(r["n"]), float(Fraction(r["x"].strip()))): r["gap_pct"].strip().rstrip("%") for r in records}
    except (KeyError, ValueError, AttributeError) as error:
        raise InputError(f"{path}: {error}; expected columns n, x, gap_pct with numbers") from None


def find_gaps(rows: Sequence[Row], published: dict[tuple[int, float], str]) -> list[Gap]:
    """Return the gap of each (n, X, K, backend) for which both Y = X and Y = Y* were simulated."""
    times: dict[tuple[int, float, str, str], dict[str, float]] = {}
    for row in rows:
        n, x = labels.servers(row.cluster), labels.lost_fraction(row.pattern)
        chosen = labels.options(row.strategy)
        if n is not None and x is not None and row.simulated:
            key = (n, x, chosen.get("k", "4"), row.backend)
            times.setdefault(key, {})[chosen.get("y", "x")] = row.simulated
    return [
        Gap(*key, 100.0 * (by_split["x"] / by_split["opt"] - 1.0), published.get(key[:2], ""))
        for key, by_split in sorted(times.items())
        if {"x", "opt"} <= set(by_split)
    ]


def _table(gaps: Sequence[Gap]) -> Table:
    titles = columns("n", "X", "K", "<backend", "simulated gap", "published", "closed form, K → ∞")
    return Table("Relative gap of Y = X to the optimum", titles, tuple(_cells(gap) for gap in gaps))


def _cells(gap: Gap) -> tuple[Cell, ...]:
    exact = closed_form.split_gap_pct(gap.n, gap.x)
    same = gap.as_printed() == gap.published
    return (
        Cell(f"{gap.n}"),
        Cell(units.fraction(gap.x)),
        Cell(gap.k),
        Cell(gap.backend),
        Cell(f"{gap.as_printed()}%", tone=("ok" if same else "bad") if gap.published else ""),
        Cell(f"{gap.published}%" if gap.published else units.DASH),
        Cell(f"{exact:.5f}%", tone="muted"),
    )


def _findings(gaps: Sequence[Gap]) -> list[str]:
    compared = [gap for gap in gaps if gap.published]
    same = sum(gap.as_printed() == gap.published for gap in compared)
    if not compared:
        return []
    return [f"Table 1 of the R2CC paper: {same} of {len(compared)} simulated gaps agree with every published digit."]


KIND = SectionKind(claims, build)
