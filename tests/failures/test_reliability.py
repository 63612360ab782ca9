"""Reliability tables: the shipped ones say what was published, a wrong one is named in one line."""

import csv
from pathlib import Path

import pytest

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.errors import InputError
from r2cc_simai.failures.population import population_of
from r2cc_simai.failures.reliability import FailureClass, Kind, load_table, table_names
from r2cc_simai.paths import published_dir


def published() -> dict[str, float]:
    """Value of each quantity of the published reliability figures."""
    with (published_dir() / "reliability.csv").open(newline="") as file:
        return {row["quantity"]: float(row["value"]) for row in csv.DictReader(file)}


def test_llama3_gives_the_published_events_per_gpu_day() -> None:
    """(7 + 35) / (16,384 GPUs * 54 days) = 4.7e-5 network and NIC events per GPU-day, one NIC and one link a GPU."""
    figures, table = published(), load_table("llama3")
    per_gpu_day = sum(86_400 / one.mttf_s for one in table.components.values())
    assert float(f"{per_gpu_day:.1e}") == figures["network and NIC events"]
    gpu_days = figures["gpus observed"] * figures["days observed"]
    counts = {cause: gpu_days * 86_400 / one.mttf_s for cause, one in table.components.items()}
    assert counts["nic"] == pytest.approx(figures["interruptions by NIC"])
    assert counts["switch-or-cable"] == pytest.approx(figures["interruptions by network switch or cable"])


@pytest.mark.parametrize("name", ["alibaba-hpn", "alibaba-hpn-dual-tor"])
def test_alibaba_gives_the_published_percent_per_month(name: str) -> None:
    """MTTF = 730 h / rate per month; 0.057 % of links and 0.051 % of ToRs."""
    figures, table = published(), load_table(name)
    per_month = {cause: 100 * 730 * 3600 / one.mttf_s for cause, one in table.components.items()}
    assert per_month["link"] == pytest.approx(figures["NIC-ToR link failures"])
    assert per_month["tor"] == pytest.approx(figures["ToR crashes"])


def test_every_shipped_table_says_where_it_is_from_and_what_is_assumed() -> None:
    """Repair times are published nowhere, so each table says that they are assumed."""
    assert table_names() == ["alibaba-hpn", "alibaba-hpn-dual-tor", "llama3"]
    for name in table_names():
        table = load_table(name)
        assert table.name == name
        assert table.source
        assert "assumed" in table.assumed


@pytest.mark.parametrize(
    ("cluster", "kind", "count", "last"),
    [
        ("h100x4", "nic", 32, "server3.nic7"),
        ("h100x4", "cable", 32, "server3.nic7.cable"),
        ("h100x4", "port", 32, "server3.nic7.port"),
        ("h100x4", "server", 4, "server3"),
        ("h100x4", "rail", 8, "rail7"),
        ("hpn-h800", "tor", 8, "rail7"),
        ("a100-leaf-spine", "tor", 16, "leaf15"),
        ("a100-leaf-spine", "leaf", 16, "leaf15"),
    ],
)
def test_the_components_of_a_kind(cluster: str, kind: Kind, count: int, last: str) -> None:
    """A ToR is a leaf, or a rail's switch where there is one per rail."""
    found = population_of(load_cluster(cluster), kind)
    assert (found.count, found.name(found.count - 1)) == (count, last)


@pytest.mark.parametrize("kind", ["tor", "leaf"])
def test_switches_that_a_fabric_lacks(kind: Kind) -> None:
    """One switch for all is no ToR: its failure would leave nothing to simulate."""
    with pytest.raises(InputError, match=r"h100x4 has no (ToR|leaf) switches; a fabric of kind leaf-spine"):
        population_of(load_cluster("h100x4"), kind)


def test_states_may_have_shares() -> None:
    """{down: 0.8, 0.5: 0.2}: of ten failures two leave half of the rate."""
    one = FailureClass.model_validate({"component": "nic", "mttf_h": 1, "mttr_h": 1, "state": {"down": 0.8, 0.5: 0.2}})
    assert one.state == ((0.0, 0.8), (0.5, 0.2))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("component: fan", "components.own.component: Input should be 'nic'"),
        ("mttf: 3", "components.own.mttf: unknown key; mttf_h was meant"),
        ("percent_per_month: 1", "components.own: write one of mttf_h, percent_per_month and observed"),
        ("mttr_h: 0", "components.own.mttr_h: Input should be greater than 0"),
        ("mttf_h: .inf", "components.own.mttf_h: Input should be a finite number"),
        ("state: up", "components.own.state: 'up' is no state; write down or the rate that is left"),
        ("state: 1", "components.own.state: 1 is no state"),
        ("state: [down]", "components.own.state: write down, a rate that is left"),
        ("state: {down: 0.5}", "components.own.state: write down, .* with shares of sum 1"),
        ("state: {down: 2, 0.5: -1}", "components.own.state: 2 is no share of the failures"),
        ("repair: lognormal", "components.own: repair: lognormal and repair_sigma belong together"),
        ("repair_sigma: 1", "components.own: repair: lognormal and repair_sigma belong together"),
        ("repair: weekly", "components.own.repair: Input should be 'fixed'"),
        ("parts: 2", "components.own: state: with parts above 1"),
    ],
)
def test_a_wrong_table_is_named(tmp_path: Path, line: str, message: str) -> None:
    """File, key and what is allowed, one line."""
    keys = {"component": "nic", "mttf_h": "1000", "mttr_h": "4", "state": "0.5"}
    key, _, value = line.partition(": ")
    body = "\n".join(f"    {k}: {v}" for k, v in (keys | {key: value}).items())
    file = tmp_path / "own.yml"
    file.write_text(f"name: own\nsource: none\ncomponents:\n  own:\n{body}\n")
    with pytest.raises(InputError, match=message) as caught:
        load_table("own.yml", tmp_path)
    assert str(caught.value).startswith(f"{file}: ")
    assert "\n" not in str(caught.value)


def test_a_table_that_does_not_exist(tmp_path: Path) -> None:
    """The shipped ones are named."""
    with pytest.raises(InputError, match=r"'lama3': no such reliability table; write alibaba-hpn, .*llama3 or a"):
        load_table("lama3")
    with pytest.raises(InputError, match="No such file"):
        load_table("lama3.yml", tmp_path)


def test_a_table_that_changes_is_read_again(tmp_path: Path) -> None:
    """A process that lives long sees the file as it is."""
    file = tmp_path / "own.yml"
    for hours in (1000, 20_000):
        file.write_text(
            f"name: own\nsource: none\ncomponents:\n  own: {{component: nic, mttf_h: {hours}, mttr_h: 4}}\n"
        )
        assert load_table("own.yml", tmp_path).components["own"].mttf_s == hours * 3600
