"""What a sweep says of itself while it runs and at its end."""

import io

import pytest
from rich.console import Console

from r2cc_simai.results import error_row
from r2cc_simai.runners import sweep_progress
from r2cc_simai.runners.case_run import Outcome
from r2cc_simai.runners.sweep_progress import Tally, clock, shown

FAILED = error_row(
    scenario="s", cluster="c", workload="w", pattern="p", strategy="x", backend="flow", bytes=0, error="no path"
)


@pytest.fixture
def tally(monkeypatch: pytest.MonkeyPatch) -> Tally:
    """Return the tally of a sweep of 100 cases, 40 done before, 10 since in 5 s, of which one failed."""
    now = [100.0]
    monkeypatch.setattr(sweep_progress.time, "monotonic", lambda: now[0])
    made = Tally(100, 40)
    for number in range(10):
        now[0] += 0.5
        made.add(Outcome(str(number), [FAILED] if number == 3 else [], 0.5, lookups=4, hits=3))
    return made


def test_rate_time_left_failures_and_cache(tally: Tally) -> None:
    """10 cases in 5 s are 2 a second; the other 50 take 25 s; 30 of 40 costs were known."""
    assert tally.status == "2 cases/s, 0:25 left, 1 failed, cache 75.0%"
    assert [one.error for one in tally.failures] == ["no path"]


def test_the_last_line_says_what_ran_and_how_often_a_cost_was_known(tally: Tally) -> None:
    assert tally.summary == ("10 of 50 cases in 5.0 s; state cache: 30 of 40 looked-up costs were there (75.0%)")
    assert Tally(3, 0).summary == "0 cases in 0.0 s"


def test_off_a_terminal_there_is_a_line_every_half_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(sweep_progress.time, "monotonic", lambda: now[0])
    out = io.StringIO()
    tally = Tally(200, 0)
    with shown(tally, Console(file=out, width=200)) as progress:
        for number in range(95):
            now[0] += 1.0
            tally.add(Outcome(str(number), [], 1.0))
            progress.update()
    assert out.getvalue().splitlines() == [
        "sweep: 30 of 200 cases, 1 cases/s, 2:50 left, 0 failed",
        "sweep: 60 of 200 cases, 1 cases/s, 2:20 left, 0 failed",
        "sweep: 90 of 200 cases, 1 cases/s, 1:50 left, 0 failed",
    ]


def test_on_a_terminal_there_is_a_bar(tally: Tally) -> None:
    out = io.StringIO()
    with shown(tally, Console(file=out, force_terminal=True, width=120, legacy_windows=False)) as progress:
        progress.update()
    assert "50/100" in out.getvalue()
    assert "0:25 left" in out.getvalue()


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0:00"), (65, "1:05"), (3600, "1:00:00"), (90_061, "25:01:01")])
def test_times_as_a_clock_shows_them(seconds: float, text: str) -> None:
    assert clock(seconds) == text
