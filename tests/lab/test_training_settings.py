"""The training file: what ships can be read, and errors are of one line."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from r2cc_simai.errors import InputError
from r2cc_simai.lab.spec import HEALTHY
from r2cc_simai.lab.training.settings import jobs_of, load_training, training_names

SMALL: dict[str, Any] = {
    "lab": "ci",
    "model": {"layers": 1, "width": 16, "heads": 2, "context": 8},
    "steps": 4,
    "sequences_per_rank": 1,
    "failure": {"step": 2, "script": ["server1.nic1@bytes:10K"]},
    "strategies": ["balance"],
}


def written(folder: Path, **changes: Any) -> str:
    path = folder / "own.yml"
    path.write_text(yaml.safe_dump(SMALL | changes))
    return str(path)


@pytest.mark.parametrize("name", ["ci", "r7525"])
def test_shipped_files_are_complete(name: str) -> None:
    assert name in training_names()
    _, spec, _ = load_training(name)
    cases = jobs_of(spec)
    assert [case.strategy for case in cases] == [HEALTHY, *spec.strategies]
    assert not cases[0].script
    assert all(case.script == tuple(spec.failure.script) for case in cases[1:])


def test_buffer_of_the_lab_is_that_of_all_gradients(tmp_path: Path) -> None:
    """Parameters: V d + T d for the embeddings, 12 d^2 + 4 d a block, 2 d for the last norm; 4 bytes each.
    V = 27 characters, d = 16, T = 8."""
    _, _, lab = load_training(written(tmp_path))
    assert lab.bytes == 4 * ((27 + 8) * 16 + 12 * 16**2 + 4 * 16 + 2 * 16)
    assert (lab.collective, lab.datatype, lab.reduction) == ("all_reduce", "float32", "sum")


def test_a_lab_is_taken_with_changes(tmp_path: Path) -> None:
    changes = {"burst_kib": 64, "nics": [{"count": 3, "rate_mbps": 20}]}
    _, _, lab = load_training(written(tmp_path, lab_changes=changes))
    assert (lab.burst_kib, lab.servers) == (64, 3)
    assert [nic.rate for nic in lab.cluster("own").nics] == [20e6 / 8] * 9


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"lab": "nowhere"}, "no such lab"),
        ({"lab_changes": {"burst_kb": 64}}, "burst_kb: unknown key; burst_kib was meant?"),
        ({"strategies": ["ideal"]}, "'ideal' is the job without a failure"),
        ({"strategies": ["none-such"]}, "none-such"),
        ({"failure": {"step": 4, "script": ["server1.nic1@0.1"]}}, "failure.step: 4 is not before the last of 4 steps"),
        ({"failure": {"step": 2, "script": ["server1.nic9@0.1"]}}, "nic9"),
        ({"failure": {"step": 2, "script": ["server1.nic1@0"]}}, "it has to come in the middle"),
        ({"model": SMALL["model"] | {"heads": 3}}, "width: 16 is no multiple of 3 heads"),
        ({"text": {"grammar": "nowhere"}}, "nowhere.yml: No such file"),
        ({"stepz": 3}, "stepz: unknown key; steps was meant?"),
    ],
)
def test_bad_file_is_one_line(changes: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        load_training(written(tmp_path, **changes))
    assert told in str(error.value)
    assert "own.yml" in str(error.value)
    assert "\n" not in str(error.value)


def test_unknown_name_lists_what_ships() -> None:
    with pytest.raises(InputError, match=r"no such training; write one of ci, r7525, or a \.yml file"):
        load_training("none")
