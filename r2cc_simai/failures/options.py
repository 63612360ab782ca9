"""Options of a failure pattern: what its function takes, read from the text that a user wrote."""

import inspect
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from r2cc_simai.errors import InputError
from r2cc_simai.units import format_time, parse_duration

_DURATION = "a time"
_SHARE = "a fraction"

Seconds = Annotated[float, _DURATION]
"""Type of an option that is a time: `0.5`, `10ms`, `4h`; seconds inside."""
Fraction = Annotated[float, _SHARE]
"""Type of an option from 0 to 1: `0.5` or `1/4`."""

_BETWEEN_OPTIONS = re.compile(r",(?![^\[]*\])")  # not the commas of server[0,2]
_PLAIN = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


@dataclass(frozen=True)
class Option:
    """One option: its name, what it takes (a type, a marker of this file or the allowed words), and its default."""

    name: str
    parameter: str
    kind: type | str | tuple[str, ...]
    default: Any
    required: bool

    @property
    def takes(self) -> str:
        """`a time`, `a whole number`, `even or weighted`."""
        if isinstance(self.kind, tuple):
            return " or ".join(self.kind)
        return self.kind if isinstance(self.kind, str) else _PLAIN[self.kind]

    @property
    def shown(self) -> str:
        """`count=3` with the default, as a user would write it; `component=...` where there is none."""
        if self.required:
            return f"{self.name}=..."
        if self.default in (None, "", math.inf):
            return f"[{self.name}=...]"
        if isinstance(self.default, bool):
            return f"{self.name}={str(self.default).lower()}"
        if self.kind == _DURATION:
            return f"{self.name}={_duration(self.default)}"
        return f"{self.name}={self.default:g}" if isinstance(self.default, float) else f"{self.name}={self.default}"

    def read(self, text: str) -> Any:
        """The value of a text.

        Raises:
            InputError: the option does not take it.
        """
        value = self._value(text)
        if value is None:
            raise InputError(f"{self.name}={text}: {self.takes} is wanted")
        return value

    def _value(self, text: str) -> Any:
        if isinstance(self.kind, tuple):
            return text if text in self.kind else None
        if self.kind is str:
            return text or None
        if self.kind is bool:
            return {"true": True, "false": False}.get(text.lower())
        try:
            if self.kind is int:
                return int(text)
            if self.kind == _DURATION:
                return _at_least(parse_duration(text), 0.0)
            top, _, bottom = text.partition("/") if self.kind == _SHARE else (text, "", "")
            number = float(top) / float(bottom) if bottom else float(top)
        except (ValueError, ZeroDivisionError, InputError):
            return None
        if not math.isfinite(number) or (self.kind == _SHARE and not 0 <= number <= 1):
            return None
        return number


def options_of(function: Callable[..., Any]) -> tuple[Option, ...]:
    """The options of a pattern: every parameter after the site.

    Raises:
        InputError: the function takes no site, or a parameter has a type that no option can have.
    """
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or parameters[0].kind not in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    ):
        raise InputError("its first parameter must be the site")
    hints = get_type_hints(function, include_extras=True)
    return tuple(_option(one, hints.get(one.name)) for one in parameters[1:])


def split_options(text: str) -> list[tuple[str, str]]:
    """Keys and values of `component=server[0,2].nic1,count=3`, in order.

    Raises:
        InputError: a part is not key=value, or a key stands twice.
    """
    pairs: list[tuple[str, str]] = []
    for part in _BETWEEN_OPTIONS.split(text) if text else []:
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not key or not equals:
            raise InputError(f"{part.strip()!r}: options are written key=value, with commas between")
        if any(key == other for other, _ in pairs):
            raise InputError(f"{key}: stands twice")
        pairs.append((key, value))
    return pairs


def _option(parameter: inspect.Parameter, hint: Any) -> Option:
    allowed = "int, float, str, bool, Seconds, Fraction or Literal[...]"
    kind = _kind(hint)
    if parameter.kind in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL) or kind is None:
        raise InputError(f"parameter {parameter.name}: its type must be {allowed}")
    required = parameter.default is inspect.Parameter.empty
    name = parameter.name.rstrip("_")  # `for_`: the option `for` is a word of Python
    return Option(name, parameter.name, kind, None if required else parameter.default, required)


def _kind(hint: Any) -> type | str | tuple[str, ...] | None:
    if get_origin(hint) in (Union, UnionType):  # `Seconds | None`
        inner = [one for one in get_args(hint) if one is not NoneType]
        return _kind(inner[0]) if len(inner) == 1 else None
    if get_origin(hint) is Annotated:
        marker = hint.__metadata__[0]
        return marker if marker in (_DURATION, _SHARE) else _kind(get_args(hint)[0])
    if get_origin(hint) is Literal:
        return tuple(map(str, get_args(hint)))
    return hint if hint in _PLAIN else None


def _at_least(number: float, least: float) -> float | None:
    return number if number >= least else None


def _duration(seconds: float) -> str:
    if seconds >= 3600 and seconds % 3600 == 0:
        return f"{seconds / 3600:g}h"
    if seconds >= 60 and seconds % 60 == 0:
        return f"{seconds / 60:g}min"
    return "0" if seconds == 0 else format_time(seconds).replace(" ", "")
