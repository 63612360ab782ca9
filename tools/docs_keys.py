"""Reference of the keys of YAML files, from the models that read them."""

import inspect
import re
from collections.abc import Iterator
from collections.abc import Mapping as MappingABC
from collections.abc import Sequence as SequenceABC
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Mapping, Sequence, Union, get_args, get_origin  # noqa: UP035

from docs_page import code, page, table, text
from docs_walk import modules

_PLAIN = {str: "text", int: "whole number", float: "number", bool: "true or false", Path: "path", Any: "any"}
TITLES = {
    "ClusterSpec": "Cluster file",
    "Scenario": "Scenario file",
    "LabSpec": "Lab file",
    "TrainingSpec": "Training file of the lab",
    "ReliabilityTable": "Reliability table",
    "PatternSpec": "Pattern file",
    "Rules": "Tolerance file of `baseline`",
    "Model": "Model file",
    "Gpu": "GPU file",
    "MegatronOptions": "Options of `trace megatron`, and of `megatron:` in a scenario",
    "VllmOptions": "Options of `trace vllm`",
    "RlhfOptions": "Options of `trace rlhf`, and of `rlhf:` in a scenario",
    "Manifest": "Manifest of a trace folder",
}
"""Headings of the models that are files; others that no model refers to are named after themselves."""


def keys_page() -> str:
    """Every file with its keys, and every part of a file after the file that it belongs to first."""
    models = list(all_models())
    inner = {part for model in models for part in parts_of(model)}
    roots = [model for model in models if model not in inner]
    roots.sort(key=lambda m: list(TITLES).index(m.__name__) if m.__name__ in TITLES else len(TITLES))
    sections, seen = [], set()
    for root in roots:
        heading = TITLES.get(root.__name__, root.__name__)
        sections.append(f"## {heading}\n\n{_section(root)}")
        for part in _below(root):
            if part not in seen:
                seen.add(part)
                sections.append(f"### {part.__name__}\n\n{_section(part)}")
    lead = "Keys of the YAML files, their types and defaults. Unknown keys are errors; a key's name ends with its unit."
    return page("Keys of files", lead, *sections)


def all_models() -> Iterator[type[Any]]:
    """Every model of a file's part, in the order of modules."""
    from r2cc_simai.config import Strict

    for module in modules():
        for _, value in inspect.getmembers(module, inspect.isclass):
            if issubclass(value, Strict) and value is not Strict and value.__module__ == module.__name__:
                yield value


def parts_of(model: type[Any]) -> list[type[Any]]:
    """Models that its fields refer to."""
    from r2cc_simai.config import Strict

    found = [t for field in model.model_fields.values() for t in _types(field.annotation)]
    return [t for t in dict.fromkeys(found) if inspect.isclass(t) and issubclass(t, Strict)]


def _below(model: type[Any]) -> list[type[Any]]:
    found: dict[type[Any], None] = {}
    for part in parts_of(model):
        found |= dict.fromkeys([part, *_below(part)]) if part not in found else {}
    return list(found)


def _types(annotation: Any) -> Iterator[Any]:
    yield annotation
    for argument in get_args(annotation):
        yield from _types(argument)


def _section(model: type[Any]) -> str:
    said = _said(model)
    rows = [
        [code(name), type_name(field), _default(field), text(field.description or said.get(name, ""))]
        for name, field in model.model_fields.items()
    ]
    columns = ("key", "type", "default", "meaning") if any(row[3] for row in rows) else ("key", "type", "default")
    return f"{text(model.__doc__)}\n\n{table(columns, (row[: len(columns)] for row in rows))}"


def type_name(field: Any) -> str:
    """The type of a field as a reader of YAML names it, with its limits; parts of files are links."""
    limits = _limits(field.metadata)
    return _named(field.annotation) + (f" {limits}" if limits else "")


def _named(annotation: Any) -> str:
    from r2cc_simai.config import Strict

    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        limits = _limits([m for info in arguments[1:] for m in getattr(info, "metadata", [info])])
        return _named(arguments[0]) + (f" {limits}" if limits else "")
    if origin is Literal:
        return " or ".join(code(choice) for choice in arguments)
    if origin in (Union, UnionType):
        return " or ".join(_named(one) for one in arguments if one is not type(None))
    if origin in (list, tuple, set, Sequence, SequenceABC):
        return "list of " + " or ".join(dict.fromkeys(_named(one) for one in arguments if one is not Ellipsis))
    if origin in (dict, Mapping, MappingABC):
        return f"map from {_named(arguments[0])} to {_named(arguments[1])}"
    if inspect.isclass(annotation) and issubclass(annotation, Strict):
        heading = TITLES.get(annotation.__name__, annotation.__name__)
        return f"[{annotation.__name__}](#{re.sub(r'[^a-z0-9 -]', '', heading.lower()).replace(' ', '-')})"
    return _PLAIN.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _limits(metadata: Any) -> str:
    words = [
        f"{sign} {getattr(one, name):g}"
        for one in metadata
        for name, sign in (("gt", ">"), ("ge", "≥"), ("lt", "<"), ("le", "≤"))
        if isinstance(getattr(one, name, None), int | float)
    ]
    return ", ".join(words)


def _default(field: Any) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None or value in ("", (), [], {}):
        return ""
    shown = str(value)
    return code(value) if len(shown) <= 40 else "see below"


def _said(model: type[Any]) -> dict[str, str]:
    """What stands in a docstring below a field, or in a comment `#:` before it."""
    from sphinx.pycode import ModuleAnalyzer

    found = ModuleAnalyzer.for_module(model.__module__).find_attr_docs()
    return {name: " ".join(lines) for (owner, name), lines in found.items() if owner == model.__name__}
