"""Every kind of failure that R2CC survives (arXiv 2512.25059, Table 2), for real: bytes over TCP, real cuts.

What is asserted is how many streams moved, over which NICs and why, not that all is well at the end: a run in which
nothing broke ends well, too. Every element of every result is checked by the ranks.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from r2cc_simai.errors import PartitionedError
from r2cc_simai.lab.namespaces import why_not
from r2cc_simai.lab.record import CaseRecord, Iteration
from r2cc_simai.lab.runner import Lab, running_lab
from r2cc_simai.lab.spec import LabCase, LabSpec

pytestmark = pytest.mark.skipif(bool(why_not()), reason=f"no lab here: {why_not()}")

# Two channels of one ring each: three hops a channel between servers, of which two touch server 1.
SPEC = LabSpec(
    servers=3,
    ranks_per_server=1,
    nics=[{"count": 2, "rate_mbps": 100}],
    bytes=6_000_000,
    ack_timeout_ms=150,
    strategies=["balance"],
    repetitions=1,
)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with running_lab(SPEC, "kinds") as running:
        yield running


def through(lab: Lab, *script: str, strategy: str = "balance") -> CaseRecord:
    record = lab.run(LabCase(strategy, " ".join(script), script))
    assert all(one.wrong_elements == 0 for one in record.iterations)
    return record


def moves(iteration: Iteration) -> set[tuple[Any, ...]]:
    """(channel, source, destination, NICs before, NICs after) of every stream that moved."""
    return {
        (r["channel"], r["src"], r["dst"], tuple(r["old_nics"]), tuple(r["new_nics"])) for r in iteration.recoveries
    }


# NIC numbers: server s has 2 s and 2 s + 1. Both streams of server1.nic1 (3) go to the other rail.
BOTH_HOPS = {((0, 1), (1, 3), (0, 2)), ((1, 2), (3, 5), (2, 4))}


def hops(iteration: Iteration) -> set[tuple[Any, ...]]:
    return {((src, dst), old, new) for _, src, dst, old, new in moves(iteration)}


@pytest.mark.parametrize(
    ("kind", "causes"),
    [
        ("link-down", {"link-event", "notice", "reset"}),  # NIC or port
        ("port-down", {"link-event", "notice", "reset"}),  # cable or ToR port
        ("silent", {"ack-timeout", "notice"}),  # a fault inside the switches, which takes down no link
    ],
)
def test_both_streams_of_a_lost_nic_move_to_its_backup_and_the_next_plan_leaves_it_out(
    kind: str, causes: set[str], lab: Lab
) -> None:
    record = through(lab, f"server1.nic1={kind}@0.1")
    hit, after = record.iterations
    assert (hit.role, after.role) == ("cut", "after")
    assert hops(hit) == BOTH_HOPS
    assert len(hit.recoveries) == 2
    assert {r["cause"] for r in hit.recoveries} <= causes
    assert hit.false_alarms == 0
    assert after.recoveries == ()
    assert sum(after.wire_bytes["server1.nic1"]) < 2000  # neighbour solicitations at most


def test_transport_error_moves_the_streams_though_the_link_is_fine(lab: Lab) -> None:
    """A QP-level error: the connections end, the NIC works, and the next collective uses it again."""
    hit, after = through(lab, "server1.nic1=reset@0.1").iterations
    assert hops(hit) == BOTH_HOPS
    assert {r["cause"] for r in hit.recoveries} <= {"reset", "notice"}
    assert after.recoveries == ()
    assert after.wire_bytes["server1.nic1"][0] > SPEC.bytes / 2


def test_flap_moves_the_streams_once(lab: Lab) -> None:
    """Down for 60 ms, three times: streams that have moved stay where they are until the next plan."""
    record = through(lab, "server1.nic1=flap:0.12,0.5,3@0.05")
    assert hops(record.iterations[0]) == BOTH_HOPS
    assert len(record.iterations[0].recoveries) == 2
    assert record.iterations[-1].recoveries == ()
    assert record.iterations[-1].wire_bytes["server1.nic1"][0] > SPEC.bytes / 2


def test_jitter_alone_is_no_failure(lab: Lab) -> None:
    """A rate that drops and comes back breaks no connection: pure jitter does not show as a transport error."""
    record = through(lab, "server1.nic1=rate:0.6@0.1..+0.2")
    assert all(one.recoveries == () and one.false_alarms == 0 for one in record.iterations)


def test_one_nic_down_for_a_while_and_then_another(lab: Lab) -> None:
    """`ip link set down; sleep; up` on one NIC, then on one of another server (kvcache-ai/Mooncake#2960)."""
    record = through(lab, "server1.nic1@0.1..+0.3", "server0.nic0@0.9..+0.3")
    assert record.iterations[0].role == "cut"
    assert hops(record.iterations[0]) == BOTH_HOPS
    moved = [one for one in record.iterations[1:] if one.recoveries]
    assert len(moved) == 1
    assert {pair for pair, _, _ in hops(moved[0])} == {(0, 1), (2, 0)}
    assert record.iterations[-1].recoveries == ()


def test_hot_repair_keeps_the_schedule_on_the_backup(lab: Lab) -> None:
    """After the cut the backup carries twice its own bytes; the healthy shares stay what they were."""
    hit, after = through(lab, "server1.nic1@0.1", strategy="hot-repair").iterations
    assert len(hit.recoveries) == 2
    whole = 2 * (3 - 1) / 3 * SPEC.bytes * (1 + 66 / 8948)
    assert after.wire_bytes["server1.nic0"][0] == pytest.approx(whole, rel=0.01)
    assert after.wire_bytes["server1.nic0"][1] == pytest.approx(whole, rel=0.01)


def test_the_last_nic_of_a_server_lost_is_a_partition() -> None:
    """Both NICs of a server go down: no path is left, and the run ends with exit code 3 and the reason."""
    with running_lab(SPEC, "partition") as lab, pytest.raises(PartitionedError) as error:
        through(lab, "server1.nic0@0.1", "server1.nic1@0.1")
    assert "no connection is left" in str(error.value) or "no progress" in str(error.value)
    assert error.value.exit_code == 3
