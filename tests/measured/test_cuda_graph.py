"""The log of CUDA graphs replayed across a failure."""

from pathlib import Path

import pytest

from r2cc_simai.errors import InputError
from r2cc_simai.measured import FailedNic, GraphRow, read_log

LOG = Path(__file__).parent / "data" / "cuda_graph.log"
MIB = 1 << 20


def test_the_run_and_its_failure() -> None:
    (run,) = read_log(LOG)
    assert (run.source, run.collective, run.mode) == (f"{LOG}:5", "all_reduce", "hot-repair")
    assert run.failed == FailedNic(1, "hca1"), "hosts are numbered from 1, servers from 0"
    assert run.nic_names == ("hca0", "hca1")
    assert (run.n_nodes, run.n_ranks) == (None, 4)


def test_each_graph_has_its_strategy_its_time_and_the_cost_of_capturing_it() -> None:
    graph = read_log(LOG)[0].graph
    assert graph is not None
    assert graph.bytes == 2 << 30
    assert graph.rows == (
        GraphRow("Pre-failure graph, healthy", "nccl", 1.20, None),
        GraphRow("Pre-failure graph, HotRepair", "hot-repair", 2.39, None),
        GraphRow("Re-captured as R2CC-Balance", "balance", 1.81, 0.0025),
        GraphRow("Re-captured as R2CC-AllReduce", "r2cc-allreduce:k=4", 1.66, 0.25),
    )


def test_each_run_has_its_cut() -> None:
    graph = read_log(LOG)[0].graph
    assert graph is not None
    assert [(cut.rx_bytes, cut.full_rx_bytes, cut.time_s, cut.later_strategy) for cut in graph.cuts] == [
        (300 * MIB, 880 * MIB, 2.25, "balance"),
        (600 * MIB, 880 * MIB, 1.80, "r2cc-allreduce:k=4"),
    ]


def test_wrong_elements_a_failed_test_and_a_bad_exit_are_flagged() -> None:
    (run,) = read_log(LOG)
    assert [warning.rsplit(":", 2)[-2:] for warning in run.warnings] == [
        ["17", " 3 wrong elements"],
        ["19", " the run's own test failed"],
        ["20", " the run ended with exit code 2"],
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "R2CC-Balance              1.81",
            "R2CC-Other              1.81",
            r":8: expected a graph named healthy, HotRepair",
        ),
        ("of box-2", "of box", r":4: expected a host whose name ends with its number, from 1"),
        ("run 2/2, re-captured", "run two, re-captured", r":20: expected 2 'run N/2, re-captured as"),
        ("Replayed graph (2 GiB", "Replayed graph (big", r":20: expected the table 'Replayed graph"),
        ("Pre-failure graph, healthy               1.20 s", "quick", r":6: expected a row 'NAME  N s"),
        ("4 ranks: 0 wrong", "8 ranks: 0 wrong", r":17: expected as many ranks as in the log's other runs"),
    ],
)
def test_a_log_that_does_not_fit_is_refused_in_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = LOG.read_text()
    assert old in text
    path = tmp_path / "run.log"
    path.write_text(text.replace(old, new))
    with pytest.raises(InputError, match=message) as caught:
        read_log(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("n_lines", range(4, 18))
def test_a_log_cut_short_is_refused(tmp_path: Path, n_lines: int) -> None:
    path = tmp_path / "short.log"
    path.write_text("\n".join(LOG.read_text().splitlines()[:n_lines]))
    with pytest.raises(InputError, match=r"short\.log:\d+: expected"):
        read_log(path)
