"""What a trace adds up to, counted by hand."""

import pytest

from r2cc_simai.chakra.folder import read_folder
from r2cc_simai.chakra.summary import NameTime, Traffic, summarise_trace
from r2cc_simai.chakra.wire import bytes_field
from r2cc_simai.chakra.write import write_workload
from r2cc_simai.errors import InputError


def test_counts_bytes_and_compute_of_each_class(workload_of, tmp_path):
    """COMP of 1500.7 and 0.7 us, AllReduce of 1 MiB over tp 2, ReduceScatter of 4 MiB over dp 3, 300 B both ways."""
    write_workload(workload_of(), tmp_path)
    summary = summarise_trace(read_folder(tmp_path))
    assert (summary.ranks, summary.nodes, len(summary.classes)) == (12, 72, 2)
    for number, one in enumerate(summary.classes):
        assert (one.number, one.first_rank, one.ranks) == (number, 6 * number, 6)
        assert one.nodes == {"COMP": 2, "COMM_SEND": 1, "COMM_RECV": 1, "COMM_COLL": 2}
        assert one.compute_s == pytest.approx(1501.4e-6)
        assert one.num_ops == 10**12
        assert one.traffic == (
            Traffic("ALL_REDUCE", "tp", 2, 1, 1 << 20),
            Traffic("REDUCE_SCATTER", "dp", 3, 1, 1 << 22),
            Traffic("SEND", "", None, 1, 300),
            Traffic("RECV", "", None, 1, 300),
        )


def test_the_critical_path_with_its_nodes_and_names(et, job):
    """1 (5 us) -> AllReduce 2 -> 4 (3 us) -> 5 (1 us), beside 3 (8 us): 9 us. Layers of one name count together."""
    nodes = [
        et.node(1, et.COMP, raw=bytes_field(2, b"layer0.mlp"), micros=5),
        et.coll(2, 8, "", deps=[1]),
        et.node(3, et.COMP, raw=bytes_field(2, b"layer0.mlp"), micros=8),
        et.node(4, et.COMP, [2], raw=bytes_field(2, b"attention"), micros=3),
        et.node(5, et.COMP, [4], raw=bytes_field(2, b"layer11.mlp"), micros=1),
    ]
    (one,) = summarise_trace(read_folder(job({0: nodes, 1: nodes}))).classes
    assert one.critical.seconds == pytest.approx(9e-6)
    assert one.critical.node_ids == (1, 2, 4, 5)
    assert one.critical.names == (
        NameTime("layer*.mlp", 2, pytest.approx(6e-6)),
        NameTime("attention", 1, pytest.approx(3e-6)),
    )
    assert one.traffic == (Traffic("ALL_REDUCE", "all", 2, 1, 8),)


def test_one_rank_alone(et, job):
    prefix = job({0: [et.coll(1, 8)], 1: [et.coll(1, 8)], 2: [et.coll(1, 8, "2")]}, {"1": [0, 1], "2": [2]})
    summary = summarise_trace(read_folder(prefix), rank=2)
    assert (summary.ranks, summary.nodes) == (1, 1)
    assert [(one.first_rank, one.ranks, one.traffic) for one in summary.classes] == [
        (2, 1, (Traffic("ALL_REDUCE", "", 1, 1, 8),))
    ]
    with pytest.raises(InputError, match=r"--rank 3: .*t has ranks 0 to 2"):
        summarise_trace(read_folder(prefix), rank=3)


def test_a_trace_without_compute_has_no_critical_path(et, job):
    (one,) = summarise_trace(read_folder(job({0: [et.send(1, 1, 8)], 1: [et.recv(1, 0, 8)]})), rank=0).classes
    assert (one.critical.seconds, one.critical.node_ids, one.critical.names) == (0, (), ())
