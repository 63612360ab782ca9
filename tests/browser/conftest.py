"""A report of a small run, in a real browser.

The browser is the system's Chromium or Chrome, headless, driven by playwright: it needs no driver program of a matching
version, sees every request and console message, emulates colour schemes, and limits every wait. Nothing is downloaded.
Where there is no browser the tests are skipped; where the variable CI is "true" they fail.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
import yaml

from r2cc_simai.runners.report import rebuild_report
from r2cc_simai.runners.sweep import run_sweep

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
WAIT_MS = 30_000
DESKTOP, PHONE = (1280, 900), (390, 844)

SCENARIO = {
    "title": "A small run for the browser",
    "blocks": [
        {
            "scenario": "figure7",
            "clusters": ["uniformx3", "uniformx4"],
            "zero_latency": True,
            "sizes": ["1GiB"],
            "failures": ["server0.nic0=0.5@0"],
            "strategies": ["balance", "r2cc-allreduce:k=128", "optcc:k=128"],
            "backends": ["flow", "chunk"],
            "references": [
                {"table": "figure7_r2cc", "metric": "time", "value": "overhead_pct", "strategy": "r2cc-allreduce"}
            ],
        },
        {
            "scenario": "r7525-healthy",
            "clusters": ["r7525"],
            "sizes": {"from": 8, "to": "4GiB", "factor": 4},
            "strategies": ["ideal"],
            "backends": ["flow", "chunk"],
            "references": [{"table": "r7525_healthy", "metric": "time", "value": "time_s"}],
        },
        {
            "scenario": "cut-in-the-middle",
            "clusters": ["h100"],
            "sizes": ["1GiB"],
            "failures": ["server0.nic3@0.001"],
            "strategies": ["nccl", "hot-repair", "balance", "r2cc-allreduce"],
            "nic_bytes": True,
        },
        {
            "scenario": "no-way-left",
            "clusters": ["uniformx3"],
            "sizes": ["1MiB"],
            "failures": ["server1.nic0@0"],
            "strategies": ["balance"],
        },
    ],
    "training": [
        {
            "scenario": "small-job",
            "megatron": {"model": "gpt3-2.7b", "micro_batch_size": 1, "global_batch_size": 16},
            "gpu": "H100",
            "clusters": ["h100"],
            "failures": ["server0.nic3@0"],
            "strategies": ["hot-repair", "balance"],
        }
    ],
}


@dataclass
class Seen:
    """A loaded page, and what it said and asked for."""

    page: "Page"
    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


Open = Callable[..., Seen]


@pytest.fixture(scope="package")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of a run with collectives, training, a case that failed, timelines, and a run before it."""
    folder = tmp_path_factory.mktemp("browser")
    scenario = folder / "small.yml"
    scenario.write_text(yaml.safe_dump(SCENARIO))
    run = run_sweep(str(scenario), folder / "run", workers=1).folder
    earlier = folder / "earlier.csv"
    earlier.write_text((run / "results.csv").read_text().replace(",hot-repair,", ",nccl-failover,"))
    (run / "timelines").mkdir()
    (run / "timelines" / "cut in the middle.json").write_text('{"traceEvents": []}')
    return rebuild_report(run, compared_with=str(earlier)).html


@pytest.fixture(scope="package")
def browser() -> "Iterator[Browser]":
    """Yield one browser for all tests of this folder."""
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        _without(f"no browser ({', '.join(BROWSERS)}) is installed")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _without("playwright is not installed")
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-dev-shm-usage"]  # containers have little shared memory, and root
        chromium = playwright.chromium.launch(executable_path=path, args=arguments, timeout=60_000)
        yield chromium
        chromium.close()


@pytest.fixture
def open_report(browser: "Browser", report: Path) -> Iterator[Open]:
    """Yield a function that opens the report: size of the window, colour scheme, JavaScript or not."""
    contexts = []

    def opened(size: tuple[int, int] = DESKTOP, scheme: str = "light", javascript: bool = True) -> Seen:
        width, height = size
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            java_script_enabled=javascript,
            has_touch=size == PHONE,
            offline=True,
        )
        context.set_default_timeout(WAIT_MS)
        contexts.append(context)
        seen = Seen(context.new_page())
        seen.page.on("console", lambda message: seen.messages.append(f"{message.type}: {message.text}"))
        seen.page.on("pageerror", lambda error: seen.messages.append(f"error: {error}"))
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        seen.page.goto(report.as_uri(), wait_until="load")
        return seen

    yield opened
    for context in contexts:
        context.close()


def _without(reason: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}; the report has to be looked at in CI")
    pytest.skip(reason)
