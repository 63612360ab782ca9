"""A matrix: every combination once, filters, seeds of drawn patterns, and one line for what is wrong with it."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from r2cc_simai.errors import InputError
from r2cc_simai.failures.timeline import Timeline
from r2cc_simai.runners.matrix_cases import MatrixCase, task_of
from r2cc_simai.runners.scenario import load, load_scenario
from r2cc_simai.runners.sweep import run_sweep

GPT = {
    "name": "gpt",
    "megatron": {"model": "gpt3-2.7b", "micro_batch_size": 8, "global_batch_size": 256, "seq_length": 2048},
    "gpu": "H100",
}
SMALL: dict[str, Any] = {
    "scenario": "small",
    "clusters": ["r7525", "h100"],
    "workloads": [{"collective": "all_reduce", "size": "1MiB"}, GPT],
    "patterns": ["none", "nic:nic=1", "random-nics:count=1", "server0@0 server1.nic0=0.5@0"],
    "strategies": ["balance", "hot-repair"],
    "seeds": 3,
    "exclude": [{"cluster": "r7525", "workload": "gpt"}, {"cluster": "r7525", "pattern": "server0@0*"}],
}


def scenario_file(folder: Path, **change: Any) -> str:
    block = {key: value for key, value in (copy.deepcopy(SMALL) | change).items() if value is not None}
    path = folder / "own.yml"
    path.write_text(yaml.safe_dump({"title": "t", "matrix": [block]}))
    return str(path)


def cases(folder: Path, **change: Any) -> list[MatrixCase]:
    return [case for case in load_scenario(scenario_file(folder, **change))[1].cases() if isinstance(case, MatrixCase)]


def test_cases_are_all_combinations_and_only_drawn_patterns_have_seeds(tmp_path: Path) -> None:
    """Clusters x workloads x strategies x (patterns that draw nothing + patterns that draw x seeds)."""
    found = cases(tmp_path, clusters=["h100", "h100x4"], exclude=None)
    assert len(found) == 2 * 2 * 2 * (3 + 1 * 3)
    assert len({case.key for case in found}) == len(found)
    drawn = [case for case in found if case.pattern.startswith("random")]
    assert [case.seed for case in drawn[:4]] == [0, 1, 2, 0]
    assert {case.seed for case in found if not case.pattern.startswith("random")} == {None}


@pytest.mark.parametrize(
    ("seeds", "expected"),
    [(2, [0, 1]), ([7, 3], [7, 3]), ({"first": 100, "count": 3}, [100, 101, 102]), ({"each": [5]}, [5])],
)
def test_seeds_are_a_number_a_list_or_a_range(tmp_path: Path, seeds: object, expected: list[int]) -> None:
    found = cases(tmp_path, seeds=seeds, clusters=["h100"], workloads=[GPT], strategies=["balance"], exclude=None)
    assert [case.seed for case in found if case.seed is not None] == expected


def test_a_pattern_with_a_seed_of_its_own_draws_once(tmp_path: Path) -> None:
    found = cases(tmp_path, patterns=["random-nics:count=1,seed=5"], clusters=["h100"], exclude=None)
    assert {case.seed for case in found} == {None}


def test_a_case_must_fit_one_of_only_and_none_of_exclude(tmp_path: Path) -> None:
    """Keys of one filter hold together, filters of a list hold one by one; values are shell patterns."""
    only = [{"cluster": "h100", "strategy": "hot-repair"}, {"workload": "all_reduce*", "seed": 1}]
    clusters = ["h100", "h100x4"]
    found = cases(tmp_path, clusters=clusters, only=only, exclude=[{"pattern": "none"}])
    everything = cases(tmp_path, clusters=clusters, exclude=None)
    expected = [
        case.key
        for case in everything
        if (
            (case.cluster == "h100" and case.strategy == "hot-repair")
            or (case.workload.is_collective and case.seed == 1)
        )
        and case.pattern != "none"
    ]
    assert [case.key for case in found] == expected
    assert 0 < len(expected) < len(everything)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cluster": ["h100"]}, r"matrix.0.cluster: unknown key; clusters was meant\?"),
        ({"clusters": ["h101"]}, r"matrix.0 \(small\): clusters: 'h101': no such cluster"),
        ({"strategies": ["balanced"]}, r"matrix.0 \(small\): strategies: .*balance was meant\?"),
        ({"patterns": ["random-nic"]}, r"matrix.0 \(small\): patterns: .*random-nics was meant\?"),
        ({"patterns": ["random-nics:k=2"]}, r"patterns: .*no option 'k' \(allowed: count,"),
        ({"patterns": ["server9@0"]}, r"patterns: 'server9@0': .*no such component"),
        ({"patterns": ["random-nics:count=999"]}, r"patterns: 'random-nics:count=999': .*999"),
        ({"patterns": ["mttf"]}, r"patterns: 'mttf': .*hours: in a sweep"),
        ({"patterns": ["server0.nic0@bytes:1M"], "hours": 5}, r"patterns: .*by bytes has no time of its own"),
        ({"workloads": [{"collective": "all_reduced", "size": 8}]}, r"workloads.0.collective: .*all_reduce"),
        ({"workloads": [{"collective": "all_reduce", "size": "8 gibs"}]}, r"workloads.0: size: '8 gibs': not a size"),
        ({"workloads": [{"collective": "all_reduce"}]}, r"workloads.0: size is missing beside collective"),
        ({"workloads": [{"collective": "all_reduce", "size": 8, "gpu": "H100"}]}, r"gpu does not belong beside"),
        ({"workloads": [{"size": 8}]}, r"workloads.0: write one of collective, megatron, rlhf and vllm"),
        ({"workloads": [GPT | {"gpu": "H101"}]}, r"matrix.0 \(small\): workloads.0: gpu: .*H101"),
        ({"workloads": [GPT, GPT]}, r"workloads: two are called 'gpt'; give each a name"),
        ({"backends": ["flow", "chunk"]}, r"training jobs run by flow alone; exclude: \[\{workload: gpt, backend"),
        ({"seeds": 0}, r"matrix.0.seeds.count: .*greater than or equal to 1"),
        ({"seeds": {"from": 1}}, r"matrix.0.seeds.from: unknown key"),
        ({"seeds": [1, 1]}, r"matrix.0.seeds: a seed stands twice"),
        ({"seeds": 1_000_000}, r"cases; at most 1000000 in one block"),
        ({"only": [{"clusters": "h100"}]}, r"matrix.0.only.0.clusters: unknown key; cluster was meant\?"),
        ({"only": [{}]}, r"matrix.0.only.0: an empty filter"),
        ({"only": [{"cluster": "a100*"}]}, r"matrix.0 \(small\): only.0: no case has cluster: a100\*"),
        ({"exclude": [{"strategy": "nccl"}]}, r"exclude.0: no case has strategy: nccl"),
        ({"exclude": [{"strategy": "*"}]}, r"only and exclude leave no case"),
        ({"hours": -1}, r"matrix.0.hours"),
        ({"checkpoint_min": 5}, r"checkpoint_min is for a job over hours"),
        ({"stop": {"metric": "lost_gpu_h", "half_width_pct": 5}}, r"stop: lost_gpu_h is of a job over hours"),
        ({"stop": {"metric": "speed", "half_width_pct": 5}}, r"matrix.0.stop.metric: 'speed' is no metric"),
        ({"strategies": ["balance", "balance"]}, r"a case stands twice"),
    ],
)
def test_a_mistake_is_one_line_that_names_file_block_and_key(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    kept = {"exclude": None, "clusters": ["h100"]}
    with pytest.raises(InputError, match=said) as caught:
        load_scenario(scenario_file(tmp_path, **(kept | change)))
    assert "own.yml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_all_strategies_meet_the_same_failures(tmp_path: Path) -> None:
    """What is drawn depends on cluster, pattern and seed."""
    drawn: dict[tuple[str, str, int | None], set[tuple[int, ...]]] = {}
    for case in cases(tmp_path):
        timeline = task_of(case, None).failures
        assert isinstance(timeline, Timeline)
        key = (case.cluster, case.pattern, case.seed)
        drawn.setdefault(key, set()).add(tuple(event.nic for event in timeline.events))
    assert all(len(found) == 1 for found in drawn.values())
    assert len({nics for key, found in drawn.items() if key[2] is not None for nics in found}) > 3


def test_rows_carry_the_pattern_as_written_and_its_seed(tmp_path: Path) -> None:
    """Collectives give the rows of `coll`, training jobs those of `sim`; a case without a path its error."""
    rows = run_sweep(scenario_file(tmp_path), tmp_path / "run", workers=1).rows
    assert {row.pattern for row in rows} == set(SMALL["patterns"])
    assert {row.seed for row in rows if row.pattern.startswith("random")} == {0, 1, 2}
    assert {row.seed for row in rows if not row.pattern.startswith("random")} == {None}
    assert {row.metric for row in rows if row.workload == "all_reduce"} == {"time", "algbw", "busbw", "error"}
    training = [row for row in rows if row.workload.startswith("gpt3-2.7b tp=1")]
    assert {row.metric for row in training} == {"iteration", "tokens_per_s", "exposed_share", "error"}
    failed = {(row.cluster, row.pattern) for row in rows if row.metric == "error"}
    assert failed == {("h100", "server0@0 server1.nic0=0.5@0")}


PATTERN_FILE = '''
from r2cc_simai.failures.pattern import Incident, Seconds, pattern

@pattern
def half_nic(site, nic: int = 0, at: Seconds = 0.0):
    """A NIC at half its rate."""
    yield Incident(f"server0.nic{nic}", at, state=0.5)
'''


def test_patterns_of_a_file_are_found_beside_the_scenario_and_are_part_of_it(tmp_path: Path) -> None:
    """`pattern_files` are relative to the scenario file; workers get what fails, and need no file. A change of the file
    makes it another sweep."""
    (tmp_path / "mine.py").write_text(PATTERN_FILE)
    scenario = Path(scenario_file(tmp_path, patterns=["half-nic:nic=1"], clusters=["h100"], exclude=None))
    whole = yaml.safe_load(scenario.read_text()) | {"pattern_files": ["mine.py"]}
    plain = {"clusters": ["h100"], "sizes": ["1MiB"], "failures": ["half-nic"], "strategies": ["balance"]}
    whole["blocks"] = [{"scenario": "plain"} | plain]
    scenario.write_text(yaml.safe_dump(whole))
    assert load(str(scenario)).pattern_files == (tmp_path / "mine.py",)
    one = run_sweep(str(scenario), tmp_path / "one", workers=1)
    two = run_sweep(str(scenario), tmp_path / "two", workers=2)
    assert not one.failures
    assert {row.pattern for row in one.rows} == {"half-nic", "half-nic:nic=1"}
    assert (one.folder / "results.csv").read_bytes() == (two.folder / "results.csv").read_bytes()
    (tmp_path / "mine.py").write_text(PATTERN_FILE.replace("0.5", "0.25"))
    with pytest.raises(InputError, match="belongs to another scenario"):
        run_sweep(str(scenario), tmp_path / "one", workers=1)


def test_an_event_log_is_found_beside_the_scenario_and_is_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("time,component,state\n0,server0.nic0,down\n")
    change = {"patterns": ["log:file=events.csv"], "clusters": ["h100"], "workloads": [GPT], "exclude": None}
    scenario = scenario_file(tmp_path, **change)
    result = run_sweep(scenario, tmp_path / "run", workers=1)
    assert not result.failures
    (tmp_path / "events.csv").write_text("time,component,state\n0,server0.nic1,down\n")
    with pytest.raises(InputError, match="belongs to another scenario"):
        run_sweep(scenario, tmp_path / "run", workers=1)
