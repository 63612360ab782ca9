"""Broken files: never a crash, never a hang, always a trace or one line that names the file."""

import random
import time

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.chakra.convert import convert
from r2cc_simai.chakra.folder import read_folder
from r2cc_simai.chakra.summary import summarise_trace
from r2cc_simai.chakra.validate import validate
from r2cc_simai.chakra.write import write_workload
from r2cc_simai.engine._core import TraceError, metadata_json, nodes_json, read_trace
from r2cc_simai.errors import InputError

COLUMNS = ("id", "type", "comm_type", "name", "group", "peer", "bytes", "tag", "num_ops", "tensor_bytes", "duration_s")


def outcome(data: bytes) -> bool:
    """Whether the bytes are a sound trace; everything that can be asked of it is asked."""
    raw = np.frombuffer(data, dtype=np.uint8)
    read = read_trace(raw)
    trace = read.trace
    assert all(len(getattr(trace, name)) == len(trace) for name in COLUMNS)
    assert all(one.reason and one.kind for one in read.findings)
    assert (read.errors > 0) == any(one.severity == "error" for one in read.findings)
    try:
        _, at = metadata_json(raw)
        while at < len(raw):
            _, at = nodes_json(raw, at, 100)
    except TraceError:
        pass
    return read.errors == 0


def mutated(draw: random.Random, data: bytes, other: bytes) -> bytes:
    at = draw.randrange(len(data) + 1)
    match draw.randrange(5):
        case 0:
            return data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :]
        case 1:
            return data[:at]
        case 2:
            return data[:at] + draw.randbytes(draw.randrange(1, 8)) + data[at:]
        case 3:
            return data[:at] + data[at + draw.randrange(1, 40) :]
        case _:
            return data[:at] + other[draw.randrange(len(other)) :]


def sample(et) -> tuple[bytes, bytes]:
    mixed = [et.comp(1), et.coll(2, 64, deps=[1]), et.send(3, 1, 5, deps=[2]), et.recv(4, 1, 6, deps=[3])]
    long = [et.node(k, et.COLL, [k - 1] if k else [], comm_type=k % 8, comm_size=k, pg_name=str(k)) for k in range(9)]
    return et.file(mixed), et.file(long, version="0.0.3")


def test_ten_thousand_mutated_files(et):
    """Bit flips, truncations, insertions, deletions and spliced files, one to four of them each; seeded."""
    first, second = sample(et)
    sound = 0
    begun = time.monotonic()
    for seed in range(10_000):
        draw = random.Random(seed)
        data = first
        for _ in range(draw.randint(1, 4)):
            data = mutated(draw, data, second)
        sound += outcome(data)
    assert 50 < sound < 9_000
    assert time.monotonic() - begun < 60  # two seconds where nothing else runs


@given(st.binary(max_size=60))
def test_any_bytes(data):
    outcome(data)
    outcome(b"\x07\x0a\x050.0.4" + data)


def test_folders_with_mutated_files(workload_of, tmp_path):
    """Files, groups and manifest of a whole job: an InputError or a trace, from every reader."""
    write_workload(workload_of(tp=1, dp=1), tmp_path)
    paths = sorted(tmp_path.iterdir())
    originals = {path: path.read_bytes() for path in paths}
    refused = []
    for seed in range(300):
        draw = random.Random(seed)
        for path, data in originals.items():
            path.write_bytes(data)
        broken = draw.choice(paths)
        broken.write_bytes(mutated(draw, originals[broken], originals[draw.choice(paths)]))
        for use in (
            lambda: validate(tmp_path),
            lambda: summarise_trace(read_folder(tmp_path)),
            lambda: convert(tmp_path, tmp_path / "out.json"),
        ):
            try:
                use()
            except InputError as error:
                refused.append(str(error))
        (tmp_path / "out.json").unlink(missing_ok=True)
    assert 100 < len(refused) < 900
    assert not any("\n" in line for line in refused)
