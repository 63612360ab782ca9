"""MSCCL XML: its text, what it can express, and that it is proven in place and out of place."""

import xml.etree.ElementTree as ET

import pytest

from r2cc_simai.collectives.schedule import ScheduleBuilder
from r2cc_simai.errors import InputError, MismatchError
from r2cc_simai.exporters.msccl import msccl_xml
from r2cc_simai.exporters.msccl_limits import UnevenError
from r2cc_simai.exporters.msccl_reader import prove_msccl, read_msccl
from r2cc_simai.exporters.sizes import nearest_even_size
from r2cc_simai.exporters.verify import find_fault

MIB = 2**20
BOTH = ["in place", "out of place"]


def ring(ranks, size):
    builder = ScheduleBuilder(n_ranks=ranks, bytes=size, chunk_bytes=MIB)
    builder.ring(0, builder.route(list(range(ranks))), 0, size)
    return builder.build()


def test_the_program_of_rank_0_in_a_ring_of_three():
    """One thread block: send, add and send on, add and send on the sum, take and send on, take."""
    lines = msccl_xml(ring(3, 24 * MIB), "ring of <3>").splitlines()
    assert lines[0] == (
        '<algo name="ring of &lt;3&gt;" proto="Simple" nchannels="1" nchunksperloop="3" ngpus="3" coll="allreduce" '
        'inplace="1" outofplace="1" minBytes="25165824" maxBytes="25165825">'
    )
    assert lines[1:9] == [
        '  <gpu id="0" i_chunks="3" o_chunks="3" s_chunks="0">',
        '    <tb id="0" send="1" recv="2" chan="0">',
        *(
            f'      <step s="{s}" type="{kind}" srcbuf="{src}" srcoff="{at}" dstbuf="{dst}" dstoff="{at}" cnt="1" '
            'depid="-1" deps="-1" hasdep="0"/>'
            for s, kind, src, dst, at in (
                (0, "s", "i", "i", 0),
                (1, "rrcs", "i", "o", 2),
                (2, "rrcs", "i", "o", 1),
                (3, "rcs", "o", "o", 0),
                (4, "r", "o", "o", 2),
            )
        ),
        "    </tb>",
    ]


@pytest.mark.parametrize(
    ("cluster", "strategy", "near"),
    [
        ("r7525", "ideal", 18 * MIB),
        ("r7525", "hot-repair", 18 * MIB),
        ("r7525", "balance", 18 * MIB),
        ("h100x2", "balance", 64 * MIB),
        ("h100x2", "r2cc-allreduce", 64 * MIB),
        *((f"uniformx{n}", strategy, 16 * MIB) for n in range(3, 8) for strategy in ("ideal", "balance")),
        *((f"uniformx{n}", "r2cc-allreduce:k=4", 16 * MIB) for n in (3, 4, 5)),
        ("uniformx4", "optcc:k=2", MIB),
        ("uniformx5", "optcc:k=4,mix=off", MIB),
    ],
)
def test_every_strategy_is_proven_at_the_nearest_even_size(cluster, strategy, near, schedule_for):
    size = nearest_even_size(lambda size: schedule_for(cluster, strategy, size), near)
    assert size is not None
    assert abs(size - near) < 0.2 * near
    text = msccl_xml(schedule_for(cluster, strategy, size), strategy)
    assert prove_msccl(text, "x.xml") == BOTH


def test_a_division_in_proportion_to_unequal_rates_has_no_even_size(schedule_for):
    """The NICs of r7525 differ in MTU, so that the lost fraction of a server is no simple fraction."""
    assert nearest_even_size(lambda size: schedule_for("r7525", "r2cc-allreduce:k=3", size), 18 * MIB) is None


def test_chunks_are_the_largest_of_which_every_section_is_a_whole_number():
    """A ring of 3 over bytes 0..48 beside one of 2 over 48..80: sections of 16, and chunks of 16."""
    builder = ScheduleBuilder(n_ranks=3, bytes=80, chunk_bytes=80)
    builder.ring(0, builder.route([0, 1, 2]), 0, 48)
    builder.ring(1, builder.route([0, 1]), 48, 80)
    top = ET.fromstring(msccl_xml(builder.build(), "two rings"))
    assert top.get("nchunksperloop") == "5"


