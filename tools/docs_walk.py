"""The modules of the package that can be imported here."""

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType


def module_names(package: str = "r2cc_simai") -> Iterator[str]:
    """Names of a package and of every public module below it, or of the one module."""
    yield package
    found = importlib.import_module(package)
    for info in pkgutil.walk_packages(getattr(found, "__path__", []), f"{package}.", onerror=lambda _: None):
        if not any(part.startswith("_") for part in info.name.split(".")):
            yield info.name


def modules(package: str = "r2cc_simai") -> Iterator[ModuleType]:
    """Every public module that can be imported; one whose extra is missing is left out."""
    for name in module_names(package):
        try:
            yield importlib.import_module(name)
        except ImportError:
            continue
