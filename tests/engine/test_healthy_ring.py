"""The fault-free ring on both backends: T0 = 2(p-1)/p * D/B (R2CC paper, arXiv 2512.25059)."""

import numpy as np
import pytest

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.engine.run import Backend

GIB = 2**30
BOTH = pytest.mark.parametrize("backend", list(Backend))


@BOTH
@pytest.mark.parametrize("n", range(2, 18))
def test_ring_of_equal_members(n, backend, simulate):
    """One GPU and one NIC of B a server: T0 = 2(n-1)/n * D/B."""
    cluster = load_cluster(f"uniformx{n}").zero_latency()
    run = simulate(cluster, "ideal", GIB, backend=backend)
    assert run.elapsed_s == pytest.approx(2 * (n - 1) / n * GIB / 50e9, rel=1e-6)


@BOTH
@pytest.mark.parametrize(("name", "gbps"), [("a100x2", 200), ("h100x4", 400)])
def test_servers_with_a_nic_per_gpu(name, gbps, backend, simulate):
    """p = 8n ranks, 8 NICs: 2(p-1)/p of the buffer crosses each server's border, 1/8 of it on each NIC.

    The payload rate of a NIC is gbps/8 / (1 + 62/4096): 62 bytes of headers on each packet of 4096.
    """
    cluster = load_cluster(name).zero_latency()
    p = cluster.n_ranks
    rate = 8 * gbps * 1e9 / 8 / (1 + 62 / 4096)
    run = simulate(cluster, "ideal", 4 * GIB, backend=backend)
    assert run.elapsed_s == pytest.approx(2 * (p - 1) / p * 4 * GIB / rate, rel=1e-3)


@BOTH
def test_links_of_the_h800_are_slower_than_its_nics(backend, simulate):
    """8 NICs of 50 GB/s ask for 400 GB/s, a GPU's links carry 200 GB/s.

    A GPU is the last of its server, and so uses a NIC, on one of the 8 channels; the other 7 take its link:
    T = 7/8 * 2(p-1)/p * D / 200 GB/s.
    """
    cluster = load_cluster("hpn-h800x3").zero_latency()
    p = cluster.n_ranks
    run = simulate(cluster, "ideal", 4 * GIB, backend=backend)
    assert run.elapsed_s == pytest.approx(7 / 8 * 2 * (p - 1) / p * 4 * GIB / 200e9, rel=2e-3)


@BOTH
def test_the_slowest_nic_sets_the_time_on_the_r7525(backend, simulate):
    """Channels split the buffer evenly over three NICs: 2(6-1)/6 * 4 GiB / 3 = 2275.6 MiB on each.

    mlx5_0 has an MTU of 1024: T = (2275.6 MiB * (1 + 62/1024) - burst) / rate. Measured: 2.028 s (log 04).
    """
    cluster = load_cluster("r7525").zero_latency()
    mlx5_0 = cluster.nics[0]
    payload = 2 * 5 / 6 * 4 * GIB / 3
    run = simulate(cluster, "ideal", 4 * GIB, backend=backend)
    expected = (payload * (1 + 62 / 1024) - mlx5_0.burst_bytes) / mlx5_0.rate
    assert run.elapsed_s == pytest.approx(expected, rel=1e-4)
    assert run.elapsed_s == pytest.approx(2.028, rel=0.01)


@BOTH
def test_bytes_of_a_healthy_iteration_on_the_r7525(backend, simulate):
    """Measured counters per NIC: 2406 MiB on mlx5_0 (MTU 1024), 2312 MiB on the others (MTU 4096), within 1%."""
    run = simulate(load_cluster("r7525"), "ideal", 4 * GIB, backend=backend)
    measured = np.tile([2406, 2312, 2312], 3) * 2.0**20
    assert run.bytes.rx == pytest.approx(measured, rel=0.01)
    assert run.bytes.tx == pytest.approx(measured, rel=0.01)


@BOTH
def test_each_rank_of_a_ring_passes_on_the_whole_but_its_own_part(backend, simulate, cluster_of):
    """Payload per NIC and direction: 2(n-1) sections of D/n."""
    n, size = 5, 5 * 2**22
    run = simulate(cluster_of(servers=n), "ideal", size, backend=backend)
    assert run.bytes.tx_payload == pytest.approx([2 * (n - 1) * size / n] * n)
    assert run.bytes.rx_payload == pytest.approx([2 * (n - 1) * size / n] * n)


@BOTH
@pytest.mark.parametrize("size", [1_000_003, 3, 2, 1])
def test_sizes_that_do_not_divide(size, backend, simulate, cluster_of):
    """3 ranks: every section makes 2(3-1) hops, so 4 D payload bytes cross in all, to the byte."""
    run = simulate(cluster_of(servers=3), "ideal", size, backend=backend)
    assert run.bytes.tx_payload.sum() == pytest.approx(4 * size, abs=1e-3)
    assert run.bytes.rx_payload.sum() == pytest.approx(4 * size, abs=1e-3)


@BOTH
@pytest.mark.parametrize("strategy", ["ideal", "nccl", "hot-repair", "balance", "r2cc-allreduce"])
def test_zero_bytes_end_after_the_base_latency(strategy, backend, simulate, cluster_of):
    """Nothing moves; the next thing in the job goes on."""
    cluster = cluster_of(servers=3, transport={"base_latency_us": 10, "step_latency_us": 5})
    run = simulate(cluster, strategy, 0, backend=backend)
    assert run.elapsed_s == pytest.approx(10e-6)
    assert run.bytes.tx.sum() == 0
    assert not np.isnan(run.pass_end_s).any()


@BOTH
def test_the_same_run_twice_is_the_same_to_the_bit(backend, simulate):
    """24 ranks on 3 servers under a failure (SimAI issue 142: times differed from run to run)."""
    from r2cc_simai.failures.timeline import Event

    cluster = load_cluster("h100x3")
    events = (Event(3, 0.0, time_s=0.002), Event(9, 0.5, time_s=0.003))
    one, two = (simulate(cluster, "hot-repair", GIB, events=events, backend=backend) for _ in range(2))
    assert (one.elapsed_s, one.steps) == (two.elapsed_s, two.steps)
    for column in ("rx", "tx", "rx_payload", "tx_payload"):
        assert getattr(one.bytes, column).tobytes() == getattr(two.bytes, column).tobytes()
    assert one.pass_end_s.tobytes() == two.pass_end_s.tobytes()
