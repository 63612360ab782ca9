"""The report: its sections, its findings, and an HTML page that stands alone."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest

from r2cc_simai.results.report import build_report
from r2cc_simai.results.report.build import report_sections
from r2cc_simai.results.report.document import Plot, Table

OWN_SECTIONS = [
    "figure7",
    "table1",
    "table4",
    "r7525-healthy",
    "r7525-strategies",
    "r7525-cut",
    "r7525-bytes",
]


@pytest.fixture(scope="module")
def paths(tmp_path_factory, paper_rows):
    return build_report(paper_rows, tmp_path_factory.mktemp("report"), "Cost of failures", {"a": 1.5, "b": 0.25})


@pytest.fixture(scope="module")
def sections(paper_rows):
    return {section.slug: section for section in report_sections(paper_rows)}


def table(section, caption):
    """Return a table of a section as lists of texts."""
    (found,) = (b for b in section.blocks if isinstance(b, Table) and b.caption.startswith(caption))
    return [[cell.text for cell in line] for line in found.rows]


def section_of(rows):
    """Return the section of the scenario `demo`."""
    return next(section for section in report_sections(rows) if section.slug == "scenario-demo")


def test_sections_stand_in_reading_order(sections):
    own = [*OWN_SECTIONS, "scenario-my--own--sweep", "clusters", "bound-gap"]
    assert list(sections) == ["overview", "overheads", "accuracy", *own, "reading"]


def test_a_section_appears_when_its_rows_exist(row):
    slugs = [s.slug for s in report_sections([row()])]
    assert slugs == ["overview", "overheads", "scenario-demo", "clusters", "reading"]
    assert [s.slug for s in report_sections([])] == ["overview", "reading"]


def test_markdown_and_html_hold_every_section_and_the_key_findings(paths, sections):
    markdown, html = paths.markdown.read_text(), paths.html.read_text()
    for section in sections.values():
        assert f'<section id="{section.slug}"' in html
    assert "## Overhead over the lost bandwidth X (Figure 7)" in markdown
    assert "### Key findings" in markdown
    assert "57.6% with R2CC-AllReduce k=128. No algorithm gets below 14.3%." in markdown
    assert "all 2 cases" in markdown


def test_figure_7_shows_overhead_by_n_and_x_with_other_backends_and_published_values(sections):
    section = sections["figure7"]
    assert table(section, "R2CC-AllReduce k=128: overhead by flow")[1] == ["8", "8.2%", "57.6%"]
    assert table(section, "Lower bound")[1] == ["8", "1.6%", "14.3%"]
    (found,) = (b for b in section.blocks if isinstance(b, Table) and b.caption.startswith("R2CC"))
    assert found.rows[1][2].note == "chunk 57.6% · published 57.1%"


def test_table_1_is_printed_with_as_many_digits_as_published(sections):
    lines = table(sections["table1"], "Relative gap")
    assert [line[0:2] + line[4:6] for line in lines][:3] == [
        ["4", "1/8", "0.470%", "0.470%"],
        ["4", "1/4", "0.833%", "0.833%"],
        ["4", "1/2", "1.190%", "1.190%"],
    ]
    assert sections["table1"].findings == (
        "Table 1 of the R2CC paper: 9 of 9 simulated gaps agree with every published digit.",
    )


def test_table_4_sets_simulated_beside_measured(sections):
    lines = table(sections["table4"], "Simulated and measured times")
    assert lines[0] == ["4 GiB", "Hot repair", "steady time", "4.070 s", "4.060 s", "−0.25%", "±1%", "2.002×"]


def test_bytes_per_nic_are_compared_with_the_counters(sections):
    lines = table(sections["r7525-bytes"], "Bytes per NIC and iteration")
    assert lines[1] == [
        "Hot repair",
        "server0.mlx5_2 after 601 MiB",
        "received on server0.mlx5_2",
        "601.0 MiB",
        "602.2 MiB",
        "+0.20%",
        "±1%",
    ]


def test_an_error_beyond_its_tolerance_is_marked_and_counted(row):
    rows = [row(scenario="table4", simulated=s, measured=1.0, ideal=None) for s in (1.005, 1.02)]
    sections = {s.slug: s for s in report_sections(rows)}
    (found,) = (b for b in sections["table4"].blocks if isinstance(b, Table))
    assert [line[4].tone for line in found.rows] == ["ok", "bad"]
    assert table(sections["accuracy"], "Simulated against")[0][2:5] == ["2", "1", "+2.00%"]
    assert "1 of 2 simulated values are within tolerance" in sections["overview"].findings[0]


def test_a_sweep_of_ones_own_gets_strategies_by_size_and_a_plot(sections):
    section = sections["scenario-my--own--sweep"]
    assert table(section, "Steady time by size")[1] == ["Balance", "1.140 s", "1.140 s"]
    assert [b.slug for b in section.blocks if isinstance(b, Plot)] == ["overhead-my--own--sweep"]
    assert section.findings == (
        "my <own> sweep: steady time, overhead over the healthy cluster: Balance 14.0%, my-ring z=3 30.0%.",
    )


def test_many_cases_are_summed_up(row):
    rows = [row(pattern=f"drawn:{i}", simulated=1 + i / 100) for i in range(21)]
    section = section_of(rows)
    assert table(section, "Overhead") == [["Balance", "21", "10.0%", "0%", "20.0%"]]


def test_bandwidths_and_unknown_metrics_have_tables_too(row):
    rows = [
        row(metric="busbw", unit="B/s", simulated=2e9, ideal=4e9),
        row(metric="ttft", unit="s", ideal=None),
    ]
    section = section_of(rows)
    assert table(section, "Bus bandwidth") == [["Balance", "2.000 GB/s"]]
    assert table(section, "Ttft") == [["Balance", "1.100 s"]]


class References(HTMLParser):
    """Collects what a page would load, and its ids."""

    def __init__(self):
        super().__init__()
        self.links, self.tags, self.ids, self.loads = [], set(), [], []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "xlink:href", "data", "action")]
        self.loads += [value for name, value in attrs if tag == "script" and name == "src"]
        self.ids += [value for name, value in attrs if name == "id"]


def test_the_page_refers_to_nothing_outside_itself(paths):
    html = paths.html.read_text()
    page = References()
    page.feed(html)
    assert all(link.startswith("#") for link in page.links)
    assert {link[1:] for link in page.links} <= set(page.ids)
    assert not page.tags & {"link", "img", "iframe", "object", "base"}
    assert page.loads == []
    assert "http" not in html
    assert "@import" not in html
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", html))


def test_ids_are_unique_across_the_plots_of_a_page(paths):
    page = References()
    page.feed(paths.html.read_text())
    repeated = {i for i in page.ids if page.ids.count(i) > 1}
    assert not repeated


def test_plots_on_the_page_take_their_colours_from_its_theme(paths):
    drawings = re.findall(r"<svg.*?</svg>", paths.html.read_text(), flags=re.DOTALL)
    assert len(drawings) == len(paths.plots)
    assert all('role="img" aria-label="' in drawing for drawing in drawings)
    assert {c for drawing in drawings for c in re.findall(r"#[0-9a-f]{6}\b", drawing)} <= {
        "#000000",
        "#ffffff",
    }


def test_names_that_a_user_chose_are_escaped(paths):
    assert "my &lt;own&gt; sweep" in paths.html.read_text()
    assert "<own>" not in paths.html.read_text()
    assert r"my \<own> sweep" in paths.markdown.read_text()


def test_plot_files_are_svg_and_markdown_links_to_each(paths):
    markdown = paths.markdown.read_text()
    for path in paths.plots:
        assert ET.parse(path).getroot().tag.endswith("svg")
        assert f"(plots/{path.name})" in markdown


def test_the_same_rows_give_the_same_files(tmp_path, paper_rows):
    first = build_report(paper_rows, tmp_path / "1", "Cost of failures")
    second = build_report(paper_rows, tmp_path / "2", "Cost of failures")
    for a, b in zip(
        (first.html, first.markdown, *first.plots), (second.html, second.markdown, *second.plots), strict=True
    ):
        assert a.read_bytes() == b.read_bytes()


@pytest.mark.parametrize(
    ("package", "heavy"),
    [
        ("r2cc_simai.results", {"numpy", "pyarrow", "matplotlib", "jinja2"}),
        ("r2cc_simai.results.report", {"scipy", "pyarrow", "matplotlib", "jinja2"}),
    ],
)
def test_importing_the_package_loads_nothing_heavy(package, heavy):
    code = f"import sys, {package}; print(*{heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
