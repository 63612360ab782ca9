"""A plug-in that does not work is one line that names its distribution, never a traceback."""

import pytest

from r2cc_simai.errors import InputError
from r2cc_simai.strategies.balance import Balance
from r2cc_simai.strategies.registry import parse_strategy

GOOD = """
from dataclasses import dataclass
from typing import ClassVar
from r2cc_simai.strategies.balance import Balance

@dataclass(frozen=True)
class Mine(Balance):
    name: ClassVar[str] = "mine"
"""


def plan_that(body: str) -> str:
    """A strategy `mine` with such a body of `plan`."""
    return GOOD + f"\n    def plan(self, request, view):\n        {body}\n"


@pytest.mark.parametrize(
    ("source", "value", "what"),
    [
        ("import nothing_like_it", "pack:Mine", "cannot be loaded: ModuleNotFoundError: No module named"),
        ("x = 1 +", "pack:Mine", "cannot be loaded: SyntaxError: invalid syntax"),
        ("raise RuntimeError('two\\nlines')", "pack:Mine", r"cannot be loaded: RuntimeError: two lines \("),
        (GOOD, "pack:Yours", "cannot be loaded: AttributeError"),
        ("Mine = 7", "pack:Mine", "pack:Mine is no subclass of Strategy"),
        (GOOD.replace('"mine"', '"yours"'), "pack:Mine", "the class names itself 'yours'; both must agree"),
    ],
)
def test_what_cannot_be_loaded(source, value, what, install):
    """The name, the distribution, the reason."""
    install("bad-pack", "pack", source, {"mine": value})
    with pytest.raises(InputError, match=what) as refused:
        parse_strategy("mine")
    assert "strategy 'mine' of distribution 'bad-pack'" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("return {}[request.op]", r"failed to plan: KeyError: 'all_reduce' \(.*pack.py:"),
        ("return None", "plan returned NoneType, not a Plan"),
        (
            "from dataclasses import replace; made = super().plan(request, view); s = made.schedule; "
            "return replace(made, schedule=replace(s, passes=()))",
            "the schedule is no AllReduce: rank 0, bytes 0..1000: contributions of ranks .1, 2. are missing",
        ),
    ],
)
def test_what_fails_when_it_plans(body, what, install, cluster_of, plan_for):
    """An error in `plan`, a result that is none, a schedule that leaves contributions out."""
    install("bad-pack", "pack", plan_that(body).replace("super()", "Balance()"), {"mine": "pack:Mine"})
    with pytest.raises(InputError, match=what) as refused:
        plan_for(cluster_of(servers=3), "mine", 1000)
    assert "distribution 'bad-pack'" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_projects_own_names_cannot_be_taken(install):
    """`balance` is this project's, whatever is installed."""
    install("good-pack", "pack", GOOD.replace('"mine"', '"balance"'), {"balance": "pack:Mine"})
    assert type(parse_strategy("balance")) is Balance


def test_a_name_that_two_packages_offer(install):
    """Neither wins."""
    install("pack-a", "pack_a", GOOD, {"mine": "pack_a:Mine"})
    install("pack-b", "pack_b", GOOD, {"mine": "pack_b:Mine"})
    with pytest.raises(InputError, match="distribution 'pack-a' and distribution 'pack-b'; uninstall one"):
        parse_strategy("mine")


def test_an_unknown_name_lists_those_of_plug_ins(install):
    """And means the nearest; nothing is loaded for that."""
    install("good-pack", "pack", "raise RuntimeError('loaded')", {"mine-own": "pack:Mine"})
    with pytest.raises(
        InputError, match=r"'mine-ownn': unknown; mine-own was meant\? \(allowed: .*balance.*mine-own\)"
    ):
        parse_strategy("mine-ownn")


def test_a_plug_in_works_like_any_other(install, cluster_of, plan_for):
    """Its options, its spec, its plan; equal specs are equal strategies."""
    install("good-pack", "pack", GOOD, {"mine": "pack:Mine"})
    strategy = parse_strategy("mine:split=weighted")
    assert strategy.spec == "mine:split=weighted"
    assert strategy == parse_strategy("mine:split=weighted")
    assert plan_for(cluster_of(servers=3), "mine", 1000).schedule.bytes == 1000
