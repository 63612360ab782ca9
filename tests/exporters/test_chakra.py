"""Chakra traces: their bytes, and that what is read back is proven for every strategy."""

import random
from collections import Counter

import pytest

from r2cc_simai.chakra.wire import read_messages
from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.view import View
from r2cc_simai.collectives.operations import OPERATIONS
from r2cc_simai.collectives.schedule import ScheduleBuilder
from r2cc_simai.errors import InputError
from r2cc_simai.exporters import chakra
from r2cc_simai.exporters.chakra import chakra_path, write_chakra
from r2cc_simai.exporters.chakra_reader import read_chakra
from r2cc_simai.exporters.program import NONE
from r2cc_simai.exporters.verify import find_fault
from r2cc_simai.exporters.wish import Wish
from r2cc_simai.strategies.registry import parse_strategy

STRATEGIES = ["ideal", "nccl", "nccl-failover", "hot-repair", "balance", "balance:split=weighted", "auto"]
STRATEGIES += ["r2cc-allreduce:k=3", "optcc:k=2"]
CLUSTERS = ["r7525", "h100x2", *(f"uniformx{n}" for n in range(3, 10))]
# OptCC needs two healthy servers.
CASES = [(s, c) for s in STRATEGIES for c in CLUSTERS if not (s.startswith("optcc") and c == "h100x2")]


def test_a_send_node_byte_for_byte(tmp_path):
    """Two ranks; rank 0 gives its 5 bytes to rank 1. Field numbers are those of et_def.proto, written by hand.

    Metadata: version 1, attr 2 {name 1, int64_val 9}. Node: id 1, name 2, type 3 (5: COMM_SEND), attr 10
    {name 1, int32_val 7 or int64_val 9 or bool_val 27}.
    """
    builder = ScheduleBuilder(n_ranks=2, bytes=5, chunk_bytes=8)
    builder.chain(0, builder.route([0, 1]), 0, 5, 0, 1)
    write_chakra(builder.build(), tmp_path / "c")

    def attribute(key: bytes, name: bytes, value: bytes) -> bytes:
        inner = b"\x0a" + bytes([len(name)]) + name + value
        return key + bytes([len(inner)]) + inner

    metadata = b"\x0a\x050.0.4"
    for name, number in ((b"n_ranks", 2), (b"rank", 0), (b"buffer_bytes", 5)):
        metadata += attribute(b"\x12", name, b"\x48" + bytes([number]))
    node = b"\x08\x01" + b"\x12\x04send" + b"\x18\x05"
    for name, value in (
        (b"is_cpu_op", b"\xd8\x01\x00"),
        (b"comm_dst", b"\x38\x01"),
        (b"comm_size", b"\x48\x05"),
        (b"comm_tag", b"\x38\x00"),
        (b"buffer_offset", b"\x48\x00"),
    ):
        node += attribute(b"\x52", name, value)
    assert chakra_path(tmp_path / "c", 0).read_bytes() == bytes([len(metadata)]) + metadata + bytes([len(node)]) + node


@pytest.mark.parametrize("size", [17_000_003, 1_000_003, 5])
@pytest.mark.parametrize(("strategy", "cluster"), CASES)
def test_what_is_read_back_is_proven(strategy, cluster, size, schedule_for, tmp_path):
    write_chakra(schedule_for(cluster, strategy, size), tmp_path / "c")
    assert find_fault(read_chakra(tmp_path / "c")) is None


def test_the_schema_of_chakra_reads_the_files_and_writes_the_same_bytes(schedule_for, tmp_path):
    """Where the package mlc-chakra is installed: its module, made from et_def.proto, knows every field."""
    schema = pytest.importorskip("chakra.schema.protobuf.et_def_pb2")
    write_chakra(schedule_for("r7525", "r2cc-allreduce:k=3", 17_000_003), tmp_path / "c")
    for rank in range(6):
        data = chakra_path(tmp_path / "c", rank).read_bytes()
        kinds = [schema.GlobalMetadata]
        for at, end in read_messages(data):
            message = kinds[-1].FromString(data[at:end])
            assert message.SerializeToString() == data[at:end]
            kinds.append(schema.Node)


