"""What limits a hop: headers, MTU, token bucket, host bridge, links inside a server; and that a port is full duplex."""

import numpy as np
import pytest

from r2cc_simai.collectives.binding import binding_of
from r2cc_simai.collectives.schedule import ScheduleBuilder
from r2cc_simai.engine.run import Backend, run_schedule

MIB = 2**20
B = 1e10  # bytes per second of the test cluster's NICs
BOTH = pytest.mark.parametrize("backend", list(Backend))


def nic(gbps=80, **keys):
    """One entry of a server's NICs, without headers unless given."""
    return {"rate_gbps": gbps, "header_bytes": 0, **keys}


@BOTH
@pytest.mark.parametrize("mtu", [1024, 4096])
def test_each_packet_carries_one_header(mtu, backend, simulate, cluster_of):
    """Bytes on the wire = payload * (1 + 62/MTU), and the rate limits the wire: T = D (1 + 62/MTU) / B at n = 2."""
    cluster = cluster_of(server={"nics": [nic(mtu_bytes=mtu, header_bytes=62)]})
    run = simulate(cluster, "ideal", 64 * MIB, backend=backend)
    assert run.bytes.rx_payload == pytest.approx([64 * MIB] * 2)
    assert run.bytes.rx == pytest.approx(run.bytes.rx_payload * (1 + 62 / mtu))
    assert run.elapsed_s == pytest.approx(64 * MIB * (1 + 62 / mtu) / B, rel=1e-6)


@BOTH
def test_unequal_ends_use_the_smaller_mtu(backend, simulate, cluster_of):
    """MTU 1024 against 4096 (nccl PR 2135): both directions move packets of 1024."""
    small = {
        "gpus": {"count": 1},
        "nics": [nic(mtu_bytes=1024, header_bytes=62)],
        "intra_server": {"rate_gbps": 100_000},
    }
    cluster = cluster_of(server={"nics": [nic(mtu_bytes=4096, header_bytes=62)]}, overrides={"server1": small})
    run = simulate(cluster, "ideal", 64 * MIB, backend=backend)
    assert run.bytes.tx == pytest.approx([64 * MIB * (1 + 62 / 1024)] * 2)


@BOTH
def test_a_token_bucket_gives_its_burst_before_the_limit_bites(backend, simulate, cluster_of):
    """Line rate until the bucket is dry, then the rate: T = (W - burst) / rate for W > burst * line / (line - rate)."""
    shaped = nic(gbps=8, line_rate_gbps=80, burst_kb=1000)
    cluster = cluster_of(server={"nics": [shaped]}, transport={"chunk_kib": 16})
    run = simulate(cluster, "ideal", 8_000_000, backend=backend)
    assert run.elapsed_s == pytest.approx((8_000_000 - 1_000_000) / 1e9, rel=5e-3)


@BOTH
def test_what_fits_into_the_bucket_moves_at_line_rate(backend, simulate, cluster_of):
    """W < burst * line / (line - rate): T = W / line."""
    shaped = nic(gbps=8, line_rate_gbps=80, burst_kb=1000)
    run = simulate(cluster_of(server={"nics": [shaped]}), "ideal", 1_000_000, backend=backend)
    assert run.elapsed_s == pytest.approx(1_000_000 / 1e10, rel=5e-3)


def test_a_bucket_can_run_dry_hours_into_a_collective(simulate, cluster_of):
    """Down for 16 h, then one burst: the clock's rounding there is worth more bytes than the bucket's last drop."""
    from r2cc_simai.failures.timeline import Event

    shaped = nic(gbps=8, line_rate_gbps=80, burst_kb=1000)
    cluster = cluster_of(server={"nics": [shaped]}, failover={"detection_ms": 1e9})
    for hours in np.arange(15.0, 17.0, 0.1):
        outage = (Event(0, 0.0), Event(0, 1.0, time_s=3600 * hours))
        run = simulate(cluster, "ideal", 8_000_000, events=outage)
        assert run.elapsed_s - 3600 * hours == pytest.approx(7e-3, abs=1e-6)
        assert run.steps < 20


