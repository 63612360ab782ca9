"""The log of a hot-repair run: equal AllReduces, a NIC cut during one of them."""

from pathlib import Path

import pytest

from r2cc_simai.errors import InputError
from r2cc_simai.measured import FailedNic, IterationSeries, read_log

DATA = Path(__file__).parent / "data"
MIB = 1 << 20


def series(name: str) -> IterationSeries:
    (run,) = read_log(DATA / name)
    assert run.iterations is not None
    return run.iterations


def test_the_run_and_its_failure() -> None:
    (run,) = read_log(DATA / "hot_repair_to_balance.log")
    assert run.source == f"{DATA / 'hot_repair_to_balance.log'}:12"
    assert (run.collective, run.mode, run.failed) == ("all_reduce", "hot-repair", FailedNic(0, "hca1"))
    assert run.host_names == ("alder", "birch", "cedar"), "in the order of the ranks, not of the lines"
    assert run.nic_names == ("hca0", "hca1", "hca2")
    assert (run.n_nodes, run.n_ranks) == (3, 4)
    assert (run.sizes, run.warnings) == ((), ())


def test_each_iteration_has_its_time_and_the_bytes_of_each_nic() -> None:
    run = series("hot_repair_to_balance.log")
    assert run.bytes == 2 << 30
    assert [iteration.number for iteration in run.iterations] == [1, 2, 3, 4, 5, 6]
    assert [iteration.time_s for iteration in run.healthy] == [1.310, 1.200, 1.201]
    assert run.healthy[1].rx_bytes == {"hca0": 900 * MIB, "hca1": 880 * MIB, "hca2": 880 * MIB}
    assert run.healthy[1].total_rx_bytes == 2660 * MIB
    assert run.hit.rx_bytes["hca0"] == 1400 * MIB
    assert [iteration.number for iteration in run.later] == [5, 6]


def test_the_cut_says_what_had_passed_and_how_long_the_iteration_took() -> None:
    cut = series("hot_repair_to_balance.log").cut
    assert (cut.nic, cut.iteration) == ("hca1", 4)
    assert (cut.rx_bytes, cut.full_rx_bytes) == (420 * MIB, 880 * MIB)
    assert cut.time_s == 1.950, "the table has more digits than the window 4.11-6.06 s"
    assert (cut.command_s, cut.window_s) == ((4.00, 4.60), (4.11, 6.06))


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        ("hot_repair_to_balance.log", "balance"),
        ("hot_repair_to_r2cc_allreduce.log", "r2cc-allreduce:k=4"),
        ("hot_repair_all_the_way.log", "hot-repair"),
    ],
)
def test_the_counters_tell_which_strategy_followed(name: str, strategy: str) -> None:
    assert series(name).cut.later_strategy == strategy


def edited(tmp_path: Path, old: str, new: str) -> Path:
    text = (DATA / "hot_repair_to_balance.log").read_text()
    assert old in text
    path = tmp_path / "run.log"
    path.write_text(text.replace(old, new))
    return path


def test_wrong_elements_a_failed_test_and_a_bad_exit_are_flagged(tmp_path: Path) -> None:
    path = edited(tmp_path, "4 ranks: 0 wrong", "4 ranks: 5 wrong")
    path.write_text(path.read_text().replace("TEST PASS", "TEST FAIL").replace("exit=0 PASS", "exit=1 FAIL"))
    (run,) = read_log(path)
    assert [warning.split(": ", 1)[1] for warning in run.warnings] == [
        "5 wrong elements",
        "the run's own test failed",
        "the run ended with exit code 1",
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "1810       1370         0            1330",
            "1810       1370",
            r":17: expected iteration 5 with its time",
        ),
        ("hca1 cut during", "hca9 cut during", r":20: expected a NIC of the table \(hca0, hca1, hca2\)"),
        (
            "cut during iteration 4",
            "cut during iteration 1",
            r":20: expected a cut after the first and before the last",
        ),
        ("(420 of 880 MB", "(420 of all MB", r":20: expected 'NIC cut during iteration N"),
        ("1370         0 ", "1370         880 ", r":20: expected later traffic as hot repair, Balance or"),
        ("iters=6", "iters=7", r":19: expected iteration 7 with its time"),
        ("iters=6", "iters=99", r":22: expected 99 iterations in the table before the end"),
        ("TEST PASS", "DONE", r":22: expected the verdict 'TEST PASS' or 'TEST FAIL'"),
        ("Verification:", "", r":22: expected the line 'Verification: "),
        ("Config: iters", "Config: n", r":22: expected the line 'Config: iters=N"),
    ],
)
def test_a_log_that_does_not_fit_is_refused_in_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = edited(tmp_path, old, new)
    with pytest.raises(InputError, match=message) as caught:
        read_log(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("n_lines", range(4, 21))
def test_a_log_cut_short_is_refused(tmp_path: Path, n_lines: int) -> None:
    lines = (DATA / "hot_repair_to_balance.log").read_text().splitlines()[:n_lines]
    path = tmp_path / "short.log"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=rf"short\.log:{n_lines}: expected"):
        read_log(path)
