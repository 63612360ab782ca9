"""`compare` and `calibrate` on a log that was cut: the good rows are judged, and what was skipped is said."""

import numpy as np

from r2cc_simai.measured import read_log
from r2cc_simai.runners import calibrate


def test_a_cut_log_is_judged_by_its_whole_rows(cli, slow_log):
    text = slow_log.read_text().replace("9000000 0.12 0.20", "2040000 0.53 0.88")
    row = next(line for line in text.splitlines() if line.startswith("1073741824"))
    fast = row.replace("2040000", "512000").replace("0.53 0.88", "2.10 3.50")
    slow_log.write_text(text[: text.index("# Out of bounds")].replace(row, fast) + row[:40])
    ended = cli("compare", str(slow_log))
    assert ended.code == 0, ended.err
    assert "1 of 1 within tolerance" in ended.out
    assert ended.err.splitlines() == [
        f"note: {slow_log}:9: the table has no end ('# Out of bounds values'): "
        "1 row read, the last of 1073741824 bytes",
        f"note: {slow_log}: line 11 skipped: row cut short",
    ]


def test_a_cut_log_whose_rows_lie_outside_their_tolerance_is_a_mismatch(cli, slow_log):
    text = slow_log.read_text()
    slow_log.write_text(text[: text.index("# Out of bounds")])
    ended = cli("compare", str(slow_log))
    assert ended.code == 1
    assert "0 of 1 within tolerance" in ended.out
    assert "the table has no end" in ended.err


def test_a_log_without_a_whole_row_is_one_line(cli, slow_log):
    text = slow_log.read_text()
    slow_log.write_text(text[: text.index("1073741824") + 30])
    ended = cli("compare", str(slow_log))
    assert ended.code == 2
    assert ended.error.startswith(f"{slow_log}:9: expected a whole row")


def test_calibrate_says_what_it_skipped(cli, tmp_path, slow_log, monkeypatch):
    """Nine sizes are a sweep; the tenth row was cut. The fit itself is left out."""

    def unfitted(cluster, points, source, _progress):
        times = np.array([point.time_s for point in points])
        return calibrate.Calibration(source, cluster, cluster.spec, tuple(points), (), times, times)

    monkeypatch.setattr(calibrate, "fit", unfitted)
    head, _, _ = slow_log.read_text().partition("1073741824 ")
    rows = [
        f"{size} {size // 4} float sum -1 {t:.2f} {size / t / 1e3:.2f} 1 0 {t:.2f} {size / t / 1e3:.2f} 1 0\n"
        for k in range(9)
        for size, t in [((1 << 20) << k, 430.0 * 2**k)]
    ]
    log = tmp_path / "cut.log"
    log.write_text(head + "".join(rows) + "536870912 134217728 float sum")
    assert len(read_log(log)[0].sizes) == 9
    ended = cli("calibrate", str(log))
    assert ended.code == 0
    assert f"note: {log}: line 19 skipped: row cut short" in ended.err
