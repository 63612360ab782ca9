"""Pages of the Python reference: one for each part of the package, made by autodoc."""

import re
from collections.abc import Mapping

from docs_walk import modules

PARTS: Mapping[str, tuple[str, ...]] = {
    "Cluster": ("r2cc_simai.cluster",),
    "Failures": ("r2cc_simai.failures",),
    "Schedules": (
        "r2cc_simai.collectives.schedule",
        "r2cc_simai.collectives.checker",
        "r2cc_simai.collectives.operations",
    ),
    "Strategies": ("r2cc_simai.strategies.base", "r2cc_simai.strategies.registry"),
    "Engine": ("r2cc_simai.engine.run",),
    "Runners": (
        "r2cc_simai.runners.collective",
        "r2cc_simai.runners.rows",
        "r2cc_simai.runners.sweep",
        "r2cc_simai.runners.compare",
    ),
    "Courses": ("r2cc_simai.runners.courses",),
    "Training": ("r2cc_simai.training",),
    "Chakra traces": ("r2cc_simai.chakra",),
    "Measured logs": ("r2cc_simai.measured.model", "r2cc_simai.measured.read"),
    "Results": ("r2cc_simai.results.table", "r2cc_simai.results.files", "r2cc_simai.results.statistics"),
    "Baselines": ("r2cc_simai.baseline",),
    "Errors": ("r2cc_simai.errors",),
}


def api_pages() -> dict[str, str]:
    """reStructuredText by file name; a part that is missing here has no page."""
    pages = {}
    for title, packages in PARTS.items():
        names = [module.__name__ for package in packages for module in _found(package)]
        if names:
            stem = re.sub(r"\W+", "-", title.lower())
            pages[stem] = "\n".join([title, "=" * len(title), "", *(_module(name) for name in names)])
    return pages


def _found(package: str) -> list:  # type: ignore[type-arg]
    try:
        found = list(modules(package))
    except ImportError:
        return []
    return [module for module in found if _has_members(module)]


def _has_members(module: object) -> bool:
    name = module.__name__  # type: ignore[attr-defined]
    return any(not key.startswith("_") and getattr(v, "__module__", "") == name for key, v in vars(module).items())


def _module(name: str) -> str:
    short = name.removeprefix("r2cc_simai.")
    return f"{short}\n{'-' * len(short)}\n\n.. automodule:: {name}\n   :members:\n"
