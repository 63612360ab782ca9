"""The lab file: presets that plan, errors of one line, and the cluster that planners and backends see."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.operations import default_group
from r2cc_simai.errors import InputError, PartitionedError
from r2cc_simai.lab.cuts import known_fractions
from r2cc_simai.lab.spec import LabSpec, cases_of, load_lab, preset_names
from r2cc_simai.strategies.base import Request

SMALL: dict[str, Any] = {
    "servers": 3,
    "ranks_per_server": 2,
    "nics": [{"count": 2, "rate_mbps": 50}],
    "bytes": 65536,
    "strategies": ["balance"],
}


def written(folder: Path, **changes: Any) -> str:
    path = folder / "own.yml"
    path.write_text(yaml.safe_dump(SMALL | changes))
    return str(path)


def test_payload_rate_is_the_limit_less_what_surrounds_a_full_packet() -> None:
    """MTU 9000: 8948 bytes of payload in 9014 bytes that the rate limit counts (Ethernet 14, IPv4 20, TCP 32)."""
    nic = LabSpec(**SMALL).cluster("own").nics[0]
    assert nic.rate == pytest.approx(50e6 / 8)
    assert nic.payload_rate == pytest.approx(50e6 / 8 * 8948 / 9014)


def test_cluster_has_the_ranks_nics_and_rails_of_the_lab() -> None:
    cluster = LabSpec(**SMALL).cluster("own")
    assert (len(cluster.servers), cluster.n_ranks, len(cluster.nics)) == (3, 6, 6)
    assert [nic.rail for nic in cluster.nics] == [0, 1] * 3
    assert cluster.chunk_bytes == 128 * 1024
    assert not cluster.rails_connected


@pytest.mark.parametrize("name", preset_names())
def test_every_case_of_every_preset_has_a_plan(name: str) -> None:
    """A lab that ships can be run to its end: no case fails for want of a plan in the state that it begins with."""
    _, spec = load_lab(name)
    cluster = spec.cluster(name)
    request = Request(spec.collective, default_group(spec.collective, cluster), spec.bytes)
    for case in cases_of(spec):
        view = View(cluster, known_fractions(case.cuts(cluster), len(cluster.nics)))
        plan = case.parsed_strategy().plan(request, view)
        assert plan.schedule.bytes == spec.bytes
        assert "falls back" not in plan.note, f"{case.key}: {plan.note}"


def test_cases_begin_with_the_healthy_lab_and_have_names_of_their_own() -> None:
    for name in preset_names():
        cases = cases_of(load_lab(name)[1])
        assert (cases[0].strategy, cases[0].script) == ("ideal", ())
        assert len({case.file_name for case in cases}) == len({case.key for case in cases}) == len(cases)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"server": 3}, "server: unknown key; servers was meant?"),
        ({"servers": 1}, "servers: Input should be greater than or equal to 2"),
        ({"ranks_per_server": 30}, "90 ranks: a lab has at most 64"),
        ({"bytes": 65537}, "bytes: 65537 is no whole number of float32 elements"),
        ({"burst_kib": 16}, "burst_kib: Input should be greater than or equal to 64"),
        ({"collective": "all_redcue"}, "all_redcue"),
        ({"strategies": ["balanced"]}, "strategy 'balanced': unknown; balance was meant?"),
        ({"nics": [{"count": 2, "rate_mbps": 0}]}, "nics.0.rate_mbps"),
        ({"nics": [{"name": "eth0", "rate_mbps": 9, "backups": ["eth1"]}]}, "no other NIC 'eth1'"),
        ({"nics": [{"name": "a/b", "rate_mbps": 9}]}, "nics.0.name"),
        ({"failures": [{"name": "x", "script": ["server9.nic0@0"]}]}, "'server9.nic0': own has no such component"),
        ({"failures": [{"name": "x", "script": ["server0.nic0=cut@0"]}]}, "no kind 'cut'; write link-down"),
        ({"failures": [{"name": "x", "script": ["server0.nic0@0"]}] * 2}, "two of them have the same name"),
    ],
)
def test_bad_file_is_one_line_that_names_file_and_key(changes: dict[str, Any], told: str, tmp_path: Path) -> None:
    path = written(tmp_path, **changes)
    with pytest.raises(InputError) as error:
        load_lab(path)
    message = str(error.value)
    assert message.startswith(path)
    assert told in message
    assert "\n" not in message


def test_unknown_lab_names_those_that_ship() -> None:
    with pytest.raises(InputError, match=r"no such lab; write a preset \(ci, four, r7525-1to100, six\)"):
        load_lab("r7525")


def test_all_nics_of_a_server_lost_is_a_partition() -> None:
    spec = LabSpec(**SMALL | {"failures": [{"name": "x", "script": ["server0@0"]}]})
    cluster = spec.cluster("own")
    case = cases_of(spec)[-1]
    view = View(cluster, known_fractions(case.cuts(cluster), len(cluster.nics)))
    with pytest.raises(PartitionedError):
        case.parsed_strategy().plan(Request("all_reduce", default_group("all_reduce", cluster), spec.bytes), view)
