"""MSCCL programs that are wrong in one place: each is found, in one line that names file, GPU, thread block and step.

The program is that of a ring AllReduce on three GPUs. GPU 0, thread block 0: s0 `s` 0, s1 `rrcs` 2, s2 `rrcs` 1,
s3 `rcs` 0, s4 `r` 2 (type and chunk).
"""

import xml.etree.ElementTree as ET

import pytest

from r2cc_simai.collectives.schedule import ScheduleBuilder
from r2cc_simai.errors import SimaiError
from r2cc_simai.exporters.msccl import msccl_xml
from r2cc_simai.exporters.msccl_reader import prove_msccl


@pytest.fixture
def program():
    """Return the XML tree of the ring of three."""
    builder = ScheduleBuilder(n_ranks=3, bytes=24, chunk_bytes=24)
    builder.ring(0, builder.route([0, 1, 2]), 0, 24)
    return ET.fromstring(msccl_xml(builder.build(), "ring"))


def complaint(top: ET.Element) -> str:
    with pytest.raises(SimaiError) as error:
        prove_msccl(ET.tostring(top, encoding="unicode"), "x.xml")
    assert "\n" not in str(error.value)
    return str(error.value)


def block(top):
    return top[0][0]


def change(step, **values):
    """A change of one step's attributes."""

    def apply(top):
        for key, value in values.items():
            block(top)[step].set(key, str(value))

    return apply


def drop_last_step(top):
    block(top).remove(block(top)[4])


def one_more_send(top):
    block(top).append(ET.Element("step", dict(block(top)[0].attrib, s="5")))


def peers_swapped(top):
    block(top).set("send", "2")
    block(top).set("recv", "1")


def own_peer(top):
    block(top).set("send", "0")


def no_send_peer(top):
    block(top).set("send", "-1")
    top[1][0].set("recv", "-1")


def block_twice(top):
    top[0].append(ET.fromstring(ET.tostring(block(top))))


def same_connection(top):
    block_twice(top)
    top[0][1].set("id", "1")


def gpu_twice(top):
    top[1].set("id", "0")


def gpu_missing(top):
    top.remove(top[2])


def other_collective(top):
    top.set("coll", "alltoall")


def no_place(top):
    top.set("inplace", "0")
    top.set("outofplace", "0")


def uneven(top):
    top.set("minBytes", "25")


def steps_too_many(top):
    for s in range(5, 258):
        block(top).append(ET.Element("step", dict(block(top)[3].attrib, s=str(s), type="cpy")))


def ends_with_nop(top):
    block(top).append(ET.Element("step", dict(block(top)[3].attrib, s="5", type="nop")))


def copy_beside(top):
    """A second thread block copies chunk 2 of the output onto itself, at no defined time."""
    top[0].append(ET.Element("tb", {"id": "1", "send": "-1", "recv": "-1", "chan": "0"}))
    where = {"srcbuf": "o", "srcoff": "2", "dstbuf": "s", "dstoff": "0", "cnt": "1"}
    top[0][1].append(ET.Element("step", {"s": "0", "type": "cpy", **where, "depid": "-1", "deps": "-1", "hasdep": "0"}))
    for gpu in top:
        gpu.set("s_chunks", "1")


def copy_waits(deps, hasdep):
    def apply(top):
        copy_beside(top)
        top[0][1][0].set("depid", "0")
        top[0][1][0].set("deps", str(deps))
        block(top)[deps % 5].set("hasdep", str(hasdep))

    return apply


def cycle(top):
    """The copy waits for the end of thread block 0, whose first step waits for the copy."""
    copy_waits(4, 1)(top)
    top[0][1][0].set("hasdep", "1")
    change(0, depid=1, deps=0)(top)


