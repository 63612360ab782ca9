"""Sections for any run: overheads at a glance, gap to the bound, bytes per NIC, failed cases, clusters, timelines."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from r2cc_simai.results import Row, error_row
from r2cc_simai.results.report import (
    bound_gap,
    build_report,
    cluster_failures,
    facets,
    failed_cases,
    links,
    nic_bytes,
    overheads,
)
from r2cc_simai.results.report.build import MOST_ROWS, report_sections
from r2cc_simai.results.report.document import Cell, Plot, Section, Table, Text
from r2cc_simai.results.report.named_clusters import named_clusters

MakeRow = Callable[..., Row]
GIB = 1 << 30


def table(section: Section, caption: str = "") -> list[list[str]]:
    """Return a table of a section as lists of texts."""
    (found,) = (b for b in section.blocks if isinstance(b, Table) and b.caption.startswith(caption))
    return [[cell.text for cell in line] for line in found.rows]


def cells(section: Section) -> dict[tuple[str, str], Cell]:
    """Return the cells of a section's only table by the text of the first column and the title of their own."""
    (found,) = (b for b in section.blocks if isinstance(b, Table))
    titles = [column.title for column in found.columns]
    return {(line[0].text, title): cell for line in found.rows for title, cell in zip(titles, line, strict=True)}


def section(rows: Sequence[Row], slug: str) -> Section:
    return {s.slug: s for s in report_sections(rows)}[slug]


def glance(rows: Sequence[Row]) -> Section:
    built = overheads.build(rows)
    assert built is not None
    return built


def test_overheads_are_medians_over_the_cases_at_their_largest_size(row: MakeRow) -> None:
    """Three patterns at 1 GiB: 10, 20 and 60%; what the smaller size costs does not count."""
    rows = [row(pattern=f"server0.nic{i}@0", simulated=1 + x) for i, x in enumerate((0.1, 0.2, 0.6))]
    rows += [row(pattern="server0.nic0@0", bytes=1, simulated=9.0)]
    found = cells(glance(rows))
    assert found["demo", "Balance"] == Cell("20.0%", "10.0% to 60.0%")


def test_overheads_of_drawn_failures_are_means(row: MakeRow) -> None:
    """Most draws cost nothing: (0 + 0 + 30) / 3 = 10% says more than the median."""
    rows = [row(seed=seed, simulated=1 + x) for seed, x in enumerate((0.0, 0.0, 0.3))]
    found = cells(glance(rows))
    assert found["demo", "Balance"] == Cell("10.0%", "0% to 30.0%")
    assert found["demo", "scenario"].note == "steady time, mean of draws"


def test_overheads_say_the_gap_to_the_bound_and_the_standstill(row: MakeRow) -> None:
    """The options of a strategy share a column; a job that stops says for how long."""
    rows = [
        row(strategy="r2cc-allreduce:k=4", simulated=1.2, bound=1.0),
        row(strategy="nccl", metric="tokens_per_s", unit="1/s", simulated=1.0, scenario="job"),
        row(strategy="nccl", metric="stopped", simulated=4440.0, ideal=None, scenario="job"),
    ]
    found = cells(glance(rows))
    assert found["demo", "R2CC-AllReduce"] == Cell("20.0%", "+20.0% over bound")
    assert found["demo", "NCCL"].text == "–"
    assert found["job", "NCCL"] == Cell("0%", "stops 74.0 min")


def test_a_gap_is_the_time_over_the_bound_of_steady_times_from_16_mib_on(row: MakeRow) -> None:
    """gap = T / T_bound - 1, its least, median and largest by strategy; latency rules smaller buffers."""
    rows = [row(simulated=1 + g, bound=1.0, pattern=f"p{g}") for g in (0.01, 0.02, 0.5)]
    rows += [row(bytes=8, simulated=50.0, bound=1.0), row(metric="time_cut", simulated=90.0, bound=1.0)]
    built = bound_gap.build(rows)
    assert built is not None
    assert table(built)[0][:4] == ["Balance", "3", "1.0%", "2.0%"]
    assert table(built)[0][5:] == ["50.0%", "demo, h100x4, 1 GiB"]
    assert built.findings == ("None of 5 simulated times lies below its lower bound.",)


