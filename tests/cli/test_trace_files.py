"""`trace validate|show|convert`: what they print and how they end."""

import json

import pytest

from r2cc_simai.chakra.wire import bytes_field, varint, varint_field


def node(number, kind, micros=0, deps=(), **attributes):
    body = varint_field(1, number) + varint_field(3, kind) + b"".join(varint_field(5, dep) for dep in deps)
    body += varint_field(7, micros) if micros else b""
    for name, value in attributes.items():
        raw = bytes_field(29, value.encode()) if isinstance(value, str) else varint_field(9, value)
        body += bytes_field(10, bytes_field(1, name.encode()) + raw)
    return varint(len(body)) + body


def write(folder, ranks, groups):
    head = bytes_field(1, b"0.0.4")
    for rank, nodes in enumerate(ranks):
        (folder / f"t.{rank}.et").write_bytes(varint(len(head)) + head + b"".join(nodes))
    (folder / "t.groups.json").write_text(json.dumps(groups))
    return str(folder / "t")


@pytest.fixture
def sound(tmp_path):
    """Two ranks: 5 us of compute, then an AllReduce of 64 bytes; a note on a collective of 0 bytes."""
    nodes = [
        node(1, 4, micros=5),
        node(2, 7, deps=[1], comm_type=0, comm_size=64, pg_name="1"),
        node(3, 7, comm_type=0, comm_size=0, pg_name="1"),
    ]
    return write(tmp_path, [nodes, nodes], {"1": [0, 1]})


@pytest.fixture
def broken(tmp_path):
    """A cycle and a missing dependency."""
    nodes = [node(1, 4, micros=5, deps=[2]), node(2, 4, micros=5, deps=[1]), node(3, 4, micros=5, deps=[9])]
    return write(tmp_path, [nodes], {})


def test_validate_counts_and_lists_what_is_worth_knowing(cli, sound):
    ended = cli("trace", "validate", sound)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == (
        f"{sound}: 2 ranks in 1 class, 6 nodes: no errors\n"
        "note: t.0.et: node 3: COMM_COLL of 0 bytes: it only synchronises (2 times in 2 files; --all lists them)\n"
    )


def test_validate_takes_a_folder_or_one_file(cli, sound, tmp_path):
    assert cli("trace", "validate", str(tmp_path)).out.startswith(f"{sound}: 2 ranks")
    ended = cli("trace", "validate", f"{sound}.1.et")
    assert ended.out.startswith(f"{sound}.1.et: 1 rank, 3 nodes: no errors\n")


def test_validate_ends_with_the_first_error(cli, broken):
    ended = cli("trace", "validate", broken)
    assert ended.code == 2
    assert ended.error == ("t.0.et: node 3: waits for node 9, which does not exist; 1 more errors, --all lists them")


def test_validate_all_is_a_table_of_every_finding(cli, broken):
    ended = cli("trace", "validate", broken, "--all")
    assert ended.code == 2
    lines = ended.out.splitlines()
    assert lines[1].split() == ["severity", "check", "file", "node", "position", "reason", "more"]
    assert lines[3].split(maxsplit=5)[:5] == ["error", "missing-dependency", "t.0.et", "3", "2"]
    assert lines[4].split(maxsplit=5)[:5] == ["error", "cycle", "t.0.et", "1", "0"]
    assert "1 -> 2 -> 1" in lines[4]
    assert ended.err == "error: t.0.et: node 3: waits for node 9, which does not exist\n"


def test_validate_as_json(cli, broken):
    ended = cli("trace", "validate", broken, "--json")
    data = json.loads(ended.out)
    assert (ended.code, data["prefix"], data["ranks"]) == (2, broken, 1)
    assert [(one["kind"], one["node"]) for one in data["findings"]] == [
        ("missing-dependency", 3),
        ("cycle", 1),
        ("not-compared", None),
    ]


def test_show_prints_counts_traffic_and_the_critical_path(cli, sound):
    ended = cli("trace", "show", sound)
    assert (ended.code, ended.err) == (0, "")
    lines = [line.split() for line in ended.out.splitlines()]
    assert ["0", "0", "2", "1", "2", "5", "us", "0", "5", "us"] in lines
    assert ["ALL_REDUCE", "-", "2", "2", "64", "B"] in lines
    assert "class 0, critical path: 5 us, 1 nodes: 1" in ended.out


def test_show_as_json_and_of_one_rank(cli, sound):
    data = json.loads(cli("trace", "show", sound, "--rank", "1", "--json").out)
    assert (data["ranks"], data["classes"][0]["first_rank"], data["classes"][0]["critical"]["node_ids"]) == (1, 1, [1])


@pytest.mark.parametrize("command", [["show"], ["convert", "--output", "never.json"]])
def test_a_rank_that_there_is_not(cli, sound, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = cli("trace", *command, sound, "--rank", "2")
    assert ended.code == 2
    assert "--rank 2" in ended.error
    assert not (tmp_path / "never.json").exists()


def test_show_refuses_a_broken_trace(cli, broken):
    assert cli("trace", "show", broken).code == 2


def test_convert_writes_one_json(cli, sound, tmp_path):
    ended = cli("trace", "convert", sound, "--output", str(tmp_path / "out.json"))
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"wrote {tmp_path / 'out.json'}, ")
    data = json.loads((tmp_path / "out.json").read_text())
    assert [one["file"] for one in data["files"]] == ["t.0.et", "t.1.et"]


@pytest.mark.parametrize("command", [["validate"], ["show"], ["convert", "--output", "never.json"]])
def test_a_trace_that_is_not_there(cli, command, tmp_path):
    ended = cli("trace", *command, str(tmp_path / "nothing"))
    assert ended.code == 2
    assert "there is no file nothing.0.et" in ended.error