def test_a_wait_for_two_thread_blocks_takes_a_nop():
    """Rank 1 takes bytes from ranks 0 and 2 and hands both on at once: its send waits for two thread blocks."""
    builder = ScheduleBuilder(n_ranks=4, bytes=32, chunk_bytes=32)
    first = [
        builder.chain(0, builder.route([0, 1]), 0, 16, 0, 1),
        builder.chain(1, builder.route([2, 1]), 16, 32, 0, 1),
    ]
    builder.chain(2, builder.route([1, 3]), 0, 32, 0, 1, after=first)
    text = msccl_xml(builder.build(), "gather")
    block = ET.fromstring(text)[1][2]
    assert [(step.get("type"), step.get("depid"), step.get("deps")) for step in block] == [
        ("nop", "0", "0"),
        ("s", "1", "0"),
    ]
    assert [block[0].get("hasdep") for block in ET.fromstring(text)[1][:2]] == ["1", "1"]
    program = read_msccl(text, "x.xml", in_place=True)

    def gathered(rank, lo, _):
        """Ranks 1 and 3 end with the first half of rank 0 and the second of rank 2."""
        return (1 << 0 if lo < 16 else 1 << 2) if rank in (1, 3) else 0

    assert find_fault(program, gathered) is None


def test_sections_that_differ_by_a_byte_have_no_common_chunk():
    with pytest.raises(UnevenError, match="the sections of 1000003 bytes have only 1 B in common, 1000003 chunks"):
        msccl_xml(ring(3, 1_000_003), "odd")


def test_a_chunk_is_a_whole_number_of_elements():
    with pytest.raises(UnevenError, match="only 4 B in common"):
        msccl_xml(ring(3, 12), "small")


def test_unequal_sections_must_fit_in_the_buffer_of_a_connection():
    """Sections of 2 and of 3 units: a step of more than one chunk is one piece only where it fits in 2 MiB."""
    builder = ScheduleBuilder(n_ranks=2, bytes=10 * MIB, chunk_bytes=MIB)
    builder.ring(0, builder.route([0, 1]), 0, 4 * MIB)
    builder.ring(1, builder.route([0, 1]), 4 * MIB, 10 * MIB)
    with pytest.raises(InputError, match=r"unequal sections .* one is 3145728 B; write a --size of at most 6291456"):
        msccl_xml(builder.build(), "unequal")


@pytest.mark.parametrize(
    ("ranks", "complaint"),
    [(128, None), (129, "gpu 0 tb 0 has 257 steps; at most 256 are possible")],
)
def test_a_ring_of_more_than_128_ranks_has_too_many_steps(ranks, complaint):
    """2 (n - 1) + 1 steps."""
    if complaint is None:
        msccl_xml(ring(ranks, ranks * 64), "ring")
    else:
        with pytest.raises(InputError, match=complaint):
            msccl_xml(ring(ranks, ranks * 64), "ring")


def test_channels_beyond_32_share_numbers_where_their_hops_differ():
    def chains(pairs):
        builder = ScheduleBuilder(n_ranks=40, bytes=len(pairs) * 8, chunk_bytes=64)
        for channel, (a, b) in enumerate(pairs):
            builder.chain(channel, builder.route([a, b]), channel * 8, channel * 8 + 8, 0, 1)
        return builder.build()

    top = ET.fromstring(msccl_xml(chains([(i, i + 1) for i in range(33)]), "apart"))
    assert top.get("nchannels") == "1"
    with pytest.raises(InputError, match="33 channels; from 1 to 32 are possible"):
        msccl_xml(chains([(0, 1)] * 33), "same")


def test_a_schedule_that_sends_nothing():
    with pytest.raises(InputError, match="no rank sends anything"):
        msccl_xml(ScheduleBuilder(n_ranks=2, bytes=8, chunk_bytes=8).build(), "nothing")


def test_other_collectives_are_refused():
    with pytest.raises(InputError, match=r"MSCCL: all_gather cannot be exported \(allowed: all_reduce\)"):
        msccl_xml(ring(2, 64), "gather", "all_gather")


def test_a_program_that_fills_its_connections_is_refused():
    """Each rank of a ring of two sends four sections before it receives: a connection has room for two."""
    builder = ScheduleBuilder(n_ranks=2, bytes=64, chunk_bytes=64)
    for part in range(4):
        builder.ring(0, builder.route([0, 1]), part * 16, part * 16 + 16)
    text = msccl_xml(builder.build(), "wide")
    assert prove_msccl(text, "x.xml") == BOTH  # pass after pass, there are never more than two under way

    def reordered(gpu):
        steps = list(gpu[0])
        for step in steps:
            gpu[0].remove(step)
        steps.sort(key=lambda step: step.get("type") != "s")
        for s, step in enumerate(steps):
            step.set("s", str(s))
            gpu[0].append(step)

    top = ET.fromstring(text)
    for gpu in top:
        reordered(gpu)
    with pytest.raises(MismatchError, match=r"waits for .* \(connections are full\)"):
        prove_msccl(ET.tostring(top, encoding="unicode"), "x.xml")