def test_a_time_below_its_bound_is_named(row: MakeRow) -> None:
    """No algorithm beats the bound: a smaller time is a mistake, and the report says so."""
    built = bound_gap.build([row(simulated=0.99, bound=1.0), row(simulated=1.0, bound=1.0, pattern="other")])
    assert built is not None
    assert built.findings == ("1 of 2 simulated times lie below their lower bound: that cannot be.",)
    assert table(built, "Times below")[0][-1] == "−1.0%"


def test_the_ideal_is_not_held_against_the_bound_of_a_failed_cluster(row: MakeRow) -> None:
    """NCCL on the healthy cluster may well be faster than what is possible on the failed one."""
    assert bound_gap.build([row(strategy="ideal", simulated=0.5, bound=1.0), row(metric="busbw", bound=1.0)]) is None


def counters(row: MakeRow, counts: dict[str, float], **more: object) -> list[Row]:
    return [row(metric=metric, unit="B", simulated=count, ideal=None, **more) for metric, count in counts.items()]


def test_bytes_per_nic_name_the_busiest(row: MakeRow) -> None:
    """most / mean is what the others wait for."""
    rows = counters(
        row, {"rx_bytes[server0.nic0]": 3 * GIB, "rx_bytes[server0.nic1]": GIB, "tx_bytes[server0.nic0]": 5}
    )
    built = nic_bytes.build(rows)
    assert built is not None
    lines = table(built)
    assert lines[0][-7:] == ["2", "4.000 GiB", "1.000 GiB", "2.000 GiB", "3.000 GiB", "1.500×", "server0.nic0"]
    assert lines[1][6:8] == ["sent", "1"]
    assert "scenario-demo" not in {s.slug for s in report_sections(rows)}


def test_bytes_that_another_section_tells_are_not_told_twice(paper_rows: list[Row]) -> None:
    """The counters of the r7525 servers have a section of their own."""
    assert "nic-bytes" not in {s.slug for s in report_sections(paper_rows)}


def failed(seed: int | None = None) -> Row:
    common = {"scenario": "demo", "cluster": "h100", "workload": "all_reduce", "pattern": "server0@0"}
    return error_row(**common, strategy="balance", backend="flow", bytes=GIB, seed=seed, error="no path for rank 3")


def test_failed_cases_are_listed_with_their_reason_and_nowhere_else(row: MakeRow) -> None:
    """They are the first finding, and no result."""
    sections = {s.slug: s for s in report_sections([row(), failed(seed=7)])}
    line = table(sections["failed-cases"])[0]
    assert line == ["demo", "h100", "server0@0", "7", "Balance", "flow", "1 GiB", "no path for rank 3"]
    assert sections["overview"].findings[0] == "1 case failed."
    extent = sections["overview"].blocks[1]
    assert isinstance(extent, Text)
    assert extent.text.startswith("1 result of 1 scenario")
    assert extent.text.endswith("1 case failed.")
    assert table(sections["scenario-demo"], "Steady time") == [["Balance", "1.100 s"]]
    assert failed_cases.build([row()]) is None


def test_clusters_are_drawn_with_their_failures_a_kind_first(row: MakeRow) -> None:
    """One picture of each kind of cluster, then those with most failures; six at most."""
    rows = [row(cluster="uniformx4", pattern=f"server0.nic0={0.1 * i:.1f}@0") for i in range(1, 8)]
    rows += [row(cluster="r7525", pattern="server0.mlx5_2@bytes:1048576")]
    built = cluster_failures.build(rows)
    assert built is not None
    captions = [b.caption for b in built.blocks if isinstance(b, Plot)]
    assert [c.split(". ")[0] for c in captions[:2]] == [
        "uniformx4: server0.nic0=0.1@0",
        "r7525: server0.mlx5_2 after 1 MiB",
    ]
    assert len(captions) == cluster_failures.MOST
    assert isinstance(built.blocks[0], Text)
    assert "6 of the 8 pairs" in built.blocks[0].text
    assert cluster_failures.build([row(pattern="none"), row(pattern="")]) is None


@pytest.mark.parametrize(
    ("cluster", "pattern", "reason"),
    [("gone.yml", "server0.nic0@0", "gone.yml"), ("h100", "a-pattern-that-went", "a-pattern-that-went")],
)
def test_a_picture_that_cannot_be_drawn_any_more_is_left_out_and_that_said(
    row: MakeRow, cluster: str, pattern: str, reason: str
) -> None:
    """A cluster file or a pattern of one's own may be gone by the time of the report."""
    built = cluster_failures.build([row(cluster=cluster, pattern=pattern)])
    assert built is not None
    last = built.blocks[-1]
    assert isinstance(last, Text)
    assert last.text.startswith("Left out")
    assert reason in last.text