def test_the_program_as_it_is(program):
    assert prove_msccl(ET.tostring(program, encoding="unicode"), "x.xml") == ["in place", "out of place"]


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (
            copy_beside,
            "tb 1 step 0 reads and x.xml: gpu 0 tb 0 step 1 writes bytes 16..24, and nothing orders them (in place)",
        ),
        (copy_waits(4, 0), "x.xml: gpu 0 tb 1 step 0: waits for tb 0 step 4, which has hasdep=0 and so never reports"),
        (copy_waits(5, 1), "x.xml: gpu 0 tb 1 step 0: waits for tb 0 step 5, which does not exist or is a nop"),
        (cycle, "x.xml: gpu 0 tb 0 step 0 waits for x.xml: gpu 0 tb 1 step 0 waits for x.xml: gpu 0 tb 0 step 4"),
        (change(1, type="rcs"), "contributions of ranks [0] are missing (in place)"),
        (
            change(1, srcbuf="o"),
            "x.xml: gpu 0 tb 0 step 1: reads bytes 16..24, which nothing has written (out of place)",
        ),
        (change(1, srcoff=0), "x.xml: gpu 0 tb 0 step 1: adds bytes 16..24 to bytes 0..8 (in place)"),
        (change(4, dstoff=1), "x.xml: rank 0, bytes 8..16: hold bytes 16..24 (in place)"),
        (change(4, dstoff=3), "x.xml: gpu 0 tb 0 step 4: chunks 3..4 of o, which has 3"),
        (change(4, dstbuf="i"), "x.xml: rank 0, bytes 16..24: contributions of ranks [1] are missing (out of place)"),
        (change(4, dstbuf="q"), "x.xml: gpu 0 tb 0 step 4: dstbuf='q' (allowed: i, o, s)"),
        (change(4, cnt=2, dstoff=0), "x.xml: gpu 0 tb 0 step 4: receives 2 chunks of 1 sent"),
        (change(4, cnt=72), "x.xml: gpu 0 tb 0 step 4: cnt 72; from 1 to 71 are possible"),
        (
            change(4, type="rrx"),
            "x.xml: gpu 0 tb 0 step 4: type 'rrx' (allowed: s, r, rcs, rrc, rrs, rrcs, re, cpy, nop)",
        ),
        (change(4, s=3), "x.xml: gpu 0 tb 0 step 3: steps count up from 0; 4 is next"),
        (change(4, cnt="many"), "x.xml: gpu 0 tb 0 step 4: cnt='many' is no whole number"),
        (drop_last_step, "x.xml: gpu 2 tb 0 step 3: sends to gpu 0, which never receives it"),
        (one_more_send, "x.xml: gpu 0 tb 0 step 5: sends to gpu 1, which never receives it"),
        (peers_swapped, "x.xml: gpu 1 tb 0 step 1: receives what gpu 0 never sends"),
        (own_peer, "x.xml: gpu 0 tb 0: its peer is gpu 0 of 3"),
        (no_send_peer, "x.xml: gpu 0 tb 0 step 0: type s, but the thread block has no such peer"),
        (block_twice, "x.xml: gpu 0 tb 0: ids of <tb> count up from 0; 1 is next"),
        (same_connection, "x.xml: gpu 0 tb 1: sends to gpu 1 on channel 0, as tb 0 does"),
        (gpu_twice, "x.xml: gpu 0: ids of <gpu> go from 0 to 2, each once"),
        (gpu_missing, "x.xml: gpu 2: missing"),
        (other_collective, "x.xml: algo: coll='alltoall' cannot be proven (allowed: allreduce)"),
        (no_place, "x.xml: algo: neither inplace nor outofplace is 1"),
        (uneven, "x.xml: algo: minBytes 25 is no multiple of nchunksperloop, 3"),
        (steps_too_many, "x.xml: MSCCL: gpu 0 tb 0 has 258 steps; at most 256 are possible"),
        (ends_with_nop, "x.xml: gpu 0 tb 0 step 5: a nop must come before another step"),
    ],
)
def test_one_wrong_place(wrong, expected, program):
    wrong(program)
    assert expected in complaint(program)


def test_a_truncated_file(program):
    text = ET.tostring(program, encoding="unicode")
    with pytest.raises(SimaiError, match=r"x.xml: no XML: .* line \d+, column \d+"):
        prove_msccl(text[: len(text) // 2], "x.xml")


def test_what_is_no_program():
    with pytest.raises(SimaiError, match=r"x\.xml: begins with <graph>, not with <algo>"):
        prove_msccl('<graph inplace="1"/>', "x.xml")


@pytest.mark.parametrize("kind", ["cpy", "re", "rrs"])
def test_step_types_that_no_export_uses_are_understood(kind):
    """Two GPUs exchange and add their data by way of the scratch buffer, with every other type of step."""
    head = '<algo name="x" proto="Simple" nchannels="1" nchunksperloop="1" ngpus="2" coll="allreduce" inplace="1" '
    head += 'outofplace="0" minBytes="8" maxBytes="9">'
    tail = 'depid="-1" deps="-1" hasdep="0"/>'
    programs = {
        # keep what came in scratch, then add it
        "re": ("s i o", "r i s", "re s i"),
        # keep a copy of the own data, send it, take the other's, add the copy
        "cpy": ("cpy i s", "s s o", "r i o", "re s o"),
        # GPU 1 adds to what comes and sends it back without keeping it, then takes the sum
        "rrs": ("s i o", "r i o", "s o o"),
    }
    lines = [head]
    for gpu in range(2):
        steps = programs[kind] if not (kind == "rrs" and gpu == 1) else ("rrs i o", "r i o")
        lines.append(f'<gpu id="{gpu}" i_chunks="1" o_chunks="1" s_chunks="1">')
        lines.append(f'<tb id="0" send="{1 - gpu}" recv="{1 - gpu}" chan="0">')
        for s, step in enumerate(steps):
            name, source, target = step.split()
            lines.append(
                f'<step s="{s}" type="{name}" srcbuf="{source}" srcoff="0" dstbuf="{target}" dstoff="0" cnt="1" {tail}'
            )
        lines.append("</tb></gpu>")
    assert prove_msccl("".join([*lines, "</algo>"]), "x.xml") == ["in place"]
