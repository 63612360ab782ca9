"""Cluster files: what a user may write, and the one line that says what is wrong: file, key, what is allowed."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from r2cc_simai.cluster.load import load_cluster, preset_names
from r2cc_simai.errors import InputError

GOOD: dict[str, Any] = {
    "servers": 2,
    "server": {
        "gpus": {"count": 2, "numa": [0, 1]},
        "nics": [{"count": 2, "rate_gbps": 100, "numa": [0, 1]}],
        "intra_server": {"rate_gbps": 400},
    },
    "fabric": {"kind": "one-switch"},
    "failover": {"detection_ms": 5},
}


def changed(data: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """A copy of `data` with one value set, or removed where it is None."""
    if isinstance(data, list):
        return [changed(v, path[1:], value) if i == path[0] else v for i, v in enumerate(data)]
    copy = dict(data)
    head = path[0]
    if len(path) > 1:
        copy[head] = changed(copy.get(head, {}), path[1:], value)
    elif value is None:
        del copy[head]
    else:
        copy[head] = value
    return copy


def write(folder: Path, data: Any, name: str = "my.yml") -> str:
    """The path of a file that holds `data`."""
    path = folder / name
    path.write_text(data if isinstance(data, str) else yaml.safe_dump(data))
    return str(path)


def test_a_good_file_is_good(tmp_path: Path) -> None:
    """2 servers x 2 GPUs x 2 NICs, named by the file."""
    cluster = load_cluster(write(tmp_path, GOOD))
    assert (cluster.name, cluster.n_ranks, len(cluster.nics)) == ("my", 4, 4)
    assert cluster.nics[3].full_name == "server1.nic1"
    assert cluster.nics[0].rate == 12.5e9
    assert [nic.rail for nic in cluster.nics] == [0, 1, 0, 1]
    assert cluster.resume_delay_s == pytest.approx(5e-3)


NIC = ("server", "nics", 0)
LEAF_SPINE = {"kind": "leaf-spine", "servers_per_leaf": 2}
PROBES = {"mechanism": "probes", "interval_ms": 1, "timeout_ms": 1}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("severs",), 2, "severs: unknown key; servers was meant.*allowed: .*fabric.*servers"),
        ((*NIC, "rate"), 100, "server.nics.0.rate: unknown key; rate_gbps was meant"),  # a unit is missing
        (("transport",), {"step_latency": 5}, "transport.step_latency: unknown key; step_latency_us was meant"),
        (("failover", "detect"), 1, "failover.detect: unknown key; detection.* was meant"),
        (("failover", "detection"), 1, "failover.detection: .*dictionary"),
        (("failover",), {}, "failover: write either detection_ms or detection"),
        (("failover", "detection"), PROBES, "failover: write either detection_ms or detection"),
        (("failover",), {"detection": {"mechanism": "probe"}}, "failover.detection: .*'retry-timeout'.*'probes'"),
        (
            ("failover",),
            {"detection": {"mechanism": "probes", "timeout_ms": 1}},
            "failover.detection.interval_ms",
        ),
        (
            ("failover",),
            {"detection": {**PROBES, "interval": 1}},
            r"failover.detection.interval: unknown key; interval_ms was meant\? \(allowed: interval_ms, mechanism",
        ),
        (("failover",), {"detection": {**PROBES, "misses": 0}}, "failover.detection.misses: .*equal to 1, got 0"),
        (("server", "host_bridge"), 1, "server.host_bridge: unknown key; host_bridge_gbps was meant"),
        (("fabric",), None, "fabric: missing"),
        ((*NIC, "rate_gbps"), None, "server.nics.0.rate_gbps: missing"),
        ((*NIC, "rate_gbps"), -100, "server.nics.0.rate_gbps: .*greater than 0, got -100"),
        ((*NIC, "rate_gbps"), 0, "server.nics.0.rate_gbps: .*greater than 0, got 0"),
        ((*NIC, "rate_gbps"), float("nan"), "server.nics.0.rate_gbps"),
        ((*NIC, "rate_gbps"), float("inf"), "server.nics.0.rate_gbps"),
        ((*NIC, "rate_gbps"), "fast", "server.nics.0.rate_gbps: .*got 'fast'"),
        ((*NIC, "line_rate_gbps"), 50, "server.nics.0: line_rate_gbps must not be below rate_gbps"),
        ((*NIC, "numa"), [0, 1, 1], "server.nics.0: numa: 3 entries for 2 NICs"),
        ((*NIC, "name"), "eth0", "server.nics.0: a NIC with a name cannot have a count above 1"),
        ((*NIC, "backups"), ["nic7"], r"server.nics.nic0.backups: no other NIC 'nic7' \(nic1\)"),
        ((*NIC, "backups"), ["nic0"], r"server.nics.nic0.backups: no other NIC 'nic0' \(nic1\)"),
        ((*NIC, "mtu_bytes"), 10, "server.nics.0.mtu_bytes: .*256"),
        (("server", "nics"), [], "server.nics: .*at least 1"),
        (("server", "gpus", "numa"), [0], "server.gpus: numa: 1 entries for 2 GPUs"),
        (("server", "gpus", "count"), 0, "server.gpus.count: .*greater than or equal to 1, got 0"),
        (("fabric", "kind"), "torus", "fabric.kind: .*'switch-per-rail' or 'leaf-spine', got 'torus'"),
        (("fabric", "kind"), "leaf-spine", "fabric: leaf-spine needs servers_per_leaf"),
        (("fabric", "oversubscription"), 4, "fabric: oversubscription belongs to kind leaf-spine, not to one-switch"),
        (("fabric",), LEAF_SPINE | {"oversubscription": 0}, "fabric.oversubscription: .*greater than 0"),
        (("fabric",), LEAF_SPINE | {"servers_per_leaf": 0}, "fabric.servers_per_leaf: .*greater than or equal to 1"),
        (("servers",), 0, "servers: .*greater than or equal to 1, got 0"),
        (("overrides",), {"server2": GOOD["server"]}, r"overrides.server2: no such server \(server0 to server1\)"),
        (("failover", "backups_per_nic"), 0, "failover.backups_per_nic: "),
        (("transport",), {"window_chunks": -1}, "transport.window_chunks: "),
    ],
)
def test_a_wrong_file_gets_one_line(path: tuple[str | int, ...], value: Any, message: str, tmp_path: Path) -> None:
    """`FILE: KEY: what is wrong`."""
    name = write(tmp_path, changed(GOOD, path, value))
    with pytest.raises(InputError, match=f"^{name}: {message}") as caught:
        load_cluster(name)
    assert "\n" not in str(caught.value)


def test_two_nics_with_one_name_are_refused(tmp_path: Path) -> None:
    """Names are how failures find them."""
    nics = [{"name": "eth0", "rate_gbps": 1}, {"name": "eth0", "rate_gbps": 1}]
    with pytest.raises(InputError, match="two NICs have the same name"):
        load_cluster(write(tmp_path, changed(GOOD, ("server", "nics"), nics)))


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "a mapping"), ("- 1\n- 2\n", "a mapping"), ("servers: [1\n", "line 2: not YAML"), ("a: b: c\n", "not YAML")],
)
def test_what_is_no_yaml_mapping_is_refused(text: str, message: str, tmp_path: Path) -> None:
    """With the file and, where there is one, the line."""
    name = write(tmp_path, text)
    with pytest.raises(InputError, match=f"^{name}:.*{message}"):
        load_cluster(name)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """Named, with the system's reason."""
    with pytest.raises(InputError, match=r"nowhere\.yml: No such file"):
        load_cluster(str(tmp_path / "nowhere.yml"))


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    """Not a traceback about encodings."""
    path = tmp_path / "binary.yml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not a text file"):
        load_cluster(str(path))


