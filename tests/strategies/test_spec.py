"""Reading `name:key=value,...`, and the errors that name what is allowed."""

import pytest

from r2cc_simai.errors import InputError
from r2cc_simai.strategies.balance import Balance
from r2cc_simai.strategies.hot_repair import HotRepair
from r2cc_simai.strategies.nccl import Nccl
from r2cc_simai.strategies.r2cc_allreduce import R2ccAllReduce
from r2cc_simai.strategies.registry import STRATEGIES, parse_strategy


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        ("balance", Balance("even")),
        ("balance:split=weighted", Balance("weighted")),
        (" hot-repair ", HotRepair()),
        ("r2cc-allreduce", R2ccAllReduce(4, "x")),
        ("r2cc-allreduce:k=8,y=opt", R2ccAllReduce(8, "opt")),
        ("nccl:spare=0,detect_min=3.5", Nccl(detect_min=3.5, spare=0)),
    ],
)
def test_what_a_user_writes(text: str, strategy: object) -> None:
    """Options are the fields of the strategy."""
    assert parse_strategy(text) == strategy


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_defaults_are_not_repeated_in_the_spec(name: str) -> None:
    """`spec` is what a user would write."""
    assert parse_strategy(name).spec == name


@pytest.mark.parametrize("text", ["balance:split=weighted", "r2cc-allreduce:k=8,y=opt", "nccl:spare=0"])
def test_a_spec_reads_back(text: str) -> None:
    """parse(spec) is the same strategy."""
    assert parse_strategy(text).spec == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("balanse", "unknown; balance was meant"),
        ("ring", "unknown.*allowed: ideal, nccl, hot-repair, balance, r2cc-allreduce"),
        ("", "unknown"),
        ("balance:k=4", "no option 'k'.*allowed: split"),
        ("hot-repair:k=4", "no option 'k'.*allowed: none"),
        ("balance:split=odd", "split=odd .*allowed: even, weighted"),
        ("balance:split", "split= .*allowed: even, weighted"),
        ("r2cc-allreduce:k=four", "k='four' is not a number"),
        ("r2cc-allreduce:k=2.5", "k='2.5' is not a number"),
        ("r2cc-allreduce:k=0", "at least 1 chunk"),
        ("r2cc-allreduce:k=-3", "must not be negative"),
        ("nccl:detect_min=nan", "must not be negative"),
        ("nccl:detect_min=inf", "must not be negative"),
    ],
)
def test_a_wrong_spec_says_what_is_allowed(text: str, message: str) -> None:
    """InputError in one line."""
    with pytest.raises(InputError, match=message) as caught:
        parse_strategy(text)
    assert "\n" not in str(caught.value)
