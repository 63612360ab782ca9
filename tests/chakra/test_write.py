"""Writing a workload: what is read back is what was written, for every rank, whole or folded."""

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.chakra import write
from r2cc_simai.chakra.encode import whole_microseconds
from r2cc_simai.chakra.folder import read_folder
from r2cc_simai.chakra.groups import group_numbers
from r2cc_simai.chakra.reading import read_rank
from r2cc_simai.chakra.validate import validate
from r2cc_simai.chakra.wire import padded_varint, read_messages, read_varint
from r2cc_simai.chakra.write import write_workload
from r2cc_simai.errors import InputError


def described(trace, groups, peers):
    """Every node of a rank as plain values, groups and peers resolved."""
    names, offsets, deps = trace.names, trace.dep_offsets, trace.deps
    return [
        (
            names[trace.name[i]],
            int(trace.type[i]),
            int(trace.comm_type[i]),
            round(trace.duration_s[i] * 1e9),
            int(trace.num_ops[i]),
            int(trace.tensor_bytes[i]),
            int(trace.bytes[i]),
            groups[trace.group[i]] if trace.group[i] >= 0 else None,
            peers[trace.peer[i]] if trace.peer[i] >= 0 else None,
            int(trace.tag[i]),
            tuple(deps[offsets[i] : offsets[i + 1]].tolist()),
        )
        for i in range(len(trace))
    ]


def wanted(workload, rank):
    """The same of a workload's rank."""
    program = workload.programs[workload.rank_class[rank]]
    rows = []
    for i in range(len(program)):
        deps = program.deps[program.dep_offsets[i] : program.dep_offsets[i + 1]]
        group, peer = program.group[i], program.peer[i]
        rows.append(
            (
                program.names[program.name[i]],
                int(program.kind[i]),
                int(program.comm_type[i]),
                int(program.duration_ns[i]),
                int(program.num_ops[i]),
                int(program.tensor_bytes[i]),
                int(program.bytes[i]),
                workload.groups[workload.rank_groups[rank, group]] if group >= 0 else None,
                int(workload.rank_peers[rank, peer]) if peer >= 0 else None,
                max(int(program.tag[i]), 0),
                tuple(sorted(deps.tolist())),
            )
        )
    return rows


def of_rank(traces, rank):
    groups = [traces.groups[g] for g in traces.rank_groups[rank] if g >= 0]
    return described(traces.classes[traces.rank_class[rank]], groups, traces.rank_peers[rank].tolist())


@pytest.mark.parametrize("fold", [False, True])
@pytest.mark.parametrize(("tp", "dp"), [(2, 3), (1, 1), (4, 20)])
def test_what_is_read_back_is_what_was_written(fold, tp, dp, workload_of, tmp_path):
    """160 ranks: peers above 127 take two bytes, so those below are padded to two as well."""
    workload = workload_of(tp=tp, dp=dp)
    paths = write_workload(workload, tmp_path / "new" / "folder", fold=fold)
    assert len(paths) == 2 + (2 if fold else workload.n_ranks)
    assert all(path.is_file() for path in paths)
    traces = read_folder(tmp_path / "new" / "folder")
    assert len(traces.classes) == 2
    assert traces.groups == workload.groups
    assert traces.group_kind == workload.group_kind
    assert traces.replica.tolist() == workload.replica.tolist()
    assert traces.manifest == workload.manifest.model_dump(mode="json")
    for rank in range(workload.n_ranks):
        assert of_rank(traces, rank) == wanted(workload, rank)


def test_every_file_of_its_own_says_the_same(workload_of, tmp_path):
    """Without the manifest all files are read, and classes found by what they hold."""
    workload = workload_of()
    paths = write_workload(workload, tmp_path)
    fast = read_folder(tmp_path)
    paths[-1].unlink()
    slow = read_folder(tmp_path / "small")
    assert (slow.replica, slow.manifest, set(slow.group_kind)) == (None, None, {""})
    for name in ("rank_class", "rank_groups", "rank_peers"):
        assert np.array_equal(getattr(fast, name), getattr(slow, name))
    for rank in range(workload.n_ranks):
        assert of_rank(slow, rank) == wanted(workload, rank)


def test_it_is_valid_and_loads_no_more_than_a_file_a_class(workload_of, tmp_path, monkeypatch):
    write_workload(workload_of(), tmp_path)
    assert [one.severity for one in validate(tmp_path).findings] == []
    read = []
    monkeypatch.setattr("r2cc_simai.chakra.reading.read_rank", lambda path: read.append(path.name) or read_rank(path))
    read_folder(tmp_path)
    assert read == ["small.0.et", "small.6.et"]


def test_roles_that_coincide_for_some_ranks_split_a_class(workload_of, tmp_path):
    """Two roles of a program are one role of the trace where they are one rank; such ranks are a class of their own."""
    workload = workload_of()
    workload.rank_peers[1, 1] = 9  # its program sends to rank 7 and receives from rank 9
    write_workload(workload, tmp_path)
    traces = read_folder(tmp_path)
    assert len(traces.classes) == 3
    assert traces.rank_class.tolist() == [0, 1, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2]
    assert traces.rank_peers[1].tolist() == [7, 9]
    assert traces.rank_peers[0].tolist() == [6, -1]
    (tmp_path / "small.manifest.json").unlink()
    assert np.array_equal(read_folder(tmp_path).rank_class, traces.rank_class)


