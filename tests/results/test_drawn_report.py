"""The section on drawn failures: what it says of rows as a sweep over seeds has them."""

import re
from collections.abc import Callable, Sequence

import pytest

from r2cc_simai.results import Row
from r2cc_simai.results.report import drawn_failures, drawn_words
from r2cc_simai.results.report.build import build_report, report_sections
from r2cc_simai.results.report.document import Heading, Plot, Section, Table, Text
from r2cc_simai.results.statistics import Interval

MakeRow = Callable[..., Row]
GPU_H = 73_000.0
LOST = {"nccl": 400.0, "balance": 10.0, "r2cc-allreduce": 5.0}


@pytest.fixture
def month(row: MakeRow) -> Callable[..., list[Row]]:
    """Return a function that makes rows of courses of 73 h: draw i loses i mod 3 times the strategy's loss, 3/4 of it
    to cables and 1/4 to NICs."""

    def make(seeds: Sequence[int | None], lost: dict[str, float] = LOST, **more: object) -> list[Row]:
        rows = []
        for seed in seeds:
            for strategy, loss in lost.items():
                times = (seed or 0) % 3
                common = {"scenario": "month", "pattern": "mttf:table=mine", "seed": seed, "strategy": strategy}
                common |= {"bytes": 0, "ideal": None, "workload": "gpt tp=8", **more}
                share = 1 - times * loss / GPU_H
                rows.append(row(**{**common, "ideal": 1.0}, metric="effective_time", unit="1", simulated=share))
                numbers = {"lost_gpu_h": times * loss, "gpu_h": GPU_H, "hours": 73.0, "incidents": 2.0 * times}
                if times:
                    numbers |= {"lost_gpu_h[cable]": 0.75 * times * loss, "lost_gpu_h[nic]": 0.25 * times * loss}
                    numbers |= {"incidents[cable]": times, "incidents[nic]": times}
                rows += [row(**common, metric=m, unit="h", simulated=value) for m, value in numbers.items()]
        return rows

    return make


def section(rows: Sequence[Row]) -> Section:
    """Return the section on drawn failures."""
    return drawn_failures.build([row for row in rows if drawn_failures.claims(row)])


def lines(found: Section, caption: str) -> list[list[str]]:
    """Return a table as lists of texts."""
    table = next(b for b in found.blocks if isinstance(b, Table) and b.caption.startswith(caption))
    return [[cell.text for cell in line] for line in table.rows]


def test_a_month_tells_what_is_lost_how_sure_that_is_and_to_what(month: Callable[..., list[Row]]) -> None:
    """Draws lose 0, 1 and 2 times 5 GPU-hours in 73 h under R2CC-AllReduce: 5 on average, 50 in a month of 730 h."""
    found = section(month(range(30)))
    assert lines(found, "GPU-hours lost in a month of 730 h, of 730,000")[2][:3] == [
        "R2CC-AllReduce k=4",
        "50.0",
        "0.00685%",
    ]
    assert lines(found, "Which failures cost most")[0][:2] == ["cable", "10"]
    assert lines(found, "Which failures cost most")[0][2:] == ["75.0%", "75.0%", "75.0%"]
    first = lines(found, "Strategies on the same draws")[0]
    assert first == ["R2CC-AllReduce k=4", "Balance", "50.0", "66.7%", "0.0%", "yes"]
    (said,) = found.findings
    assert said.startswith(
        "month (h100x4, 30 draws of 73 h of `mttf:table=mine`): GPU-hours lost a month, R2CC-AllReduce k=4 50.0 ("
    )
    assert "Balance 100 (2 times as much); NCCL 4,000 (80 times as much)." in said
    assert said.endswith("Under R2CC-AllReduce k=4 cable costs most, 75% of it.")


def test_the_distribution_is_of_the_overhead(month: Callable[..., list[Row]]) -> None:
    """Draws of NCCL lose 0, 400 and 800 of 73,000 GPU-hours: overheads 0, 0.551 and 1.108%."""
    strategy, draws, mean, p50, p90, p99, worst = lines(section(month(range(30))), "Overhead over the healthy job")[0]
    assert (strategy, draws) == ("NCCL", "30")
    assert (mean, p50, p90, p99, worst) == ("0.553%", "0.551%", "1.11%", "1.11%", "1.11%")


def test_both_plots_are_drawn_and_do_not_grow_with_the_draws(month: Callable[..., list[Row]]) -> None:
    plots = {n: [b for b in section(month(range(n))).blocks if isinstance(b, Plot)] for n in (240, 480)}
    assert [plot.slug for plot in plots[240]] == ["drawn-overhead-0", "drawn-causes-0"]
    assert len(plots[480][0].svg) < 1.1 * len(plots[240][0].svg)
    assert "GPU-h" in plots[240][1].svg


def test_draws_that_tell_nothing_apart_say_so(month: Callable[..., list[Row]]) -> None:
    rows = month(range(30), {"balance": 5.0, "hot-repair": 5.0})
    found = section(rows)
    assert "These draws do not tell Hot repair from Balance." in found.findings[0]
    assert lines(found, "Strategies on the same draws")[0][-1] == "no: the interval holds 0"


def test_draws_whose_cases_failed_are_counted(month: Callable[..., list[Row]]) -> None:
    """Seeds 0 to 9 of one strategy, 2 of them missing of another."""
    rows = month(range(10), {"balance": 5.0}) + month(range(8), {"optcc": 5.0})
    texts = [b.text for b in section(rows).blocks if isinstance(b, Text)]
    assert any("Left out, since these cases failed: 2 of OptCC." in text for text in texts)


