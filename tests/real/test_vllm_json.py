"""The JSON of `vllm bench serve`: times in ms become seconds, a broken file is named with its line."""

import json

import pytest

from r2cc_simai.errors import InputError
from r2cc_simai.real.job_log import read_job_log
from r2cc_simai.real.megatron_log import Window

RESULT = {
    "date": "20310203-040506",
    "model_id": "org/model-70b",
    "num_prompts": 100,
    "completed": 100,
    "failed": 0,
    "duration": 50.0,
    "request_throughput": 2.0,
    "request_goodput": None,
    "output_throughput": 512.0,
    "total_token_throughput": 2560.0,
    "mean_ttft_ms": 250.0,
    "median_ttft_ms": 200.0,
    "std_ttft_ms": 40.0,
    "p99_ttft_ms": 900.0,
    "mean_tpot_ms": 25.0,
    "median_tpot_ms": 24.0,
    "p99.9_itl_ms": 80.0,
}


def read(tmp_path, text):
    path = tmp_path / "serve.json"
    path.write_text(text)
    return path, read_job_log(path, Window(), None)


def test_every_time_and_rate(tmp_path):
    path, (one,) = read(tmp_path, json.dumps(RESULT))
    assert {metric.name: metric.value for metric in one.metrics} == {
        "requests_per_s": 2.0,
        "output_tokens_per_s": 512.0,
        "total_tokens_per_s": 2560.0,
        "ttft_mean": 0.25,
        "ttft_median": 0.2,
        "ttft_p99": 0.9,
        "tpot_mean": 0.025,
        "tpot_median": 0.024,
        "itl_p99.9": 0.08,
    }
    assert (one.workload, one.source, one.remarks) == ("org/model-70b", f"{path}:1", ())


def test_appended_results_are_runs_of_their_own(tmp_path):
    path, found = read(tmp_path, json.dumps(RESULT) + "\n" + json.dumps({**RESULT, "failed": 3}) + "\n")
    assert [one.source for one in found] == [f"{path}:1", f"{path}:2"]
    assert found[1].remarks == (f"{path}:2: 3 requests failed",)


BAD = {
    "cut short": (json.dumps(RESULT, indent=1)[:150], ":8: expected the JSON of vllm bench serve, complete"),
    "a key is missing": (json.dumps({"completed": 1}), ":1: expected key 'request_throughput'"),
    "no request": (json.dumps({**RESULT, "completed": 0}), ":1: no request was completed"),
    "no number": (json.dumps({**RESULT, "mean_ttft_ms": "fast"}), ":1: mean_ttft_ms: expected a number"),
    "not a number": (json.dumps({**RESULT, "mean_ttft_ms": float("nan")}), ":1: mean_ttft_ms: expected a number"),
    "the second is cut": (json.dumps(RESULT) + "\n" + json.dumps(RESULT)[:9], ":2: expected the JSON"),
}


@pytest.mark.parametrize(("text", "named"), BAD.values(), ids=BAD)
def test_a_bad_file_is_one_line_with_file_and_line(tmp_path, text, named):
    with pytest.raises(InputError) as error:
        read(tmp_path, text)
    assert f"{tmp_path / 'serve.json'}{named}" in str(error.value)
