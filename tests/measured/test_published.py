"""The tables of published and measured figures that ship with the project."""

from pathlib import Path

import pytest

from r2cc_simai.errors import InputError
from r2cc_simai.measured import published

EXPECTED = {
    "figure7_r2cc": 20,
    "h100_training": 6,
    "one_off_costs": 5,
    "optcc": 18,
    "r7525_compare": 9,
    "r7525_cut": 6,
    "r7525_healthy": 30,
    "r7525_k_sweep": 9,
    "r7525_nic_bytes": 21,
    "reliability": 26,
    "table1": 9,
    "table4": 4,
    "training_scale": 5,
}


def test_these_tables_are_there() -> None:
    assert published.names() == sorted(EXPECTED)


@pytest.mark.parametrize(("name", "n_rows"), EXPECTED.items())
def test_every_row_names_its_source(name: str, n_rows: int) -> None:
    rows = published.load(name)
    assert len(rows) == n_rows
    assert all(row["source"] for row in rows)


def test_table_1_is_the_gap_between_y_equal_x_and_the_optimum() -> None:
    """T(Y) = max(T1, T2) + T3 in units of D/B; g = (T(X) - T(Y*)) / T(Y*), to every printed digit."""
    for row in published.load("table1"):
        n, x = int(row["n"]), float(row["x"])

        def time(y: float, n: int = n, x: float = x) -> float:
            t1 = 2 * (n - 1) / n * (1 - y) / (1 - x)
            t2 = 2 * (n - 2) / (n - 1) * y / x
            return max(t1, t2) + y / (1 - x)

        best = x * (n - 1) ** 2 / (x * (n - 1) ** 2 + (1 - x) * n * (n - 2))
        digits = len(row["gap_pct"].split(".")[1])
        assert f"{(time(x) / time(best) - 1) * 100:.{digits}f}" == row["gap_pct"]


def test_figure_7_is_the_closed_form() -> None:
    """T/T0 = 1 + nX / (2(n-1)(1-X)) with Y = X and K -> infinity."""
    for row in published.load("figure7_r2cc"):
        n, x = int(row["n"]), float(row["x"])
        assert float(row["overhead_pct"]) == pytest.approx(100 * n * x / (2 * (n - 1) * (1 - x)), abs=0.051)


def test_the_bound_in_the_optcc_table_is_the_lower_bound() -> None:
    """T >= max(1/(1-X), 2(n-1)/(n-X)) D/B over T0 = 2(n-1)/n D/B."""
    for row in published.load("optcc"):
        n, x = int(row["n"]), float(row["x"])
        bound = max(1 / (1 - x), 2 * (n - 1) / (n - x)) / (2 * (n - 1) / n)
        assert float(row["bound_pct"]) == pytest.approx((bound - 1) * 100, abs=0.051)
        assert float(row["bound_pct"]) <= float(row["mixture_pct"]) <= float(row["optcc_pct"])


def test_training_overheads_follow_from_the_throughput() -> None:
    rows = published.load("h100_training")
    healthy = next(float(row["throughput_tokens_per_s"]) for row in rows if row["failed_nics"] == "0")
    for row in rows:
        overhead = (healthy / float(row["throughput_tokens_per_s"]) - 1) * 100
        assert float(row["overhead_pct"]) == pytest.approx(overhead, abs=0.006)


def test_one_outlier_of_the_healthy_sweep_is_marked() -> None:
    assert [row["bytes"] for row in published.load("r7525_healthy") if row["note"]] == [str(128 << 20)]


def test_an_unknown_table_is_refused_with_the_names_of_those_there_are() -> None:
    with pytest.raises(InputError, match="table9: no such table of published figures; there are figure7_r2cc, "):
        published.load("table9")


def test_a_row_with_a_missing_cell_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.csv").write_text("n,x,source\n1,2,a\n1,2\n")
    monkeypatch.setattr(published, "published_dir", lambda: tmp_path)
    with pytest.raises(InputError, match=r"mine\.csv:3: expected 3 cells"):
        published.load("mine")
