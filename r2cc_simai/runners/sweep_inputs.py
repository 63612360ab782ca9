"""What the results of a sweep depend on beside its scenario: code, engine, shipped data, files that it names."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import r2cc_simai
from r2cc_simai.paths import clusters_dir, failures_dir, published_dir, reliability_dir

SHIPPED = ("clusters", "models", "gpus")
_WORDS = re.compile(r"[\s,]+")


def inputs_digest() -> str:
    """A hash over the code, the engine, presets, models, GPUs, patterns, reliability tables and published figures."""
    digest = hashlib.sha256(r2cc_simai.__version__.encode())
    package = Path(r2cc_simai.__file__).parent
    import r2cc_simai.engine._core as core

    files = [*sorted(package.rglob("*.py")), Path(core.__file__)]
    folders = [*(clusters_dir().parent / kind for kind in SHIPPED), failures_dir(), reliability_dir()]
    files += [path for folder in folders for path in sorted(folder.glob("*.yml"))]
    files += sorted(published_dir().glob("*.csv"))
    for path in files:
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def named_files(content: Any, base: Path | None) -> dict[str, str]:
    """The SHA-256 of each file that a scenario names, by the name as it stands there: clusters, models, pattern files,
    event logs and tables in the options of patterns. Names are looked for from `base` and from the current folder."""
    found: dict[str, str] = {}
    for name in sorted(set(_names(content))):
        for path in (Path(name), *([base / name] if base else [])):
            try:
                if path.is_file():
                    found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
            except (OSError, ValueError):  # no name that a file can have
                continue
    return found


def _names(value: Any) -> Iterator[str]:
    """Every text of a scenario, and in the options of patterns every value."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from _names(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _names(inner)
    elif isinstance(value, str):
        yield value
        for word in _WORDS.split(value):
            yield word.rpartition("=")[2]
