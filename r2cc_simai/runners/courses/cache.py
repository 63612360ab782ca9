"""Costs that have been simulated, by what they depend on: in memory, and in a folder that processes share."""

import hashlib
import json
import os
import threading
from pathlib import Path

from r2cc_simai.runners.courses.costs import Costs


class CostCache:
    """Keeps costs under keys. In a folder each is a file of its own, `HASH.json`, which appears whole or not at all.

    A file that is torn or no cost of its key is taken for none and written again. `lookups` counts what was asked for,
    `hits` what was there.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._known: dict[str, Costs] = {}
        self.lookups = 0
        self.hits = 0
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def get(self, key: str) -> Costs | None:
        """What is known under a key."""
        self.lookups += 1
        name = _name(key)
        found = self._known.get(name)
        if found is None and self._folder is not None:
            found = _read(self._folder / f"{name}.json", key)
            if found is not None:
                self._known[name] = found
        self.hits += found is not None
        return found

    def put(self, key: str, cost: Costs) -> None:
        """Keeps a cost.

        Raises:
            OSError: the folder cannot be written to.
        """
        name = _name(key)
        self._known[name] = cost
        if self._folder is not None:
            _write(self._folder / f"{name}.json", {"key": key, "cost": cost})


def _name(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _read(path: Path, key: str) -> Costs | None:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(content, dict) or content.get("key") != key or not isinstance(content.get("cost"), dict):
        return None
    cost: Costs = content["cost"]
    return cost


def _write(path: Path, content: dict[str, object]) -> None:
    fresh = path.with_name(f".{path.stem}.{os.getpid()}.{threading.get_ident()}.part")
    fresh.write_text(json.dumps(content), encoding="utf-8")
    fresh.replace(path)
