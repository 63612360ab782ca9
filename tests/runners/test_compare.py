"""`compare`: what a log measured beside the simulation of the same."""

import json
from pathlib import Path

import pytest

from r2cc_simai.cli.main import run
from r2cc_simai.engine.run import Backend
from r2cc_simai.errors import InputError
from r2cc_simai.measured import ColumnResult, SizeResult
from r2cc_simai.results import COLUMNS
from r2cc_simai.runners.compare import Compared, compare_log
from r2cc_simai.runners.outliers import outlier_sizes

MIB, GIB = 2**20, 2**30
BIG = [256 * MIB, GIB, 4 * GIB]


def errors_pct(compared: tuple[Compared, ...]) -> dict[tuple[str, str], float | None]:
    return {(one.row.scenario, one.row.metric): one.row.error_pct for one in compared}


@pytest.mark.parametrize("mode", ["nccl", "hot-repair", "balance", "r2cc-allreduce"])
def test_a_log_that_the_simulator_wrote_has_no_error(write_sweep, mode):
    found = compare_log(write_sweep(BIG, mode), None, Backend.FLOW)
    assert found.ok
    assert found.cluster == "r7525"
    assert [one.row.bytes for one in found.compared] == BIG
    assert all(abs(one.row.error_pct) < 1e-4 for one in found.compared)


def test_the_lost_nic_is_down_from_the_start_in_the_modes_that_react_to_it(write_sweep):
    assert {one.row.pattern for one in compare_log(write_sweep(BIG), None, Backend.FLOW).compared} == {"none"}
    degraded = compare_log(write_sweep(BIG, "balance"), None, Backend.FLOW).compared
    assert {(one.row.pattern, one.row.strategy) for one in degraded} == {("server0.mlx5_2@0", "balance")}


@pytest.mark.parametrize(("factor", "code"), [(1.0, 0), (1.009, 0), (0.991, 0), (1.011, 1), (1.1, 1), (0.9, 1)])
def test_times_from_512_mib_on_may_be_off_by_one_percent(write_sweep, factor, code):
    assert run(["compare", str(write_sweep([GIB, 4 * GIB], factor=factor))]) == code


@pytest.mark.parametrize(("factor", "code"), [(1.04, 0), (1.06, 1)])
def test_times_from_16_mib_on_may_be_off_by_five_percent(write_sweep, factor, code):
    assert run(["compare", str(write_sweep([16 * MIB, 256 * MIB], factor=factor))]) == code


def test_an_outlier_is_shown_and_not_judged(write_sweep):
    found = compare_log(write_sweep([128 * MIB, 256 * MIB, 512 * MIB], spoilt=256 * MIB), None, Backend.FLOW)
    spoilt = found.compared[1]
    assert not spoilt.judged
    assert not spoilt.ok
    assert found.ok


def test_the_first_and_the_last_size_are_always_judged(write_sweep):
    sizes = [128 * MIB, 256 * MIB, 512 * MIB]
    for spoilt in (sizes[0], sizes[-1]):
        assert not compare_log(write_sweep(sizes, spoilt=spoilt), None, Backend.FLOW).ok