def test_a_file_may_start_from_a_preset(tmp_path: Path) -> None:
    """Its own keys win, section by section; the rest is the preset's."""
    data: dict[str, Any] = {"preset": "h100", "servers": 64, "failover": {"detection_ms": 9}}
    cluster = load_cluster(write(tmp_path, data))
    h100 = load_cluster("h100")
    assert len(cluster.servers) == 64
    assert cluster.spec.failover.detection_ms == 9
    assert cluster.spec.failover.migrate_ms == h100.spec.failover.migrate_ms
    assert cluster.spec.server == h100.spec.server


def test_a_preset_that_does_not_exist(tmp_path: Path) -> None:
    """The file, the key and the presets that there are."""
    name = write(tmp_path, {"preset": "b300"})
    with pytest.raises(InputError, match=f"^{name}: preset: no preset 'b300' .*h100"):
        load_cluster(name)


def test_single_servers_may_differ(tmp_path: Path) -> None:
    """`overrides` replaces the description of one server: 4 GPUs and one NIC on server 1."""
    other = {"gpus": {"count": 4}, "nics": [{"rate_gbps": 50}], "intra_server": {"rate_gbps": 100}}
    cluster = load_cluster(write(tmp_path, changed(GOOD, ("overrides",), {"server1": other})))
    assert [len(s.ranks) for s in cluster.servers] == [2, 4]
    assert [len(s.nics) for s in cluster.servers] == [2, 1]
    assert cluster.servers[1].ranks == (2, 3, 4, 5)
    assert cluster.nics[2].full_name == "server1.nic0"


