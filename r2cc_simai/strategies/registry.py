"""The strategies by name, those of installed packages included, and reading `name:key=value,...`."""

import difflib
from dataclasses import fields
from functools import lru_cache
from typing import Any, get_args, get_type_hints

from r2cc_simai.errors import InputError
from r2cc_simai.strategies.adapcc import AdapCC
from r2cc_simai.strategies.auto import Auto
from r2cc_simai.strategies.balance import Balance
from r2cc_simai.strategies.base import Strategy
from r2cc_simai.strategies.hot_repair import HotRepair
from r2cc_simai.strategies.ideal import Ideal
from r2cc_simai.strategies.nccl import Nccl
from r2cc_simai.strategies.nccl_failover import NcclFailover
from r2cc_simai.strategies.optcc import OptCC
from r2cc_simai.strategies.plugins import load_plugin, plugin_names
from r2cc_simai.strategies.r2cc_allreduce import R2ccAllReduce

STRATEGIES: dict[str, type[Strategy]] = {
    s.name: s for s in (Ideal, Nccl, HotRepair, Balance, R2ccAllReduce, OptCC, NcclFailover, AdapCC, Auto)
}


@lru_cache(maxsize=256)
def parse_strategy(text: str) -> Strategy:
    """The strategy that `balance:split=weighted` or `r2cc-allreduce:k=8,y=opt` describes.

    Raises:
        InputError: no such strategy or option, or a value that the option does not take.
    """
    name, _, options = text.strip().partition(":")
    kind = strategy_class(name)
    values: dict[str, Any] = {}
    known = [f.name for f in fields(kind)]
    for option in filter(None, options.split(",")):
        key, _, value = option.partition("=")
        if key not in known:
            raise InputError(f"strategy {name}: no option {key!r} (allowed: {', '.join(known) or 'none'})")
        values[key] = _value(kind, key, value)
    return kind(**values)


def strategy_class(name: str) -> type[Strategy]:
    """The class of a name: one of this package's, else one that an installed package offers by entry point.

    Raises:
        InputError: no such strategy, or a plug-in that does not work.
    """
    kind = STRATEGIES.get(name) or load_plugin(name)
    if kind is None:
        known = [*STRATEGIES, *(other for other in plugin_names() if other not in STRATEGIES)]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; {near[0]} was meant?" if near else ""
        raise InputError(f"strategy {name!r}: unknown{hint} (allowed: {', '.join(known)})")
    return kind


def _value(kind: type[Strategy], key: str, text: str) -> Any:
    hint = get_type_hints(kind)[key]
    choices = get_args(hint)
    if choices:
        if text not in choices:
            raise InputError(f"strategy {kind.name}: {key}={text} (allowed: {', '.join(choices)})")
        return text
    try:
        number = hint(text)
    except ValueError:
        raise InputError(f"strategy {kind.name}: {key}={text!r} is not a number") from None
    if not 0 <= number < 1e12:
        raise InputError(f"strategy {kind.name}: {key}={text} must not be negative")
    return number