def test_a_step_in_the_bandwidth_is_no_outlier():
    """A change of protocol halves the bandwidth from one size on; a disturbance spoils one size."""

    def sizes(*gbps: float) -> list[SizeResult]:
        results = [(2**k * MIB, ColumnResult(2**k * MIB / (g * 1e9), g * 1e9, g * 1e9, 0)) for k, g in enumerate(gbps)]
        return [SizeResult(size, size // 4, "float", "sum", -1, column, None) for size, column in results]

    assert outlier_sizes(sizes(1.0, 2.0, 2.0, 1.0, 1.0)) == frozenset()
    assert outlier_sizes(sizes(2.0, 2.0, 1.7, 2.0)) == {4 * MIB}
    assert outlier_sizes(sizes(1.0, 2.0)) == frozenset()


@pytest.mark.parametrize("strategy", ["balance", "r2cc-allreduce"])
@pytest.mark.parametrize("passed_mib", [100, 600, 1500])
def test_each_kind_of_iteration_of_a_series_is_compared(write_series, strategy, passed_mib):
    """Time and bytes per NIC, before, in and after the iteration that the cut hits, wherever in it the cut comes."""
    found = compare_log(write_series(strategy, passed_mib), None, Backend.FLOW)
    assert found.ok
    errors = errors_pct(found.compared)
    kinds = {scenario.removeprefix("series ") for scenario, _ in errors}
    assert kinds == {"healthy", "cut", "after the cut"}
    assert errors["series cut", "time_cut"] == pytest.approx(0, abs=0.1)
    for kind in kinds:
        assert errors[f"series {kind}", "rx_bytes[server0.mlx5_0]"] == pytest.approx(0, abs=0.1)
    assert ("series healthy", "time_first") in errors
    assert (("series after the cut", "time_first") in errors) == (strategy == "r2cc-allreduce")


def test_a_dead_nic_has_to_be_silent_in_the_simulation_too(write_series):
    found = compare_log(write_series(), None, Backend.FLOW)
    (silent,) = [one for one in found.compared if (one.row.measured, one.row.metric) == (0, "rx_bytes[server0.mlx5_2]")]
    assert silent.row.simulated == 0
    assert silent.ok


def test_a_series_that_took_ten_percent_longer_is_a_mismatch(write_series, capsys):
    assert run(["compare", str(write_series(factor=1.1))]) == 1
    assert "NO" in capsys.readouterr().out


def test_graphs_compare_steady_times_recapture_and_the_cut(write_graphs):
    found = compare_log(write_graphs(), None, Backend.FLOW)
    assert found.ok
    metrics = [(one.row.strategy, one.row.metric) for one in found.compared]
    assert metrics == [
        ("nccl", "time"),
        ("hot-repair", "time"),
        ("balance", "time"),
        ("balance", "one_off"),
        ("r2cc-allreduce", "time"),
        ("r2cc-allreduce", "one_off"),
        ("balance", "time_cut"),
    ]


def test_a_recapture_that_costs_more_is_a_mismatch(write_graphs):
    found = compare_log(write_graphs(recapture_ms=2.5), None, Backend.FLOW)
    assert [one.row.metric for one in found.compared if not one.ok] == ["one_off"]


def test_both_backends_agree_with_a_log(write_sweep, write_series):
    for log in (write_sweep([16 * MIB, 32 * MIB], "balance"), write_series()):
        assert compare_log(log, None, Backend.CHUNK).ok


def test_the_cluster_is_inferred_from_hosts_and_nics(write_sweep):
    strangers = write_sweep([GIB], nodes=("alder", "birch", "cedar"))
    with pytest.raises(InputError, match=r"alder.*mlx5_0, mlx5_2, mlx5_3.*--cluster"):
        compare_log(strangers, None, Backend.FLOW)
    assert compare_log(strangers, "r7525", Backend.FLOW).ok


def test_more_servers_of_a_known_kind_are_a_larger_cluster_of_it(write_sweep):
    log = write_sweep([GIB], nodes=("node-1", "node-2", "node-3", "localhost"))
    assert compare_log(log, None, Backend.FLOW).cluster == "r7525x4"


def test_a_cluster_of_another_size_is_refused(write_sweep):
    with pytest.raises(InputError, match="3 servers, but cluster h100 has 2"):
        compare_log(write_sweep([GIB]), "h100", Backend.FLOW)
    with pytest.raises(InputError, match="6 ranks, but cluster uniformx3 has 3"):
        compare_log(write_sweep([GIB]), "uniformx3", Backend.FLOW)


def test_json_holds_every_row_with_the_columns_of_the_table(write_sweep, capsys):
    path = write_sweep(BIG, "balance")
    assert run(["compare", "--json", str(path)]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [tuple(row) for row in rows] == [COLUMNS] * 3
    assert all(row["measured"] and row["source"].startswith(str(path)) for row in rows)


def test_several_logs_are_grouped_by_log(write_sweep, capsys):
    good, bad = write_sweep([GIB], name="good.log"), write_sweep([GIB], factor=1.5, name="bad.log")
    assert run(["compare", str(good), str(bad)]) == 1
    out = capsys.readouterr().out
    assert out.index("good.log") < out.index("1 of 1 within tolerance") < out.index("bad.log on r7525")
    assert "0 of 1 within tolerance" in out


def test_another_collective_is_named_as_unknown(write_sweep, capsys):
    path: Path = write_sweep([GIB])
    path.write_text(path.read_text().replace("all_reduce_perf", "scan_perf"))
    assert run(["compare", str(path)]) == 2
    assert "scan is not known" in capsys.readouterr().err
