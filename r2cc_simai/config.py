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
    loc = first["loc"]
    key = ".".join(str(part) for part in loc)
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
    current: type[BaseModel] = model
    for part in loc:
        if isinstance(part, str) and part in current.model_fields:
            found = _model_in(current.model_fields[part].annotation)
            if found is not None:
                current = found
    return sorted(current.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in get_args(annotation):
        found = _model_in(inner)
        if found is not None:
            return found
    return None