@pytest.mark.parametrize(
    ("name", "servers", "ranks", "nics"),
    [
        ("r7525", 3, 6, 9),
        ("h100", 2, 16, 16),
        ("h100x16", 16, 128, 128),
        ("uniformx5", 5, 5, 5),
        ("hpn-h800x2", 2, 16, 16),
    ],
)
def test_presets_and_presets_of_n_servers(name: str, servers: int, ranks: int, nics: int) -> None:
    """`NAMExN` means N servers."""
    cluster = load_cluster(name)
    assert (cluster.name, len(cluster.servers), cluster.n_ranks, len(cluster.nics)) == (name, servers, ranks, nics)


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_loads(name: str) -> None:
    """And says what it is."""
    assert load_cluster(name).spec.description


def test_the_r7525_is_the_measured_machine() -> None:
    """3 servers, 2 GPUs on different NUMA nodes, NICs mlx5_0 (NUMA 0, MTU 1024), mlx5_2 and mlx5_3 (NUMA 1, 4096)."""
    cluster = load_cluster("r7525")
    assert [(n.name, n.numa, n.mtu_bytes) for n in cluster.nics[:3]] == [
        ("mlx5_0", 0, 1024),
        ("mlx5_2", 1, 4096),
        ("mlx5_3", 1, 4096),
    ]
    assert cluster.servers[0].gpu_numa == (0, 1)
    # Hot repair moved mlx5_2's traffic to mlx5_0 (log 01).
    assert cluster.nics[cluster.nic_by_name["server0.mlx5_2"]].backups[0] == cluster.nic_by_name["server0.mlx5_0"]


@pytest.mark.parametrize("name", ["h100x0", "nowhere", "h100x", "xh100"])
def test_a_name_that_is_no_cluster(name: str) -> None:
    """What may be written, or the number of servers that is wrong."""
    with pytest.raises(InputError, match=r"(h100x0: servers: )|(no such cluster; write a preset)"):
        load_cluster(name)


def test_backups_are_the_nearest_nics_first() -> None:
    """8 NICs, four a NUMA node: nic1 goes to 2, 3, 0 of its own node, then to 4..7."""
    nics = load_cluster("h100").nics
    assert nics[1].backups == (2, 3, 0, 4, 5, 6, 7)
    assert nics[15].backups == (12, 13, 14, 8, 9, 10, 11)


def test_a_pcie_slot_limits_rate_and_line_rate(tmp_path: Path) -> None:
    """min(rate, slot), and a burst cannot exceed the slot either."""
    nic = {"rate_gbps": 100, "line_rate_gbps": 200, "pcie_gbps": 80, "burst_kb": 10}
    cluster = load_cluster(write(tmp_path, changed(GOOD, ("server", "nics"), [nic])))
    assert (cluster.nics[0].rate, cluster.nics[0].line_rate) == (10e9, 10e9)


@pytest.mark.parametrize(
    ("preset", "own", "delay_s"),
    [
        ("h100", {"detection": {"misses": 4}}, 3.6e-3),
        ("h100", {"detection": {"mechanism": "retry-timeout", "timeout_ms": 50}}, 0.4006),
        ("h100", {"detection_ms": 9}, 9.6e-3),
        ("h100", {"notify_ms": 1.1}, 3.6e-3),
        ("uniform", {"detection": PROBES}, 4.15e-3),
    ],
)
def test_a_file_replaces_the_detection_of_its_preset(
    preset: str, own: dict[str, Any], delay_s: float, tmp_path: Path
) -> None:
    """A fixed delay or another mechanism replaces the preset's; keys of the same mechanism are merged."""
    cluster = load_cluster(write(tmp_path, {"preset": preset, "failover": own}))
    assert cluster.resume_delay_s == pytest.approx(delay_s)


def test_link_events_and_their_fallback(tmp_path: Path) -> None:
    """A NIC's own server knows in `event_ms`."""
    link = {"mechanism": "link-event", "event_ms": 3, "timeout_ms": 50}
    cluster = load_cluster(write(tmp_path, changed(GOOD, ("failover",), {"detection": link, "notify_ms": 1})))
    assert cluster.resume_delay_s == pytest.approx(4e-3)


def test_unequal_mtus_on_a_rail_are_remarked(tmp_path):
    """nccl PR 2135: MTU 1024 against 4096 is no hang and no error: the smaller one counts, and the user is told."""
    path = tmp_path / "mixed.yml"
    path.write_text(
        "preset: uniform\nservers: 2\noverrides:\n  server1:\n    gpus: {count: 1}\n"
        "    nics: [{rate_gbps: 400, mtu_bytes: 1024}]\n    intra_server: {rate_gbps: 3600}\n"
    )
    remarks = load_cluster(str(path)).remarks
    assert remarks == ["rail 0 of mixed: NICs with MTU 1024 and 4096 bytes; their connections use the smaller"]
    assert load_cluster("h100").remarks == []