def test_a_pattern_without_draws_has_a_line_and_no_interval(month: Callable[..., list[Row]]) -> None:
    """One course alone, and one in which nothing fails."""
    rows = month([None], pattern="none") + month([1], pattern="rail2@5h")
    found = section(rows)
    told = lines(found, "Mean overhead")
    assert told[0] == ["none", "–", "0%", "0%", "0%"]
    assert [b.text for b in found.blocks if isinstance(b, Heading)] == ["rail2@5h"]
    assert not any(isinstance(b, Plot) and b.slug.startswith("drawn-overhead") for b in found.blocks)


def test_drawn_failures_of_short_jobs_compare_overheads(row: MakeRow) -> None:
    """No hours, no months: overheads of each metric, in points."""
    rows = [
        row(scenario="short", seed=s, strategy=strategy, metric=m, unit="s", simulated=1 + loss * (1 + s % 2))
        for s in range(40)
        for strategy, loss in (("hot-repair", 0.5), ("balance", 0.1))
        for m in ("time", "time_cut", "algbw")
    ]
    found = section(rows)
    assert lines(found, "Overhead over the healthy job: steady time")[1][2] == "15.0%"
    assert lines(found, "Overhead over the healthy job: iteration hit by the cut")[0][2] == "75.0%"
    assert lines(found, "Strategies on the same draws")[0][:3] == ["Balance", "Hot repair", "60.0"]
    assert "mean overhead over the healthy job, Balance 15.0%" in found.findings[0]


def test_findings_of_the_same_failures_name_the_job(month: Callable[..., list[Row]]) -> None:
    """By what tells it from the others; a job that stands alone is not named."""
    jobs = ["gpt tp=8 phase=decode steps=2", "gpt tp=8 phase=prefill steps=2"]
    rows = [row for workload in jobs for row in month(range(3), workload=workload)]
    heads = [said.split(", 3 draws")[0] for said in section(rows).findings]
    assert heads == ["month (h100x4, decoding", "month (h100x4, prompts only"]
    (alone,) = section(month(range(3), workload=jobs[0])).findings
    assert alone.startswith("month (h100x4, 3 draws")


def test_findings_of_collectives_name_their_sizes(row: MakeRow) -> None:
    rows = [
        row(scenario="s", seed=s, strategy="balance", metric="time", unit="s", simulated=1.0 + s, bytes=size)
        for size in (2**20, 2**30)
        for s in range(3)
    ]
    assert ["1 MiB" in said for said in section(rows).findings] == [True, False]


def test_many_cases_are_a_table_and_the_first_of_them_in_detail(month: Callable[..., list[Row]]) -> None:
    rows = [r for n in range(8) for r in month([1], {"balance": 5.0}, cluster=f"h100x{n + 2}")]
    found = section(rows)
    assert len(lines(found, "Mean overhead")) == 8
    assert len([b for b in found.blocks if isinstance(b, Heading)]) == drawn_failures.DETAILED
    assert found.findings == ()
    assert any(isinstance(b, Text) and b.text.startswith("2 more cases: `r2cc-simai stats`") for b in found.blocks)


def test_rows_of_a_training_day_stay_in_their_own_section(month: Callable[..., list[Row]], row: MakeRow) -> None:
    """They are means over days already, and have no seed and no ideal."""
    day = row(scenario="training-day", workload="gpt days=9", metric="effective_time", simulated=0.9, ideal=None)
    slugs = [s.slug for s in report_sections([day, *month([1])])]
    assert "training-day" in slugs
    assert "drawn-failures" in slugs
    assert not drawn_failures.claims(day)


def test_the_report_is_the_same_byte_for_byte(month: Callable[..., list[Row]], tmp_path) -> None:  # type: ignore[no-untyped-def]
    """Intervals are resampled anew each time, from one seed."""
    pages = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        paths = build_report(month(range(12)), tmp_path / name, "t")
        pages.append((paths.html.read_bytes(), paths.markdown.read_bytes()))
    assert pages[0] == pages[1]
    assert re.search(rb'id="drawn-failures"', pages[0][0])


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0%"),
        (1e-14, "0%"),
        (0.09996, "0.100%"),
        (9.999, "10.0%"),
        (-0.5, "−0.500%"),
        (0.00451, "0.00451%"),
        (0.12, "0.120%"),
        (1.234, "1.23%"),
        (57.12, "57.1%"),
        (4340.0, "4340%"),
    ],
)
def test_small_percentages_keep_three_digits(share: float, text: str) -> None:
    assert drawn_words.small_percent(share) == text


@pytest.mark.parametrize(
    ("hours", "text"),
    [
        (3230.4, "3,230"),
        (99.96, "100"),
        (33.71, "33.7"),
        (-0.0521, "−0.0521"),
        (0.00001, "0.0000100"),
        (95.0, "95.0"),
        (0.0, "0"),
    ],
)
def test_gpu_hours_keep_three_digits(hours: float, text: str) -> None:
    assert drawn_words.gpu_h(hours) == text


def test_ends_of_an_interval_carry_the_unit_once() -> None:
    assert drawn_words.ends(Interval(0.1, 2.0), "percent") == "0.100 to 2.00%"
    assert drawn_words.ends(None, "gpu_h") == ""
