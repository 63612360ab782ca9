"""A matrix with `stop` draws batch by batch until its means are known, whatever runs its cases."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from r2cc_simai.results import Row, make_row
from r2cc_simai.runners.case_run import AnyCase
from r2cc_simai.runners.rounds import Rounds
from r2cc_simai.runners.scenario import Scenario, load_scenario
from r2cc_simai.runners.sweep import run_sweep

BLOCK: dict[str, Any] = {
    "scenario": "drawn",
    "clusters": ["r7525"],
    "workloads": [{"collective": "all_reduce", "size": "64MiB"}],
    "patterns": ["random-nics:count=1", "none"],
    "strategies": ["balance", "hot-repair"],
    "seeds": 20,
    "stop": {"metric": "time", "half_width_pct": 5, "batch": 4, "least": 2},
}


def scenario_of(folder: Path, *blocks: dict[str, Any]) -> Scenario:
    return load_scenario(file_of(folder, *blocks))[1]


def file_of(folder: Path, *blocks: dict[str, Any]) -> str:
    path = folder / "own.yml"
    path.write_text(yaml.safe_dump({"title": "t", "matrix": [*blocks]}))
    return str(path)


def drawn_times(spread: float) -> Callable[[Sequence[AnyCase]], list[Row]]:
    """Rows whose time is 1 s, and more for every other seed."""

    def rows_of(cases: Sequence[AnyCase]) -> list[Row]:
        return [
            make_row(
                scenario="drawn",
                cluster=case.cluster,
                workload="all_reduce",
                pattern=case.pattern,  # type: ignore[union-attr]
                seed=case.seed,  # type: ignore[union-attr]
                strategy=case.strategy,
                backend="flow",
                bytes=0,
                metric="time",
                unit="s",
                simulated=1.0 + spread * ((case.seed or 0) % 2),  # type: ignore[union-attr]
                ideal=1.0,
            )
            for case in cases
        ]

    return rows_of


def seeds_of(cases: Sequence[AnyCase]) -> set[int | None]:
    return {case.seed for case in cases}  # type: ignore[union-attr]


@pytest.mark.parametrize(("spread", "ran"), [(0.0, 4), (0.2, 20)])
def test_batches_of_seeds_go_on_until_the_means_are_known(tmp_path: Path, spread: float, ran: int) -> None:
    """Four seeds a batch for every strategy; equal times are known after the first, a spread of 10% needs
    n = (1.96 * 0.1 / (0.05 * 1.1))^2 = 13 draws and more, since the interval is Student's. What draws nothing runs in
    the first round."""
    scenario = scenario_of(tmp_path, BLOCK)
    cases = list(scenario.cases())
    rounds = Rounds(scenario, cases)
    taken = list(rounds.run(drawn_times(spread)))
    assert seeds_of(taken[0]) == {None, 0, 1, 2, 3}
    assert all(len(seeds_of(batch)) == 4 for batch in taken[1:])
    drawn = sorted(seed for batch in taken for seed in seeds_of(batch) if seed is not None)
    assert drawn == list(range(len(drawn)))
    if spread == 0:
        assert len(drawn) == ran
        assert [(one.scenario, one.ran, one.of) for one in rounds.stopped] == [("drawn", 4, 20)]
        assert rounds.left_out == 2 * 16
    else:
        assert 12 <= len(drawn) <= ran


def test_blocks_without_stop_run_whole_in_the_first_round(tmp_path: Path) -> None:
    free = {key: value for key, value in BLOCK.items() if key != "stop"} | {"scenario": "free", "seeds": 6}
    scenario = scenario_of(tmp_path, BLOCK, free)
    cases = list(scenario.cases())
    first, *others = Rounds(scenario, cases).run(drawn_times(1.0))
    assert {case.key for case in first} >= {case.key for case in cases if " free " in case.key or ":free" in case.key}
    assert not any(":free" in case.key for batch in others for case in batch)


def test_what_ran_does_not_depend_on_workers_or_a_kill_and_is_told(tmp_path: Path) -> None:
    """One process, two, and a sweep that finds its first cases done: the same seeds. The manifest says how many."""
    scenario = file_of(tmp_path, BLOCK)
    one = run_sweep(scenario, tmp_path / "one", workers=1)
    two = run_sweep(scenario, tmp_path / "two", workers=2)
    log = tmp_path / "one" / "rows.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:3]))
    again = run_sweep(scenario, tmp_path / "one", workers=1)
    tables = {(result.folder / "results.csv").read_bytes() for result in (one, two, again)}
    assert len(tables) == 1
    assert [(stop.scenario, stop.of) for stop in one.stopped] == [("drawn", 20)]
    went = json.loads((two.folder / "manifest.json").read_text())["went"]
    ran = len({row.seed for row in two.rows} - {None})
    assert went == {"cases": two.cases, "stopped": [{"scenario": "drawn", "ran": ran, "of": 20}]}
    assert ran < 20
