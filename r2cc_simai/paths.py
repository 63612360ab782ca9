"""Where the files that ship with the project lie.

A checkout keeps them beside the package (`workloads/`, `reports/`); a wheel carries copies in
`r2cc_simai/_data/`. The wheel's copy wins, so that an installed package never reads a stray folder.
"""

from pathlib import Path

from r2cc_simai.errors import MissingComponentError

_PACKAGE = Path(__file__).resolve().parent


def _shipped(name: str) -> Path:
    for root in (_PACKAGE / "_data", _PACKAGE.parent):
        if (root / name).is_dir():
            return root / name
    raise MissingComponentError(f"{name}/: not found beside the package; reinstall r2cc-simai")


def clusters_dir() -> Path:
    """Folder of the shipped cluster presets (YAML)."""
    return _shipped("workloads") / "clusters"


def scenarios_dir() -> Path:
    """Folder of the shipped sweep scenarios (YAML)."""
    return _shipped("workloads") / "scenarios"


def failures_dir() -> Path:
    """Folder of the shipped failure patterns (YAML)."""
    return _shipped("workloads") / "failures"


def labs_dir() -> Path:
    """Folder of the shipped labs (YAML)."""
    return _shipped("workloads") / "labs"


def reliability_dir() -> Path:
    """Folder of the shipped reliability tables (YAML)."""
    return _shipped("workloads") / "reliability"


def published_dir() -> Path:
    """Folder of the published and measured figures (CSV with their sources)."""
    return _shipped("reports") / "published"


def baselines_dir() -> Path:
    """Folder of the shipped baselines and their tolerances (CSV, YAML)."""
    return _shipped("reports") / "baselines"
