"""Finding the cluster that a user names: a preset, a preset with a number of servers, or a file."""

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.spec import ClusterSpec
from r2cc_simai.config import read_yaml, validated
from r2cc_simai.errors import InputError
from r2cc_simai.paths import clusters_dir

_SIZED = re.compile(r"(.+?)x(\d+)")


def preset_names() -> list[str]:
    """Names of the shipped presets, sorted."""
    return sorted(path.stem for path in clusters_dir().glob("*.yml"))


@lru_cache(maxsize=64)
def load_cluster(name: str) -> Cluster:
    """The cluster `name`: a preset (`r7525`), `NAMExN` for N servers of one (`h100x16`), or a YAML file.

    Raises:
        InputError: there is no such preset or file, or the file is wrong.
    """
    if name in preset_names():
        path = clusters_dir() / f"{name}.yml"
        return _build(name, read_yaml(path), str(path))
    sized = _SIZED.fullmatch(name)
    if sized and sized[1] in preset_names():
        path = clusters_dir() / f"{sized[1]}.yml"
        return _build(name, read_yaml(path) | {"servers": int(sized[2])}, name)
    path = Path(name)
    if path.suffix in (".yml", ".yaml") or path.is_file():
        return _build(path.stem, _with_preset(read_yaml(path), path), str(path))
    raise InputError(
        f"{name!r}: no such cluster; write a preset ({', '.join(preset_names())}), "
        "PRESETxSERVERS (h100x16) or a .yml file"
    )


def _build(name: str, data: dict[str, Any], source: str) -> Cluster:
    spec = validated(ClusterSpec, data, source)
    try:
        return Cluster(name, spec)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def _with_preset(data: dict[str, Any], path: Path) -> dict[str, Any]:
    """A file that starts from a preset: its own keys win, section by section."""
    if "preset" not in data:
        return data
    own = dict(data)
    preset = own.pop("preset")
    if preset not in preset_names():
        raise InputError(f"{path}: preset: no preset {preset!r} (allowed: {', '.join(preset_names())})")
    base = read_yaml(clusters_dir() / f"{preset}.yml")
    base["failover"] = _without_replaced(base["failover"], own.get("failover"))
    fabric = own.get("fabric")
    if isinstance(fabric, dict) and fabric.get("kind", base["fabric"]["kind"]) != base["fabric"]["kind"]:
        base["fabric"] = {}  # the other keys of a kind mean nothing to another
    return _merge(base, own)


def _without_replaced(base: dict[str, Any], own: Any) -> dict[str, Any]:
    """The failover section of a preset without the detection that a file's own one replaces."""
    if not isinstance(own, dict):
        return base
    drop = set()
    if "detection_ms" in own or "detection" in own:
        drop.add("detection_ms")
    new, old = own.get("detection"), base.get("detection")
    same = isinstance(new, dict) and isinstance(old, dict) and new.get("mechanism", "") in ("", old.get("mechanism"))
    if "detection_ms" in own or ("detection" in own and not same):
        drop.add("detection")
    return {key: value for key, value in base.items() if key not in drop}


def _merge(base: dict[str, Any], top: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in top.items():
        both = isinstance(value, dict) and isinstance(base.get(key), dict)
        merged[key] = _merge(base[key], value) if both else value
    return merged
