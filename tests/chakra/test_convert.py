"""A trace as JSON: valid, and the same content as the files by another decoder."""

import json

import pytest

from r2cc_simai.chakra import convert as module
from r2cc_simai.chakra.convert import convert
from r2cc_simai.chakra.wire import VARINT, bytes_field, read_fields, read_list, read_messages, varint_field
from r2cc_simai.chakra.write import write_workload
from r2cc_simai.errors import InputError

TYPES = {1: "METADATA", 4: "COMP", 5: "COMM_SEND", 6: "COMM_RECV", 7: "COMM_COLL"}


def decoded(data: bytes) -> list[dict[str, object]]:
    """The nodes of a file by the Python codec."""
    nodes = []
    for at, end in list(read_messages(data))[1:]:
        node = {"id": 0, "name": "", "ctrl_deps": [], "data_deps": [], "start_time_micros": 0, "duration_micros": 0}
        attributes: dict[str, object] = {}
        for number, kind, a, b in read_fields(data, at, end):
            if number in (4, 5):
                node["ctrl_deps" if number == 4 else "data_deps"] += read_list(data, kind, a, b)
            elif number == 10:
                fields = {key: (wire, x, y) for key, wire, x, y in read_fields(data, a, b)}
                (key,) = fields.keys() - {1}
                wire, x, y = fields[key]
                value = x if wire == VARINT else data[x:y].decode()
                attributes[data[fields[1][1] : fields[1][2]].decode()] = bool(value) if key == 27 else value
            elif number == 2:
                node["name"] = data[a:b].decode()
            elif number == 3:
                node["type"] = TYPES[a]
            elif number == 1:
                node["id"] = a
            elif number == 7:
                node["duration_micros"] = a
        nodes.append({**node, "attributes": attributes})
    return nodes


@pytest.mark.parametrize("fold", [False, True])
@pytest.mark.parametrize("piece", [1, 4 << 20])
def test_all_that_the_files_say_is_there(fold, piece, workload_of, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PIECE", piece)
    workload = workload_of()
    write_workload(workload, tmp_path / "in", fold=fold)
    told = []
    size = convert(tmp_path / "in", tmp_path / "out.json", progress=lambda *done: told.append(done))
    assert size == (tmp_path / "out.json").stat().st_size
    with (tmp_path / "out.json").open(encoding="utf-8") as file:
        data = json.load(file)
    assert (data["format"], data["name"]) == ("r2cc-simai-trace-1", "small")
    assert data["manifest"] == workload.manifest.model_dump(mode="json")
    assert list(data["groups"].values()) == [list(members) for members in workload.groups]
    assert [one["ranks"] for one in data["files"]] == (
        [list(range(6)), list(range(6, 12))] if fold else [[rank] for rank in range(12)]
    )
    assert told[-1] == (len(data["files"]), len(data["files"]))
    for one in data["files"]:
        assert one["metadata"] == {"version": "0.0.4", "attributes": {}}
        assert one["nodes"] == decoded((tmp_path / "in" / one["file"]).read_bytes())


def test_one_rank(workload_of, tmp_path):
    write_workload(workload_of(), tmp_path)
    convert(tmp_path / "small", tmp_path / "out.json", rank=7)
    (one,) = json.loads((tmp_path / "out.json").read_text())["files"]
    assert (one["file"], one["ranks"]) == ("small.7.et", [7])
    with pytest.raises(InputError, match=r"--rank 12: .*small has the traces of 12 ranks"):
        convert(tmp_path / "small", tmp_path / "out.json", rank=12)


def test_texts_that_json_has_to_escape(et, job, tmp_path):
    name = 'a "quoted"\\ name\twith\x01 control, \u00e9 and \U0001f600'
    raw = bytes_field(2, name.encode()) + bytes_field(8, bytes_field(2, b"[[4, 4]]"))
    prefix = job({0: [et.node(1, et.COMP, raw=raw + varint_field(7, 5), é="ü", big=-(2**62))]})
    convert(prefix, tmp_path / "out.json")
    (node,) = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["files"][0]["nodes"]
    assert node["name"] == name
    assert node["inputs"] == {"values": "", "shapes": "[[4, 4]]", "types": ""}
    assert "outputs" not in node
    assert node["attributes"] == {"é": "ü", "big": -(2**62)}


def test_a_trace_with_errors_of_sense_is_converted_but_not_one_that_cannot_be_read(et, job, tmp_path):
    prefix = job({0: [et.comp(1, [1, 99])], 1: et.file([et.comp(1)])[:-1]})
    convert(prefix, tmp_path / "out.json", rank=0)
    assert json.loads((tmp_path / "out.json").read_text())["files"][0]["nodes"][0]["data_deps"] == [1, 99]
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError, match=r"^t\.1\.et: it wants 6 bytes where 5 are left"):
        convert(prefix, tmp_path / "other.json")
    assert sorted(tmp_path.iterdir()) == before
    with pytest.raises(InputError, match=r"nowhere/out\.json: No such file"):
        convert(prefix, tmp_path / "nowhere" / "out.json", rank=0)
