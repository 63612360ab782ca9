"""The summary for a comment: verdict, a line a strategy, the largest moves, the rest folded away."""

import pytest

from r2cc_simai.baseline.markdown import FOLDED, SHOWN, escape, render_markdown
from r2cc_simai.results import error_row

COMMENT = 65_536
"""Characters that a comment on GitHub may have."""
UPDATE = "r2cc-simai baseline update runs/x --name paper"


@pytest.fixture(scope="module")
def many(row):
    """Return as many numbers as a large sweep has, with long names."""
    patterns = [" ".join(f"server{n}.nic{i % 8}@0" for n in range(10)) for i in range(1500)]
    return [row(pattern=f"{p} {i}", workload="gpt3-175b " + "tp=8 " * 30) for i, p in enumerate(patterns)]


def test_nothing_moved(rows, compare):
    assert render_markdown(compare(rows, rows), "paper", UPDATE) == (
        "### Overhead numbers against baseline `paper`: passed\n\n54 numbers compared: none moved.\n"
    )


def test_a_move_is_told_with_from_to_allowed_and_measured(row, compare):
    before, after = (row(simulated=s, measured=2.1, source="log 08 | run 2") for s in (2.0, 2.1))
    lines = render_markdown(compare([before], [after]), "paper", UPDATE).splitlines()
    (line,) = [line for line in lines if line.startswith("| demo")]
    assert line == (
        r"| demo | uniformx4 | all\_reduce | server0.nic0=0.5@0 | balance | flow | 1 GiB | time | 2 s | 2.1 s | +5.00 "
        r"| 0.1 | +100.00 to +110.00 | +10.00 | 2.1 s | log 08 \| run 2 |"
    )
    assert lines[0].endswith(": failed")
    assert lines[-1] == f"If that is meant, update the baseline and commit it: `{UPDATE}`"


def test_each_strategy_that_moved_has_a_line(rows, scaled, compare):
    text = render_markdown(compare(rows, scaled(scaled(rows, "balance", 1.02), "hot", 1.03)), "paper", UPDATE)
    assert [line.partition(":")[0] for line in text.splitlines() if line.startswith("- ")] == [
        "- hot-repair",
        "- balance",
    ]


def test_what_is_beyond_the_table_is_folded_and_the_whole_fits_into_a_comment(many, scaled, compare):
    text = render_markdown(compare(many, scaled(many, "balance", 1.02)), "paper", UPDATE)
    assert text.count("\n| demo") == SHOWN + FOLDED
    assert "<summary>1480 more</summary>" in text
    assert "`r2cc-simai baseline check --json` lists all" in text
    assert len(text) < COMMENT


def test_missing_new_and_failed_ones_are_folded(rows, row, compare):
    failed = error_row(
        scenario="later",
        cluster="h100",
        workload="all_reduce",
        pattern="server0@0",
        strategy="nccl",
        backend="flow",
        bytes=8,
        error="no NIC is left <here>",
    )
    text = render_markdown(compare(rows, [*rows[2:], row(scenario="later"), failed]), "paper", UPDATE)
    for summary in ("1 cases that failed", "1 numbers of the baseline that", "1 numbers that the baseline does not"):
        assert f"<summary>{summary}" in text
    assert "no NIC is left &lt;here&gt;" in text


def test_markup_in_names_is_shown_as_it_is():
    assert escape("a|b_c *d* `e` [f](g) <h>") == r"a\|b\_c \*d\* \`e\` \[f\](g) &lt;h&gt;"
