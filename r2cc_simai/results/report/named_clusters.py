"""Which file a run's cluster is described in: rows have its name alone."""

import json
from pathlib import Path
from typing import Any

from r2cc_simai.results.store import MANIFEST


def named_clusters(run_dir: Path) -> dict[str, str]:
    """Return the clusters of a run's scenario by the names that rows have: `lab.yml` by `lab`; empty without one."""
    try:
        content = json.loads((run_dir / MANIFEST).read_bytes())["scenario"]["content"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return {Path(name).stem if Path(name).suffix else name: name for name in _clusters(content)}


def _clusters(content: Any) -> list[str]:
    blocks = content.values() if isinstance(content, dict) else ()
    lists = [block for block in blocks if isinstance(block, list)]
    found = [one.get("clusters") for block in lists for one in block if isinstance(one, dict)]
    return [name for names in found if isinstance(names, list) for name in names if isinstance(name, str)]
