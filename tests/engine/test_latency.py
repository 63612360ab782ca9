"""Where latency shows: steps of a ring, the window of a connection, the low-latency protocol."""

import pytest

from r2cc_simai.collectives.binding import binding_of
from r2cc_simai.collectives.schedule import ScheduleBuilder
from r2cc_simai.engine.run import Backend, run_schedule

KIB = 1024
B = 1e10
BOTH = pytest.mark.parametrize("backend", list(Backend))


@BOTH
@pytest.mark.parametrize("n", [2, 3, 8])
@pytest.mark.parametrize("size", [1, 48 * KIB, 480 * KIB])
def test_a_small_ring_pays_every_step(n, size, backend, simulate, cluster_of):
    """One chunk a section: T = base + 2(n-1) * (D/n / B + step latency)."""
    cluster = cluster_of(servers=n, transport={"base_latency_us": 10, "step_latency_us": 5, "algorithms": ["ring"]})
    run = simulate(cluster, "ideal", size, backend=backend)
    # A section may be a byte longer than D/n.
    assert run.elapsed_s == pytest.approx(10e-6 + 2 * (n - 1) * (size / n / B + 5e-6), abs=2 * n / B)


@BOTH
def test_hops_inside_a_server_have_their_own_latency(backend, simulate, cluster_of):
    """2 servers x 2 GPUs, 1 byte a section: 6 hops, 3 inside a server (1 us) and 3 between (5 us): 18 us."""
    cluster = cluster_of(
        gpus=2,
        server={"intra_server": {"rate_gbps": 100_000, "latency_us": 1}},
        transport={"step_latency_us": 5, "algorithms": ["ring"]},
    )
    run = simulate(cluster, "ideal", 4, backend=backend)
    assert run.elapsed_s == pytest.approx(18e-6, rel=1e-3)


@BOTH
@pytest.mark.parametrize("window", [1, 2, 4])
def test_a_window_smaller_than_the_round_trip_caps_the_rate(window, backend, cluster_of):
    """W chunks a round trip: rate = W * chunk / (chunk/B + 2 * latency), the acknowledgement travels back too."""
    chunk, chunks = 100_000, 400
    cluster = cluster_of(transport={"step_latency_us": 100, "window_chunks": window})
    builder = ScheduleBuilder(n_ranks=2, bytes=chunk * chunks, chunk_bytes=chunk)
    builder.chain(builder.new_channel(), builder.route([0, 1]), 0, chunk * chunks, 0, 1)
    run = run_schedule(cluster, builder.build(), binding_of([(0, 0, 1, 0, 1, 1.0)]), backend=backend)
    rate = window * chunk / (chunk / B + 200e-6)
    assert run.elapsed_s == pytest.approx(chunk * chunks / rate, rel=0.02)


@BOTH
@pytest.mark.parametrize("window", [0, 32])
def test_a_wide_window_hides_the_latency_of_a_long_transfer(window, backend, cluster_of):
    """Without a limit (0), or with W * chunk above rate * round trip: T = bytes/B + one latency."""
    chunk, chunks = 100_000, 400
    cluster = cluster_of(transport={"step_latency_us": 100, "window_chunks": window})
    builder = ScheduleBuilder(n_ranks=2, bytes=chunk * chunks, chunk_bytes=chunk)
    builder.chain(builder.new_channel(), builder.route([0, 1]), 0, chunk * chunks, 0, 1)
    run = run_schedule(cluster, builder.build(), binding_of([(0, 0, 1, 0, 1, 1.0)]), backend=backend)
    assert run.elapsed_s == pytest.approx(chunk * chunks / B + 100e-6, rel=1e-3)


@BOTH
def test_a_chain_is_filled_once_and_then_streams(backend, cluster_of):
    """h hops, K chunks of c bytes: T = (K + h - 1) * c/B + h * latency."""
    chunk, chunks, hops = 100_000, 50, 5
    cluster = cluster_of(servers=hops + 1, transport={"step_latency_us": 5})
    builder = ScheduleBuilder(n_ranks=hops + 1, bytes=chunk * chunks, chunk_bytes=chunk)
    builder.chain(builder.new_channel(), builder.route(range(hops + 1)), 0, chunk * chunks, hops, 0)
    binding = binding_of([(0, a, a + 1, a, a + 1, 1.0) for a in range(hops)])
    run = run_schedule(cluster, builder.build(), binding, backend=backend)
    assert run.elapsed_s == pytest.approx((chunks + hops - 1) * chunk / B + hops * 5e-6, rel=1e-3)


@BOTH
def test_the_low_latency_protocol_sends_twice_the_bytes_below_its_threshold(backend, simulate, cluster_of):
    """A flag with every data word: wire bytes = 2 * payload up to `ll_threshold_kib`, = payload above."""
    cluster = cluster_of(transport={"ll_threshold_kib": 512, "ll_wire_factor": 2})
    at, above = (simulate(cluster, "ideal", size, backend=backend) for size in (512 * KIB, 512 * KIB + 2))
    assert at.bytes.rx == pytest.approx(2 * at.bytes.rx_payload)
    assert above.bytes.rx == pytest.approx(above.bytes.rx_payload)


def test_zero_latency_keeps_rates_headers_bursts_and_chunks(cluster_of):
    """`--zero-latency` removes latencies alone."""
    cluster = cluster_of(
        server={
            "nics": [{"rate_gbps": 8, "line_rate_gbps": 80, "burst_kb": 9}],
            "intra_server": {"rate_gbps": 100, "latency_us": 3},
        },
        transport={"base_latency_us": 1, "step_latency_us": 2, "chunk_kib": 64},
        failover={"detection_ms": 7},
    )
    still = cluster.zero_latency()
    assert still.nics == cluster.nics
    assert still.chunk_bytes == 64 * KIB
    assert still.resume_delay_s == pytest.approx(7e-3)
    transport = still.spec.transport
    assert (transport.base_latency_us, transport.step_latency_us) == (0, 0)
    assert still.spec.server.intra_server.latency_us == 0