def test_a_cluster_of_ones_own_is_found_through_the_manifest(tmp_path: Path, row: MakeRow) -> None:
    """Rows have its name `mine`; the scenario in the run folder says that the file is mine.yml."""
    (tmp_path / "mine.yml").write_text("preset: h100\nservers: 3\n")
    manifest = {"scenario": {"content": {"title": "t", "blocks": [{"clusters": ["h100", str(tmp_path / "mine.yml")]}]}}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    build_report([row(cluster="mine")], tmp_path, "t")
    assert (tmp_path / "plots" / "clusters-0.svg").is_file()
    assert "Left out" not in (tmp_path / "report.md").read_text()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"scenario": {"content": {"blocks": [1, {"clusters": 2}]}}}'])
def test_a_manifest_that_says_nothing_does_no_harm(tmp_path: Path, content: str) -> None:
    """Names stay what they are."""
    (tmp_path / "manifest.json").write_text(content)
    assert named_clusters(tmp_path) == {}


def test_timelines_are_linked_relative_to_the_report(tmp_path: Path, row: MakeRow) -> None:
    """Every .json in RUN/timelines, in natural order; a report elsewhere points back to it."""
    (tmp_path / "run" / "timelines").mkdir(parents=True)
    for name in ("step 10.json", "step 2.json"):
        (tmp_path / "run" / "timelines" / name).write_text("{}")
    built = links.build(tmp_path / "run", tmp_path / "report")
    assert built is not None
    (found,) = (b for b in built.blocks if isinstance(b, Table))
    assert [line[0] for line in found.rows] == [
        Cell("step 2", link="../run/timelines/step%202.json"),
        Cell("step 10", link="../run/timelines/step%2010.json"),
    ]
    assert links.build(tmp_path, tmp_path) is None
    paths = build_report([row()], tmp_path / "report", "t", run_dir=tmp_path / "run")
    assert "[step 2](../run/timelines/step%202.json)" in paths.markdown.read_text()
    assert '<a href="../run/timelines/step%202.json">step 2</a>' in paths.html.read_text()


def test_a_table_never_holds_more_rows_than_a_page_bears() -> None:
    """The report sums up: of 1,000 failed cases it lists the first 400, and says so."""
    rows = [failed(seed) for seed in range(1000)]
    (found,) = (b for b in section(rows, "failed-cases").blocks if isinstance(b, Table))
    assert len(found.rows) == MOST_ROWS
    assert found.caption == "Cases without a result; the first 400 of 1000 rows, the results table has all"


def test_a_notice_stands_on_top(row: MakeRow) -> None:
    """Before everything else, in the overview."""
    head = report_sections([row()], notice="Not finished.")[0]
    assert head.blocks[0] == Text("Not finished.")


def test_facets_are_the_values_of_the_rows_strategies_without_options(row: MakeRow) -> None:
    """Readers choose `R2CC-AllReduce`, whatever its k."""
    rows = [row(strategy="r2cc-allreduce:k=8"), row(strategy="r2cc-allreduce"), row(cluster="a100", backend="chunk")]
    assert facets.of_rows(rows) == {
        "scenario": ("demo",),
        "cluster": ("h100x4", "a100"),
        "strategy": ("R2CC-AllReduce", "Balance"),
        "backend": ("flow", "chunk"),
    }
    assert facets.value("strategy", "Balance split=weighted") == "Balance"
    assert facets.value("cluster", "a=b c") == "a=b c"
    offered = facets.choices(report_sections(rows))
    assert [facet for facet, _ in offered] == ["cluster", "strategy", "backend"]
    assert dict(offered)["strategy"] == ["Balance", "R2CC-AllReduce"]


def test_sections_and_tables_know_what_they_are_about(row: MakeRow) -> None:
    """Tables of one case carry its cluster, so that a filter hides them whole."""
    rows = [row(cluster=cluster, simulated=1.5) for cluster in ("h100", "a100")]
    built = section(rows, "scenario-demo")
    assert built.facets["cluster"] == ("h100", "a100")
    assert [b.facets["cluster"] for b in built.blocks if isinstance(b, Table)] == [("h100",), ("a100",)]
