"""The section of the emulated cluster: what it claims, what it judges, and that nothing measured alone gets lost."""

import pytest

from r2cc_simai.results import Row, make_row
from r2cc_simai.results.report import lab_comparison
from r2cc_simai.results.report.build import report_sections
from r2cc_simai.results.report.document import Table
from r2cc_simai.results.tolerance import check

SOURCE = "lab: median of 5, 2.88 to 2.9 s; raw/x.json; host h"


def lab_row(
    metric: str, simulated: float, measured: float, *, unit: str = "s", cut: str = "", ideal: float = 1.0
) -> Row:
    return make_row(
        scenario=f"lab-small{cut}",
        cluster="small",
        workload="all_reduce",
        pattern="server1.nic1@0",
        strategy="balance",
        backend="chunk",
        bytes=43_000_000,
        metric=metric,
        unit=unit,
        simulated=simulated,
        ideal=ideal,
        measured=measured,
        source=SOURCE,
    )


@pytest.mark.parametrize(
    ("metric", "unit", "cut", "allowed"),
    [
        ("time", "s", "", 2.0),
        ("ratio", "1", "", 1.0),
        ("time_cut", "s", "", 5.0),
        ("rx_bytes[server0.nic0]", "B", "", 0.5),
        ("tx_bytes[server0.nic0]", "B", "/cut", 5.0),
    ],
)
def test_what_is_aimed_at(metric: str, unit: str, cut: str, allowed: float) -> None:
    for error_pct, inside in ((0.9 * allowed, True), (1.1 * allowed, False)):
        judged = check(lab_row(metric, 1 + error_pct / 100, 1.0, unit=unit, cut=cut))
        assert judged is not None
        assert (judged.tolerance, judged.ok) == (allowed, inside)


def test_bytes_are_judged_by_what_the_nic_carries_when_healthy_where_that_is_more() -> None:
    """Acknowledgements alone: 0 simulated against 30 kB of 10 MB is 0.3%, not 100%."""
    judged = check(lab_row("rx_bytes[server0.nic0]", 0.0, 30e3, unit="B", ideal=10e6))
    assert judged is not None
    assert judged.deviation == pytest.approx(-0.3)
    assert judged.ok


def test_section_holds_times_spread_ratios_and_bytes() -> None:
    rows = [
        lab_row("time", 2.888, 2.89),
        lab_row("ratio", 1.5, 1.497, unit="1"),
        lab_row("time_cut", 3.35, 3.4),
        lab_row("rx_bytes[server0.nic0]", 9e6, 9.01e6, unit="B"),
    ]
    section = lab_comparison.build(rows)
    times, counted = (block for block in section.blocks if isinstance(block, Table))
    text = [[cell.text for cell in line] for line in times.rows]
    assert text[0][:5] == ["server1.nic1@0", "Balance", "steady", "2.890 s", "2.880 s to 2.900 s"]
    assert text[0][5:] == ["2.888 s", "−0.07%", "1.497×", "1.500×"]
    assert text[1][2] == "hit by the cut"
    assert counted.rows[0][-1].text == "−0.11%"
    assert "largest errors: times −0.07% (aimed at ±2%)" in section.findings[0]


def test_report_of_a_lab_has_its_section_and_one_finding() -> None:
    sections = report_sections([lab_row("time", 2.888, 2.89), lab_row("ratio", 1.5, 1.497, unit="1")])
    assert [section.slug for section in sections] == ["overview", "overheads", "accuracy", "lab", "reading"]
    assert len(sections[0].findings) == 1
