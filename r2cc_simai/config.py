"""Reading YAML files into pydantic models, with errors of one line: file, key, and what is allowed."""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from r2cc_simai.errors import InputError


class Strict(BaseModel):
    """A part of a file: unknown keys are errors, values never change after reading."""

    model_config = ConfigDict(extra="forbid", frozen=True)


M = TypeVar("M", bound=BaseModel)


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping that a YAML file holds.

    Raises:
        InputError: no such file, no YAML, or no mapping.
    """
    import yaml

    try:
        data = yaml.safe_load(path.read_text())
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or 'cannot be read'}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a text file; a YAML file is wanted") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" line {mark.line + 1}:" if mark else ""
        raise InputError(f"{path}:{where} not YAML: {getattr(error, 'problem', error)}") from None
    if not isinstance(data, dict):
        raise InputError(f"{path}: a mapping of keys to values is wanted")
    return data


def validated(model: type[M], data: Mapping[str, Any], source: str) -> M:
    """The model that `data` describes.

    Raises:
        InputError: one line for the first thing that is wrong, naming `source`, the key and what is allowed.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise InputError(f"{source}: {_first_line(model, error)}") from None


def _first_line(model: type[BaseModel], error: ValidationError) -> str:
    # A key that nobody knows explains one that is missing, so it is told first.
    first = min(error.errors(include_url=False), key=lambda e: e["type"] != "extra_forbidden")
    loc, tagged = first["loc"], _without_tags(model, first["loc"])
    key = ".".join(str(part) for part in tagged)
    if first["type"] == "extra_forbidden":
        allowed = _keys_at(model, loc[:-1])
        near = difflib.get_close_matches(str(loc[-1]), allowed, n=1, cutoff=0.4)
        hint = f"; {near[0]} was meant?" if near else ""
        return f"{key}: unknown key{hint} (allowed: {', '.join(allowed)})"
    if first["type"] == "missing":
        return f"{key}: missing"
    message = first["msg"].removeprefix("Value error, ")
    return (
        f"{key}: {message}, got {first['input']!r}"
        if first["type"] != "value_error"
        else f"{key}: {message}".lstrip(": ")
    )


def _keys_at(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """Keys that are allowed at a place of the file, found by walking the model along it."""
    return sorted(_walk(model, loc)[0].model_fields)


def _without_tags(model: type[BaseModel], loc: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """A place of the file as its writer knows it: pydantic adds the tag of a section that comes in several kinds."""
    return _walk(model, loc)[1]


def _walk(model: type[BaseModel], loc: tuple[int | str, ...]) -> tuple[type[BaseModel], tuple[int | str, ...]]:
    current, kinds, seen = model, [model], list[int | str]()
    for part in loc:
        tagged = [kind for kind in kinds if len(kinds) > 1 and _has_tag(kind, part)]
        if tagged:
            current, kinds = tagged[0], tagged
            continue
        seen.append(part)
        if isinstance(part, str) and part in current.model_fields:
            kinds = _models_in(current.model_fields[part].annotation) or kinds
            current = kinds[0]
    return current, tuple(seen)


def _has_tag(kind: type[BaseModel], part: int | str) -> bool:
    return any(part in get_args(field.annotation) for field in kind.model_fields.values())


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in _models_in(inner)]
