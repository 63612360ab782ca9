"""Traces that are wrong in one place: each is found, in one line that names file and node.

Rank 0 of the ring of three over 9 bytes has these nodes (ids): 1 send 0..3; 2 recv, 3 add 6..9; 4 send 6..9; 5 recv,
6 add 3..6; 7 send 3..6; 8 recv 0..3; 9 send 0..3; 10 recv 6..9. The other ranks have the same with other bytes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from r2cc_simai.chakra.wire import bytes_field, read_fields, read_list, read_messages, varint, varint_field

INT64, BOOL = 9, 27


@dataclass
class Node:
    """A node taken apart, to be changed and put together again."""

    id: int
    type: int
    deps: list[int]
    attributes: dict[str, int] = field(default_factory=dict)

    def raw(self) -> bytes:
        body = varint_field(1, self.id) + varint_field(3, self.type)
        body += bytes_field(5, b"".join(map(varint, self.deps)))
        for name, value in self.attributes.items():
            kind = BOOL if name == "is_cpu_op" else INT64
            body += bytes_field(10, bytes_field(1, name.encode()) + varint_field(kind, value % 2**64))
        return varint(len(body)) + body


def rewrite(path: Path, change: Callable[[dict[int, Node]], None]) -> None:
    """Changes the nodes of a file, by id."""
    data = path.read_bytes()
    spans = list(read_messages(data))
    nodes = {}
    for at, end in spans[1:]:
        node = Node(0, 0, [])
        for number, kind, a, b in read_fields(data, at, end):
            if number == 1:
                node.id = a
            elif number == 3:
                node.type = a
            elif number == 5:
                node.deps += read_list(data, kind, a, b)
            elif number == 10:
                parts = {n: (x, y) for n, _, x, y in read_fields(data, a, b)}
                x, y = parts.pop(1)
                node.attributes[data[x:y].decode()] = next(iter(parts.values()))[0]
        nodes[node.id] = node
    change(nodes)
    path.write_bytes(data[: spans[0][1]] + b"".join(node.raw() for node in nodes.values()))


def without_dependency(nodes):
    nodes[4].deps = []


def overwrites_too_early(nodes):
    nodes[8].deps = []


def wrong_peer(nodes):
    nodes[4].attributes["comm_dst"] = 2


def peer_outside(nodes):
    nodes[4].attributes["comm_dst"] = 3


def to_itself(nodes):
    nodes[4].attributes["comm_dst"] = 0


def other_size(nodes):
    nodes[4].attributes["comm_size"] = 2


def no_size(nodes):
    nodes[4].attributes["comm_size"] = 0


def other_place(nodes):
    nodes[8].attributes["buffer_offset"] = 1


def outside(nodes):
    nodes[8].attributes["buffer_offset"] = 7


def orphan_receive(nodes):
    nodes[11] = Node(11, 6, [], nodes[8].attributes | {"comm_tag": 77})


def orphan_send(nodes):
    nodes[11] = Node(11, 5, [], nodes[4].attributes | {"comm_tag": 77})


def same_tag(nodes):
    nodes[11] = Node(11, 5, [], dict(nodes[4].attributes))


def same_id(nodes):
    nodes[11] = Node(4, 5, [], dict(nodes[4].attributes))


def unknown_dependency(nodes):
    nodes[4].deps = [99]


def waits_for_itself(nodes):
    nodes[4].deps = [3, 7]
    nodes[7].deps = [6, 4]


def adds_twice(nodes):
    nodes[11] = Node(11, 4, [2, 3], dict(nodes[3].attributes))
    nodes[4].deps = [11]


def adds_nothing(nodes):
    nodes[3].attributes["operand"] = 1


def adds_without_waiting(nodes):
    nodes[3].deps = []


def adds_elsewhere(nodes):
    nodes[3].attributes["buffer_offset"] = 0


def on_the_cpu(nodes):
    nodes[4].attributes["is_cpu_op"] = 1


def cpu_by_default(nodes):
    del nodes[4].attributes["is_cpu_op"]


def collective_inside(nodes):
    nodes[4].type = 7


def no_tag(nodes):
    del nodes[4].attributes["comm_tag"]


def tag_of_astra_sim(nodes):
    nodes[4].attributes["comm_tag"] = 500_000_000


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (without_dependency, "c.0.et: node 4 reads and c.0.et: node 3 writes bytes 6..9, and nothing orders them"),
        (overwrites_too_early, None),  # what it would overwrite has gone round the ring before anything comes back
        (wrong_peer, "c.1.et: node 5: receives from rank 0 under tag 9, which no node sends"),
        (peer_outside, "c.0.et: node 4: its peer is rank 3; it is rank 0 of 3"),
        (to_itself, "c.0.et: node 4: its peer is rank 0; it is rank 0 of 3"),
        (other_size, "c.1.et: node 5: receives 3 bytes, c.0.et: node 4 sends 2"),
        (no_size, "c.0.et: node 4: 0 bytes; a size must be 1 or more"),
        (other_place, "c.0.et: node 8: puts at byte 1 what c.2.et: node 7 has at byte 0"),
        (outside, "c.0.et: node 8: bytes 7..10 of a buffer of 9"),
        (orphan_receive, "c.0.et: node 11: receives from rank 2 under tag 77, which no node sends"),
        (orphan_send, "c.0.et: node 11: sends to rank 1 under tag 77, where no node receives it"),
        (same_tag, "c.0.et: node 11: sends to rank 1 under tag 9, as does c.0.et: node 4"),
        (same_id, "c.0.et: node 4: the id occurs twice"),
        (unknown_dependency, "c.0.et: node 4: waits for node 99, which does not exist"),
        (waits_for_itself, "c.0.et: node 4 waits for c.0.et: node 7 waits for c.0.et: node 4"),
        (adds_twice, "contributions of ranks [2] more than once"),
        (adds_nothing, "c.0.et: node 3: its operand 1 is no COMM_RECV without a buffer_offset"),
        (adds_without_waiting, "c.0.et: node 3: does not wait for its operand 2"),
        (adds_elsewhere, "c.0.et: node 3: adds bytes 6..9 to bytes 0..3"),
        (on_the_cpu, "c.0.et: node 4: is_cpu_op must be false"),
        (cpu_by_default, "c.0.et: node 4: is_cpu_op must be false"),
        (collective_inside, "c.0.et: node 4: type 7; a custom collective has COMP, COMM_SEND, COMM_RECV nodes only"),
        (no_tag, "c.0.et: node 4: COMM_SEND without a whole number comm_tag"),
        (tag_of_astra_sim, "c.0.et: node 4: comm_tag 500000000; it must lie from 0 to 499999999"),
    ],
)
def test_one_wrong_node(change, complaint, three_ranks, fault_of):
    rewrite(three_ranks.with_name("c.0.et"), change)
    found = fault_of(three_ranks)
    if complaint is None:
        assert found is None
    else:
        assert complaint in found
        assert "\n" not in found


def test_a_rewritten_file_without_a_change_is_right(three_ranks, fault_of):
    rewrite(three_ranks.with_name("c.0.et"), dict.copy)
    assert fault_of(three_ranks) is None


def test_a_missing_contribution_names_the_file(three_ranks, fault_of):
    """Rank 0 takes 6..9 in the reduce-scatter instead of adding: rank 0's own data never reaches anybody."""

    def take(nodes):
        nodes[2].attributes["buffer_offset"] = 6
        del nodes[3]
        nodes[4].deps = [2]

    rewrite(three_ranks.with_name("c.0.et"), take)
    assert fault_of(three_ranks) == "c.0.et: rank 0, bytes 6..9: contributions of ranks [0] are missing"


