"""Megatron-LM's lines of iterations, in the forms of several versions, and what makes a log unusable."""

import pytest

from r2cc_simai.errors import InputError
from r2cc_simai.real.job_log import read_job_log
from r2cc_simai.real.megatron_log import Window

NEW = (
    " [2031-02-03 04:05:{k:02d}] iteration {k:8d}/      10 | consumed samples: {s:12d} | elapsed time per iteration "
    "(ms): {ms:.1f} | throughput per GPU (TFLOP/s/GPU): {tf:.1f} | learning rate: 6.0E-05 | global batch size:    64 | "
    "lm loss: 1.04E+01 | loss scale: 1.0 | grad norm: 2.2 | number of skipped iterations:   0 | "
    "number of nan iterations:   0 |\n"
)
OLD = (
    " iteration {k:8d}/      10 | consumed samples: {s:12d} | elapsed time per iteration (ms): {ms:.1f} | "
    "learning rate: 6.0E-05 | global batch size:    64 | lm loss: 1.04E+01 | loss scale: 1.0 |\n"
)
DEEPSPEED = (
    " iteration {k:8d}/      10 | consumed samples: {s:12d} | consumed tokens: 1 | "
    "elapsed time per iteration (ms): {ms:.1f} | global batch size:    64 | lm loss: 1.0E+01 | "
    "samples per second: 32.000 | TFLOPs: 150.00 |\n"
)
ARGUMENTS = "  seq_length ...................................... 2048\n  world_size .... 16\n"
TIMES_MS = (9000.0, 2000.0, 2010.0, 1990.0, 2000.0)


def write(tmp_path, form, times=TIMES_MS, before=ARGUMENTS):
    path = tmp_path / "train.log"
    lines = [form.format(k=k, s=64 * k, ms=ms, tf=300 / ms * 1e3) for k, ms in enumerate(times, start=1)]
    path.write_text(before + "".join(lines))
    return path


def values(measurement):
    return {metric.name: metric.value for metric in measurement.metrics}


def test_medians_without_the_first_line_and_tokens_from_batch_and_sequence(tmp_path):
    """iteration 2.0 s; tokens/s = 64 x 2048 / 2.0 s."""
    path = write(tmp_path, NEW)
    (one,) = read_job_log(path, Window(skip=1), None)
    assert values(one) == {
        "iteration": 2.0,
        "tokens_per_s": 64 * 2048 / 2.0,
        "flops_per_gpu": pytest.approx(150e12),
    }
    assert one.source == f"{path}:4-7, 4 lines"
    assert one.remarks == (f"{path}:7: the log ends at iteration 5 of 10",)


def test_an_old_log_has_times_alone_until_the_sequence_length_is_given(tmp_path):
    path = write(tmp_path, OLD, before="")
    assert set(values(read_job_log(path, Window(skip=1), None)[0])) == {"iteration"}
    assert values(read_job_log(path, Window(skip=1), 1024)[0])["tokens_per_s"] == 64 * 1024 / 2.0


def test_deepspeed_prints_samples_and_tflops(tmp_path):
    (one,) = read_job_log(write(tmp_path, DEEPSPEED), Window(skip=1), None)
    assert values(one)["samples_per_s"] == 32.0
    assert values(one)["flops_per_gpu"] == 150e12


def test_lines_behind_a_launchers_tags(tmp_path):
    path = write(tmp_path, "[1,15]<stdout>:" + NEW)
    assert values(read_job_log(path, Window(skip=1), None)[0])["iteration"] == 2.0


def test_a_window_of_iterations(tmp_path):
    path = write(tmp_path, NEW, (2000.0, 2000.0, 2000.0, 2200.0, 2200.0))
    assert values(read_job_log(path, Window(first=1, last=3), None)[0])["iteration"] == 2.0
    assert values(read_job_log(path, Window(first=4), None)[0])["iteration"] == 2.2


def test_a_restart_and_skipped_iterations_are_said(tmp_path):
    path = write(tmp_path, NEW)
    again = NEW.format(k=3, s=192, ms=2000.0, tf=150.0).replace("nan iterations:   0", "nan iterations:   2")
    path.write_text(path.read_text() + again)
    (one,) = read_job_log(path, Window(skip=1), None)
    assert f"{path}:8: back to iteration 3: the job was restarted" in one.remarks
    assert f"{path}:8: number of nan iterations: 2" in one.remarks


BAD = {
    "cut before the time": (lambda text: text[: text.rindex("elapsed")], ":7: expected 'elapsed time per iteration"),
    "cut in a number": (lambda text: text[: text.rindex("0.0 |")], ":7: expected"),
    "cut in the time": (lambda text: text[: text.rindex(" | throughput")], ":7: expected the end of the line"),
    "a time that is none": (lambda text: text.replace("2010.0", "nan"), ":5: expected a number above 0"),
    "no time": (lambda text: text.replace("2010.0", "0.0"), ":5: expected a number above 0"),
    "another program": (lambda text: "Epoch 1 loss 2\n", ":1: expected a log of Megatron-LM"),  # noqa: ARG005
    "nothing": (lambda text: "\n", ":1: expected a log, found an empty file"),  # noqa: ARG005
}


@pytest.mark.parametrize(("spoil", "named"), BAD.values(), ids=BAD)
def test_a_bad_log_is_one_line_with_file_and_line(tmp_path, spoil, named):
    path = write(tmp_path, NEW)
    path.write_text(spoil(path.read_text()))
    with pytest.raises(InputError) as error:
        read_job_log(path, Window(skip=1), None)
    assert f"{path}{named}" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_window_with_nothing_in_it(tmp_path):
    with pytest.raises(InputError, match=r"nothing left to measure after --skip 9 of iterations 1 to 5"):
        read_job_log(write(tmp_path, NEW), Window(skip=9), None)


def test_another_sequence_length_than_the_logs(tmp_path):
    with pytest.raises(InputError, match=r"train.log:1: expected the sequence length of --seq-length 4096"):
        read_job_log(write(tmp_path, NEW), Window(), 4096)
