"""`cluster` and `failures`: what there is, with units."""

import re

import pytest

from r2cc_simai.cli.failures import FORMS
from r2cc_simai.cluster.load import load_cluster, preset_names
from r2cc_simai.failures.parse import parse_failures


def test_every_preset_is_listed(cli):
    printed = cli("cluster", "list").out
    assert all(name in printed for name in preset_names())
    assert "rate per NIC (Gb/s)" in printed


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_can_be_shown(cli, name):
    printed = cli("cluster", "show", name).out
    for what in ("rate (Gb/s)", "payload (GB/s)", "MTU (B)", "rail", "NUMA node", "backups", "failure detection"):
        assert what in printed


def test_a_cluster_is_shown_with_its_numbers(cli):
    printed = cli("cluster", "show", "r7525").out
    assert re.search(r"failure detection +970 ms", printed)
    assert "NICs of server0 to server2" in printed
    assert re.search(r"mlx5_0 .* 1024 .* mlx5_2, mlx5_3", printed)


def test_servers_that_differ_are_shown_apart(cli, tmp_path):
    path = tmp_path / "mixed.yml"
    path.write_text(
        "preset: h100\nservers: 3\noverrides:\n  server1:\n    gpus: {count: 8}\n"
        "    nics: [{count: 4, rate_gbps: 100}]\n    intra_server: {rate_gbps: 3600}\n"
    )
    printed = cli("cluster", "show", str(path)).out
    assert "NICs of server0, server2" in printed
    assert "NICs of server1" in printed


@pytest.mark.parametrize(("what", "example", "cluster"), FORMS)
def test_every_listed_form_of_a_failure_works(cli, what, example, cluster):
    printed = cli("failures", "list").out
    assert what in printed
    assert example in printed
    assert parse_failures([example], load_cluster(cluster)).events


def test_a_pattern_is_shown_as_its_events_in_order_of_time(cli):
    ended = cli("failures", "show", "server0.nic[0-1]@0.5..2", "rail2=1/2@1", "--cluster", "h100")
    lines = [line.split() for line in ended.out.splitlines()[3:] if line.strip()]
    assert [(line[0], line[1], line[2]) for line in lines] == [
        ("0.5", "s", "server0.nic0"),
        ("0.5", "s", "server0.nic1"),
        ("1", "s", "server0.nic2"),
        ("1", "s", "server1.nic2"),
        ("2", "s", "server0.nic0"),
        ("2", "s", "server0.nic1"),
    ]
    assert [line[4] for line in lines] == ["down", "down", "50%", "50%", "up", "up"]
    assert "payload rate left (GB/s)" in ended.out


def test_a_failure_by_bytes_is_shown_with_its_count(cli):
    assert "after 601 MiB" in cli("failures", "show", "server0.mlx5_2@bytes:601M").out
