"""The linear algebra of a rank works with one thread, and as before afterwards."""

import numpy as np
import pytest

from r2cc_simai.lab.training import blas


def counts() -> list[int]:
    found = [blas._Threads.of(path) for path in blas._libraries()]
    return [int(one.count()) for one in found if one is not None]


def test_one_thread_meanwhile() -> None:
    np.eye(2) @ np.eye(2)
    before = counts()
    if not before:
        pytest.skip("NumPy has another library than OpenBLAS here")
    with blas.one_thread():
        assert counts() == [1] * len(before)
    assert counts() == before


def test_other_libraries_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "_libraries", lambda: ["libm.so.6"])
    with blas.one_thread():
        assert counts() == []