@BOTH
@pytest.mark.parametrize(("nics", "share_gbps"), [(1, 234), (2, 117)])
def test_a_host_bridge_caps_the_nics_behind_it(nics, share_gbps, backend, simulate, cluster_of):
    """A 400 Gb/s NIC through the host bridge got 234 Gb/s, two such 117 each (nccl issue 2310)."""
    cluster = cluster_of(
        server={
            "gpus": {"count": 1, "numa": 0},
            "nics": [nic(400, count=nics, numa=1)],
            "host_bridge_gbps": 234,
        }
    )
    size = 64 * MIB
    run = simulate(cluster, "ideal", size, backend=backend)
    per_nic = run.bytes.rx_payload / run.elapsed_s
    assert per_nic == pytest.approx([share_gbps * 1e9 / 8] * (2 * nics), rel=1e-2)


@BOTH
def test_a_nic_on_the_gpus_own_node_does_not_cross_the_bridge(backend, simulate, cluster_of):
    """One NIC near (400), one far (234): only the far one is capped; T is the far one's half."""
    cluster = cluster_of(
        server={
            "gpus": {"count": 1, "numa": 0},
            "nics": [nic(400, numa=0), nic(400, numa=1)],
            "host_bridge_gbps": 234,
        }
    )
    run = simulate(cluster, "ideal", 64 * MIB, backend=backend)
    assert run.elapsed_s == pytest.approx(32 * MIB / (234e9 / 8), rel=1e-2)
    near_end, far_end = run.pass_end_s
    assert near_end == pytest.approx(32 * MIB / 50e9, rel=1e-2)
    assert far_end == run.elapsed_s


@BOTH
def test_the_pcie_slot_caps_a_nic(backend, simulate, cluster_of):
    """`pcie_gbps` below the NIC's rate is the rate that counts."""
    cluster = cluster_of(server={"nics": [nic(400, pcie_gbps=100)]})
    run = simulate(cluster, "ideal", 64 * MIB, backend=backend)
    assert run.elapsed_s == pytest.approx(64 * MIB / 12.5e9, rel=1e-6)


@BOTH
def test_links_inside_a_server_cap_the_ring(backend, simulate, cluster_of):
    """2 servers x 2 GPUs, links of 20 Gb/s below the NICs' 80: 2(p-1)/p D / link with p = 4."""
    cluster = cluster_of(gpus=2, server={"intra_server": {"rate_gbps": 20}})
    run = simulate(cluster, "ideal", 64 * MIB, backend=backend)
    assert run.elapsed_s == pytest.approx(1.5 * 64 * MIB / 2.5e9, rel=1e-3)


def two_chains(size, same_direction):
    """Two channels of one hop each, 0 -> 1 and either 0 -> 1 again or 1 -> 0, on half the buffer each."""
    builder = ScheduleBuilder(n_ranks=2, bytes=size, chunk_bytes=MIB // 8)
    ends = [(0, 1), (0, 1) if same_direction else (1, 0)]
    rows = []
    for channel, (a, b) in enumerate(ends):
        builder.new_channel()
        lo = channel * size // 2
        builder.chain(channel, builder.route([a, b]), lo, lo + size // 2, 0, 1)
        rows.append((channel, a, b, a, b, 1.0))
    return builder.build(), binding_of(rows)


@BOTH
@pytest.mark.parametrize(("same_direction", "halves"), [(True, 2), (False, 1)])
def test_a_nic_is_full_duplex(same_direction, halves, backend, cluster_of):
    """D/2 each way takes D/(2B); D/2 twice the same way takes D/B."""
    run = run_schedule(cluster_of(), *two_chains(64 * MIB, same_direction), backend=backend)
    assert run.elapsed_s == pytest.approx(halves * 32 * MIB / B, rel=1e-6)


@BOTH
def test_shares_of_a_hop_use_several_nics_at_once(backend, cluster_of):
    """A hop bound 3:1 to two NICs of equal rate: T = 3/4 D / B, payload 3:1."""
    builder = ScheduleBuilder(n_ranks=2, bytes=64 * MIB, chunk_bytes=MIB // 8)
    builder.chain(builder.new_channel(), builder.route([0, 1]), 0, 64 * MIB, 0, 1)
    binding = binding_of([(0, 0, 1, 0, 2, 0.75), (0, 0, 1, 1, 3, 0.25)])
    run = run_schedule(cluster_of(nics=2), builder.build(), binding, backend=backend)
    assert run.bytes.tx_payload == pytest.approx([48 * MIB, 16 * MIB, 0, 0], rel=0.01)
    assert run.elapsed_s == pytest.approx(48 * MIB / B, rel=0.01)