def test_a_cycle_over_several_ranks_is_a_path(three_ranks, fault_of):
    """Every rank's first send waits for its last receive."""
    for rank in range(3):
        rewrite(three_ranks.with_name(f"c.{rank}.et"), lambda nodes: nodes[1].deps.append(10))
    found = fault_of(three_ranks)
    assert " waits for " in found
    assert found.split(" waits for ")[0] == found.split(" waits for ")[-1]
    assert {"c.0.et", "c.2.et"} <= {part.split(":")[0] for part in found.split(" waits for ")}
    assert "7 more" in found  # of 15 nodes, eight are named


@pytest.mark.parametrize("cut", [1, 10, 60, 130])
def test_a_truncated_file(cut, three_ranks, fault_of):
    path = three_ranks.with_name("c.1.et")
    path.write_bytes(path.read_bytes()[:-cut])
    assert fault_of(three_ranks).startswith("c.1.et: what follows node")
    assert "bytes before the end of a message" in fault_of(three_ranks)


def test_a_file_that_ends_between_nodes_lacks_a_receive(three_ranks, fault_of):
    rewrite(three_ranks.with_name("c.1.et"), lambda nodes: nodes.pop(10) and None)
    assert "under tag" in fault_of(three_ranks)
    assert "where no node receives it" in fault_of(three_ranks)


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        (b"", "c.1.et: empty; it must begin with the metadata"),
        (b"\x00", "c.1.et: the metadata have no n_ranks; only exported collectives can be proven"),
        (b"not a trace", "c.1.et: the metadata: no Chakra trace"),
    ],
)
def test_what_is_no_trace(raw, complaint, three_ranks, fault_of):
    three_ranks.with_name("c.1.et").write_bytes(raw)
    assert fault_of(three_ranks).startswith(complaint)


def test_files_of_other_ranks_and_missing_ones(three_ranks, fault_of):
    one, two = (three_ranks.with_name(f"c.{rank}.et") for rank in (1, 2))
    one.write_bytes(two.read_bytes())
    assert fault_of(three_ranks) == "c.1.et: the metadata say rank 2"
    one.unlink()
    assert fault_of(three_ranks).endswith("c.1.et: No such file or directory")
