"""Compute times from a table: exact rows, parts of a backward pass, the fallback, errors with line and column."""

from pathlib import Path

import pytest

from r2cc_simai.errors import InputError
from r2cc_simai.workloads.blocks import BlockRequest
from r2cc_simai.workloads.compute_times import compute_times
from r2cc_simai.workloads.models import load_model

HEADER = "model,gpu,tp,tokens,block,pass,time_us"
ROW = "llama2-7b,A100,2,2048,mlp,forward,486"
LLAMA = load_model("llama2-7b")


def table(folder: Path, *lines: str) -> Path:
    """A table with a comment, an empty line, a header, and lines."""
    path = folder / "times.csv"
    path.write_text("\n".join(["# measured", "", *lines]) + "\n")
    return path


def ask(block="mlp", pass_="forward", tokens=2048, context=2048, **more):
    """A block of Llama-2-7B on two ranks."""
    return BlockRequest(LLAMA, block, pass_, tokens, context, tp=2, **more)


def test_row_that_fits(tmp_path):
    """486 us; names may be aliases, in any case."""
    for row in (ROW, "Llama-2-7B,A100-SXM4-80GB,2,2048,mlp,forward,486"):
        times = compute_times("csv", "A100", table(tmp_path, HEADER, row))
        assert times.block_seconds(ask()) == pytest.approx(486e-6)
    assert times.description == "measured A100-SXM4-80GB: times.csv, 1 rows"


@pytest.mark.parametrize(
    "request_",
    [ask(tokens=1024), ask("attention"), ask(pass_="backward"), BlockRequest(LLAMA, "mlp", "forward", 2048, 2048)],
)
def test_block_without_a_row(tmp_path, request_):
    """An error that says which row is missing; with the fallback, the roofline's time."""
    path = table(tmp_path, HEADER, ROW)
    with pytest.raises(InputError, match=f"^{path}: no row for model llama2-7b, gpu A100-SXM4-80GB, tp ") as error:
        compute_times("csv", "A100", path).block_seconds(request_)
    assert "\n" not in str(error.value)
    roofline, both = compute_times("roofline", "A100"), compute_times("csv", "A100", path, fallback=True)
    assert both.block_seconds(request_) == roofline.block_seconds(request_)
    assert both.description.endswith(f"; what it lacks: {roofline.description}")


def test_backward_is_split_in_the_rooflines_proportion(tmp_path):
    """dgrad + wgrad = the measured backward pass."""
    times = compute_times("csv", "A100", table(tmp_path, HEADER, ROW.replace("forward", "backward")))
    roofline = compute_times("roofline", "A100")
    parts = [times.block_seconds(ask(pass_=part)) for part in ("dgrad", "wgrad")]
    assert sum(parts) == pytest.approx(486e-6)
    expected = [roofline.block_seconds(ask(pass_=part)) for part in ("dgrad", "wgrad")]
    assert parts[0] / parts[1] == pytest.approx(expected[0] / expected[1])


def test_backward_is_the_sum_of_measured_parts(tmp_path):
    """600 us of dgrad + 400 us of wgrad."""
    rows = [f"llama2-7b,A100,2,2048,mlp,{part},{time}" for part, time in (("dgrad", 600), ("wgrad", 400))]
    times = compute_times("csv", "A100", table(tmp_path, HEADER, *rows))
    assert times.block_seconds(ask(pass_="backward")) == pytest.approx(1000e-6)


def test_optional_columns(tmp_path):
    """A row that names context or phase fits these alone and comes before one that does not."""
    header = f"{HEADER},context,phase"
    path = table(tmp_path, header, f"{ROW},,", f"{ROW[:-3]}500,4096,", f"{ROW[:-3]}90,4096,decode")
    times = compute_times("csv", "A100", path)
    requests = [ask(), ask(context=4096), ask(context=4096, phase="decode"), ask(phase="decode")]
    assert [times.block_seconds(r) for r in requests] == pytest.approx([486e-6, 500e-6, 90e-6, 486e-6])


def test_optimizer_rows_count_parameters(tmp_path):
    """For the optimizer `tokens` is the number of parameters."""
    times = compute_times("csv", "A100", table(tmp_path, HEADER, "llama2-7b,A100,2,1000000,optimizer,forward,30"))
    assert times.block_seconds(ask("optimizer", tokens=0, parameters=1_000_000)) == pytest.approx(30e-6)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "empty; a header \\(model,"),
        ([HEADER.replace(",tp", "")], "column tp is missing \\(wanted: model, gpu, tp,"),
        ([f"{HEADER},batch"], "column 'batch' is unknown \\(allowed: model,"),
        ([HEADER, ROW, "llama2-7b,A100,2"], "line 5: 3 cells, but the header has 7"),
        ([HEADER, ROW.replace("486", "fast")], "line 4: time_us 'fast': microseconds above 0 are wanted"),
        ([HEADER, ROW.replace("486", "-1")], "line 4: time_us '-1': microseconds above 0"),
        ([HEADER, ROW.replace("486", "inf")], "line 4: time_us 'inf': microseconds above 0"),
        ([HEADER, ROW.replace(",2,", ",2.5,")], "line 4: tp '2.5': a whole number above 0"),
        ([HEADER, ROW.replace("2048", "0")], "line 4: tokens '0': a whole number above 0"),
        ([HEADER, ROW.replace("mlp", "mpl")], "line 4: block 'mpl': one of attention, attention_core, mlp,"),
        ([HEADER, ROW.replace("forward", "back")], "line 4: pass 'back': one of forward, backward, dgrad, wgrad"),
        ([HEADER, ROW.replace("A100", "A1000")], "line 4: gpu 'A1000': no such GPU; a100"),
        ([HEADER, ROW.replace("llama2-7b", "")], "line 4: model '': a value is wanted"),
        ([HEADER, ROW, ROW], "line 5: the same block as in a line before"),
    ],
)
def test_wrong_table(tmp_path, lines, message):
    """One line with file, line and column, before anything is asked."""
    path = table(tmp_path, *lines)
    with pytest.raises(InputError, match=f"^{path}: {message}") as error:
        compute_times("csv", "A100", path)
    assert "\n" not in str(error.value)


def test_no_text_table(tmp_path):
    """Absent, or no text."""
    with pytest.raises(InputError, match=r"absent\.csv: No such file"):
        compute_times("csv", "A100", tmp_path / "absent.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"binary\.csv: not a text file"):
        compute_times("csv", "A100", tmp_path / "binary.csv")


def test_shipped_measurements_are_a_table():
    """The published A100 layer times can be used as they are."""
    times = compute_times("csv", "A100", Path(__file__).parent / "data" / "a100_layers.csv")
    assert times.block_seconds(ask()) == pytest.approx(486e-6)
    assert times.block_seconds(ask(pass_="backward")) == pytest.approx(1059e-6)