def test_the_schema_of_chakra_reads_every_message(workload_of, tmp_path):
    """Where mlc-chakra is installed: padded varints are numbers to it like others."""
    schema = pytest.importorskip("chakra.schema.protobuf.et_def_pb2", reason="mlc-chakra is not installed")
    protolib = pytest.importorskip("chakra.src.third_party.utils.protolib")
    workload = workload_of(tp=4, dp=20)
    write_workload(workload, tmp_path)
    numbers = group_numbers(len(workload.groups))
    for rank in range(workload.n_ranks):
        nodes = []
        with protolib.openFileRd(str(tmp_path / f"small.{rank}.et")) as file:
            metadata, node = schema.GlobalMetadata(), schema.Node()
            assert protolib.decodeMessage(file, metadata)
            assert metadata.version == "0.0.4"
            while protolib.decodeMessage(file, node):
                nodes.append(node)
                node = schema.Node()
        rows = wanted(workload, rank)
        assert len(nodes) == len(rows)
        for node, row in zip(nodes, rows, strict=True):
            said = {one.name: getattr(one, one.WhichOneof("value")) for one in node.attr}
            assert (node.name, node.type, said["is_cpu_op"]) == (row[0], row[1], False)
            assert sorted(node.data_deps) == [dep + 1 for dep in row[10]]
            if row[7] is not None:
                assert said["pg_name"] == str(numbers[workload.groups.index(row[7])])
            if row[8] is not None:
                assert said["comm_dst" if row[1] == 5 else "comm_src"] == row[8]
            assert said.get("comm_size", 0) == row[6]
            assert said.get("duration_nanos", 0) == row[3]


@pytest.mark.parametrize(("count", "first"), [(1, 1), (9, 1), (10, 10), (90, 10), (91, 100), (900, 100), (901, 1000)])
def test_group_numbers_have_equally_many_digits(count, first):
    numbers = group_numbers(count)
    assert (numbers[0], len(numbers), {len(str(n)) for n in numbers}) == (first, count, {len(str(first))})


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=50))
def test_microseconds_add_up_to_within_half_of_one(nanoseconds):
    """Sum of the first k whole microseconds = round(sum of the first k nanoseconds / 1000), for every k."""
    micros = whole_microseconds(np.array(nanoseconds))
    total = 0
    for k, value in enumerate(nanoseconds):
        total += value
        assert abs(Fraction(total, 1000) - int(micros[: k + 1].sum())) <= Fraction(1, 2)
    assert (micros >= 0).all()


@given(st.integers(0, 2**40), st.integers(0, 4))
def test_a_padded_varint_is_the_number(value, more):
    width = len(padded_varint(value, 10).rstrip(b"\x00\x80")) or 1
    width = max(width, (value.bit_length() + 6) // 7 or 1) + more
    raw = padded_varint(value, width)
    assert len(raw) == width
    assert read_varint(raw, 0, width) == (value, width)


def test_a_number_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="128 needs 2 bytes, not 1"):
        padded_varint(128, 1)


def test_another_trace_of_the_name_is_kept_unless_forced(workload_of, tmp_path):
    write_workload(workload_of(), tmp_path)
    with pytest.raises(InputError, match=r"it has a trace small already; take another name, or --force to replace it"):
        write_workload(workload_of(), tmp_path)
    write_workload(workload_of(name="other"), tmp_path)
    write_workload(workload_of(tp=1, dp=1), tmp_path, force=True)  # fewer ranks: no old ones are left
    assert sorted(path.name for path in tmp_path.glob("small.*")) == [
        "small.0.et",
        "small.1.et",
        "small.groups.json",
        "small.manifest.json",
    ]
    assert validate(tmp_path / "small").first_error is None
    with pytest.raises(InputError, match="2 traces in this folder; name one of them"):
        read_folder(tmp_path)


def test_an_interrupted_run_is_recognised_and_replaced(workload_of, tmp_path, monkeypatch):
    def interrupted(done: int, total: int) -> None:
        assert total == 12
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_workload(workload_of(), tmp_path, progress=interrupted)
    for check in (read_folder, validate):
        with pytest.raises(InputError, match=r"manifest.json: the trace is incomplete, writing it was interrupted"):
            check(tmp_path)
    write_workload(workload_of(), tmp_path)
    assert read_folder(tmp_path).n_ranks == 12
    # Also when it replaces an old trace: what is left of that does not pass for a whole.
    monkeypatch.setattr(write, "encode", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        write_workload(workload_of(), tmp_path, force=True)
    with pytest.raises(InputError, match="incomplete"):
        read_folder(tmp_path / "small")


@pytest.mark.parametrize("name", ["", "a/b", ".hidden"])
def test_a_name_that_is_no_file_name(name, workload_of, tmp_path):
    with pytest.raises(InputError, match="the beginning of a file name is wanted"):
        write_workload(workload_of(name=name), tmp_path)


def test_a_folder_that_cannot_be_made(workload_of, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file"):
        write_workload(workload_of(), tmp_path / "file")


def test_the_manifest_counts_classes(workload_of, tmp_path):
    write_workload(workload_of(), tmp_path, fold=True)
    data = json.loads((tmp_path / "small.manifest.json").read_text())
    assert data["form"] == "folded"
    assert data["classes"] == [
        {"file": "small.class0.et", "rank": 0, "ranks": 6, "program": 0},
        {"file": "small.class1.et", "rank": 6, "ranks": 6, "program": 1},
    ]
    assert data["group_kind"]["10"] == "tp"
    sizes = [len(list(read_messages((tmp_path / f"small.class{k}.et").read_bytes()))) for k in (0, 1)]
    assert sizes == [7, 7]
