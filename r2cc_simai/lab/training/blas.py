"""How many threads the linear algebra uses: one for every rank, since ranks share the cores."""

import contextlib
import ctypes
from collections.abc import Iterator
from pathlib import Path

_NAMES = ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}")


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """NumPy's OpenBLAS works with one thread meanwhile. Where NumPy has another library, nothing is changed."""
    found = [one for path in _libraries() if (one := _Threads.of(path)) is not None]
    before = [one.count() for one in found]
    try:
        for one in found:
            one.set(1)
        yield
    finally:
        for one, count in zip(found, before, strict=True):
            one.set(count)


class _Threads:
    """The two functions of a library that is loaded already."""

    def __init__(self, library: ctypes.CDLL, name: str) -> None:
        self.count = library[name.format("get_num_threads")]
        self.set = library[name.format("set_num_threads")]

    @staticmethod
    def of(path: str) -> "_Threads | None":
        library = ctypes.CDLL(path)
        name = next((n for n in _NAMES if hasattr(library, n.format("set_num_threads"))), None)
        return None if name is None else _Threads(library, name)


def _libraries() -> list[str]:
    """OpenBLAS libraries that this process has loaded."""
    try:
        maps = Path("/proc/self/maps").read_text()
    except OSError:
        return []
    paths = {line.split(maxsplit=5)[-1] for line in maps.splitlines()}
    return sorted(path for path in paths if "openblas" in Path(path).name and ".so" in path)
