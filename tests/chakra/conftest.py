"""Chakra files written by hand, field by field, and a small workload."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from r2cc_simai.chakra.wire import bytes_field, varint, varint_field
from r2cc_simai.workloads.manifest import Manifest
from r2cc_simai.workloads.program import Program, Workload


class Et:
    """Makers of nodes and files. Attributes: whole numbers as int64_val, booleans as bool_val, texts as string_val."""

    METADATA, COMP, SEND, RECV, COLL = 1, 4, 5, 6, 7
    ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER = 0, 2, 7

    @staticmethod
    def attribute(name: str, value: int | bool | str) -> bytes:
        raw = bytes_field(1, name.encode())
        if isinstance(value, bool):
            raw += varint_field(27, value)
        elif isinstance(value, int):
            raw += varint_field(9, value & (1 << 64) - 1)
        else:
            raw += bytes_field(29, value.encode())
        return bytes_field(10, raw)

    @classmethod
    def node(
        cls, id_: int, kind: int, deps: Iterable[int] = (), *, raw: bytes = b"", micros: int = 0, **attributes: Any
    ) -> bytes:
        body = varint_field(1, id_) + varint_field(3, kind) + b"".join(varint_field(5, dep) for dep in deps)
        body += varint_field(7, micros) if micros else b""
        body += b"".join(cls.attribute(name, value) for name, value in attributes.items()) + raw
        return varint(len(body)) + body

    @classmethod
    def comp(cls, id_: int, deps: Iterable[int] = (), micros: int = 1) -> bytes:
        return cls.node(id_, cls.COMP, deps, micros=micros)

    @classmethod
    def coll(cls, id_: int, size: int, group: str = "1", kind: int = ALL_REDUCE, deps: Iterable[int] = ()) -> bytes:
        return cls.node(id_, cls.COLL, deps, comm_type=kind, comm_size=size, pg_name=group)

    @classmethod
    def send(cls, id_: int, dst: int, size: int, tag: int = 0, deps: Iterable[int] = ()) -> bytes:
        return cls.node(id_, cls.SEND, deps, comm_dst=dst, comm_size=size, comm_tag=tag)

    @classmethod
    def recv(cls, id_: int, src: int, size: int, tag: int = 0, deps: Iterable[int] = ()) -> bytes:
        return cls.node(id_, cls.RECV, deps, comm_src=src, comm_size=size, comm_tag=tag)

    @staticmethod
    def file(nodes: Iterable[bytes], version: str = "0.0.4") -> bytes:
        head = bytes_field(1, version.encode())
        return varint(len(head)) + head + b"".join(nodes)


Job = Callable[..., Path]
WorkloadOf = Callable[..., Workload]


@pytest.fixture(scope="session")
def et() -> type[Et]:
    """Return makers of Chakra nodes and files."""
    return Et


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """Return a function that writes the files t.<rank>.et of a job, and its groups; it returns FOLDER/t."""

    def write(ranks: Mapping[int, Iterable[bytes] | bytes], groups: Mapping[str, list[int]] | None = None) -> Path:
        for rank, nodes in ranks.items():
            data = nodes if isinstance(nodes, bytes) else Et.file(nodes)
            (tmp_path / f"t.{rank}.et").write_bytes(data)
        if groups is not None:
            (tmp_path / "t.groups.json").write_text(json.dumps(groups))
        return tmp_path / "t"

    return write


def _ints(values: Iterable[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(list(values), dtype=np.int64)


def _program(last: bool) -> Program:
    """A stage: compute, AllReduce over tp, send to the next stage or receive, AllReduce over dp, compute."""
    first, other = (6, 5) if last else (5, 6)  # the last stage receives first
    nodes = [
        # name, kind, comm_type, ns, ops, tensor, bytes, group, peer, tag, deps
        (0, 4, -1, 1_500_700, 10**12, 4096, 0, -1, -1, -1, ()),
        (1, 7, 0, 0, 0, 0, 1 << 20, 0, -1, -1, (0,)),
        (2, first, -1, 0, 0, 0, 300, -1, 0, 7, (1,)),
        (2, other, -1, 0, 0, 0, 300, -1, 1, 8, (1,)),
        (3, 7, 7, 0, 0, 0, 1 << 22, 1, -1, -1, (2, 3)),
        (0, 4, -1, 700, 0, 0, 0, -1, -1, -1, (4, 0)),
    ]
    columns = [_ints(column) for column in list(zip(*nodes, strict=True))[:10]]
    deps = [node[10] for node in nodes]
    offsets = _ints([0, *np.cumsum([len(one) for one in deps]).tolist()])
    return Program(
        ("layer.forward", "tp reduce", "stage", "gradients"),
        *columns,
        offsets,
        _ints(dep for one in deps for dep in one),
    )


def _workload(name: str = "small", tp: int = 2, dp: int = 3) -> Workload:
    """Two pipeline stages; ranks count tp first, then dp, then the stage. Stage 0 sends to stage 1 and back."""
    stage = tp * dp
    ranks = range(2 * stage)
    groups = [tuple(range(base, base + tp)) for base in range(0, 2 * stage, tp)]
    tp_groups = len(groups)
    groups += [tuple(range(s * stage + t, (s + 1) * stage, tp)) for s in (0, 1) for t in range(tp)]
    rank_groups = [(r // tp, tp_groups + r // stage * tp + r % tp) for r in ranks]
    across = [(r + stage) % (2 * stage) for r in ranks]
    manifest = Manifest(
        version="1",
        generator="test",
        model={},
        options={},
        compute_times="none",
        layout={"tp": tp, "dp": dp, "pp": 2},
        classes=("stage 0", "stage 1"),
        parameters=1,
        parameters_per_rank=(1, 1),
        flops=2,
        model_flops=2,
        tokens=1,
        traffic=(),
    )
    return Workload(
        name,
        (_program(last=False), _program(last=True)),
        _ints(r // stage for r in ranks),
        tuple(groups),
        ("tp",) * tp_groups + ("dp",) * (2 * tp),
        np.array(rank_groups, dtype=np.int64),
        np.array([(a, a) for a in across], dtype=np.int64),
        _ints(r % stage // tp for r in ranks),
        manifest,
    )


@pytest.fixture(scope="session")
def workload_of() -> WorkloadOf:
    """Return a function that makes a workload of two stages with tp and dp; its two peer roles are one rank."""
    return _workload