@pytest.mark.parametrize("op", [op for op in OPERATIONS if op != "all_reduce"])
@pytest.mark.parametrize("cluster", ["r7525", "h100x2"])
def test_the_other_collectives_are_proven_by_their_own_postconditions(op, cluster, tmp_path):
    where = load_cluster(cluster)
    state = View(where, tuple(0.0 if nic == 1 else 1.0 for nic in range(len(where.nics))))
    wish = Wish(parse_strategy("balance"), state, op, root=2)
    write_chakra(wish.plan(1_000_003).schedule, tmp_path / "c")
    program = read_chakra(tmp_path / "c")
    assert find_fault(program, wish.wanted(1_000_003)) is None
    assert "are missing" in (find_fault(program) or "")  # it is no AllReduce


@pytest.mark.parametrize(("strategy", "cluster"), [("r2cc-allreduce:k=3", "r7525"), ("optcc:k=2", "uniformx4")])
def test_random_orders_give_the_sum_everywhere(strategy, cluster, schedule_for, tmp_path):
    """The proof rests on 'ordered accesses have one result'; here operations run one by one in 20 drawn orders."""
    write_chakra(schedule_for(cluster, strategy, 17_000_003), tmp_path / "c")
    program = read_chakra(tmp_path / "c")
    after = {node: [*program.before[node]] for node in range(len(program.rank))}
    for node, feed in enumerate(program.feed):
        if feed != NONE:
            after[node].append(feed)
    for seed in range(20):
        draw = random.Random(seed)
        memory = [[Counter({rank: 1}) for _ in range(program.cells)] for rank in range(program.n_ranks)]
        values: dict[int, list[Counter[int]]] = {}
        waiting = {node: len(before) for node, before in after.items()}
        ready = [node for node, count in waiting.items() if count == 0]
        then: dict[int, list[int]] = {node: [] for node in after}
        for node, before in after.items():
            for one in before:
                then[one].append(node)
        while ready:
            node = ready.pop(draw.randrange(len(ready)))
            own, read, write = memory[program.rank[node]], program.read[node], program.write[node]
            value = values.get(program.feed[node], [])
            if read != NONE:
                value = own[read : read + program.width[node]]
            if program.adds[node]:
                value = [a + b for a, b in zip(value, own[write : write + len(value)], strict=True)]
            if write != NONE:
                own[write : write + len(value)] = value
            values[node] = value
            for one in then[node]:
                waiting[one] -= 1
                if not waiting[one]:
                    ready.append(one)
        assert len(values) == len(program.rank)
        everything = Counter(range(program.n_ranks))
        assert all(cell == everything for own in memory for cell in own)


def test_dependency_free_nodes_are_the_first_sends_and_the_receives_that_overwrite_nothing_in_use(three_ranks):
    program = read_chakra(three_ranks)
    free = [program.name(i) for i, before in enumerate(program.before) if not before and program.rank[i] == 0]
    # send 0..3; the receives of the two parts that are added: their COMP nodes wait, they do not
    assert free == ["c.0.et: node 1", "c.0.et: node 2", "c.0.et: node 5"]


@pytest.mark.parametrize(("piece_bytes", "pieces"), [(None, 2), (0, 1), (1, 8), (3, 3), (100, 1)])
def test_pieces_of_a_section(piece_bytes, pieces, tmp_path):
    """Two ranks and 16 bytes: sections of 8, which chunks of 4 bytes cut in two; 4 messages, of which 2 are added."""
    builder = ScheduleBuilder(n_ranks=2, bytes=16, chunk_bytes=4)
    builder.ring(0, builder.route([0, 1]), 0, 16)
    write_chakra(builder.build(), tmp_path / "c", piece_bytes)
    program = read_chakra(tmp_path / "c")
    assert len(program.rank) == 4 * pieces * 2 + 2 * pieces  # sends and receives, additions
    assert find_fault(program) is None


def test_more_messages_than_tags_are_refused(tmp_path, monkeypatch):
    builder = ScheduleBuilder(n_ranks=2, bytes=16, chunk_bytes=4)
    builder.ring(0, builder.route([0, 1]), 0, 16)
    monkeypatch.setattr(chakra, "TAG_LIMIT", 7)
    with pytest.raises(InputError, match="8 messages: ASTRA-sim has tags for 7; write a larger --piece"):
        write_chakra(builder.build(), tmp_path / "c")
    assert not list(tmp_path.iterdir())
