"""Measures speed and peak memory against the project's targets; asserts nothing. `make bench` runs it.

Times are medians of repetitions within this one run, with their range. Peak memory is that of the largest process of a
case (Python, NumPy and the engine included). The figures also go to `benchmarks/latest.json`.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from cases import CHUNKS_PER_STEP, STRATEGIES

HERE = Path(__file__).resolve().parent
LATEST = HERE / "latest.json"
SWEEP_WORKERS = 2
SWEEPS = {"sweep": "paper", "month": "month"}
"""Cases that are a whole sweep, and their shipped scenario."""

# 1 GiB AllReduce, ring, 1,024 NPUs, on two cores like the ones that the targets were set for (user seconds).
ASTRA_SIM = {1: "ASTRA-sim 1.9-2.7 s", 4: "ASTRA-sim 6.7-8.6 s"}

NOTES = """\
flow:  1 GiB AllReduce on 1,024 GPUs (128 servers, 8 NICs each) as one API call, planning included, cluster loaded
       before; a NIC down from the start, or cut in mid-collective and the next collective on its new plan
chunk: 1 GiB ring AllReduce on 1,024 ranks, the run alone on one core; acknowledgements, windows and byte counters on
plan:  by r2cc-allreduce, for one GPU of each server; the cluster was loaded before
175B, 405B: tensor parallel 8, pipeline 8 and 16; files go to a temporary folder; an iteration by flow, equal ranks
       simulated once, planning included, trace read before. Memory targets: 2 GiB to emit 175B, 8 GiB for 405B
month: 175B on 1,024 GPUs for 720 h, failures at the rates of the Llama 3 report, by flow; report included
peak:  largest process of the case"""


@dataclass(frozen=True)
class Line:
    """What is measured: a title, the clock, the target in seconds, and a figure of another simulator beside it."""

    title: str
    clock: str
    target_s: float
    beside: str = ""


LINES = {
    **{
        f"flow/{strategy}/{when}": Line(f"flow, {strategy}, {words}", "wall", 0.05)
        for strategy in STRATEGIES
        for when, words in (("down", "NIC down"), ("cut", "NIC cut, and the next"))
    },
    **{
        f"chunk/{n}": Line(f"chunk, ring, {n} chunk{'s' if n > 1 else ''} a step", "CPU", target, ASTRA_SIM[n])
        for n, target in zip(CHUNKS_PER_STEP, (0.5, 1.8), strict=True)
    },
    "plan/2": Line("plan of a send, 2,048 servers, NIC down", "CPU", 0.001),
    "plan/128": Line("plan of an AllReduce of 128 of them", "CPU", 0.005),
    "emit/175b": Line("175B on 1,024 GPUs: traces of all ranks", "wall", 30.0),
    "iteration/175b": Line("175B on 1,024 GPUs: iteration, NIC down", "wall", 2.0),
    "iteration/405b": Line("405B on 16,384 GPUs: iteration, NIC down", "wall", 30.0),
    "sweep": Line(f"default sweep and report, {SWEEP_WORKERS} workers", "wall", 60.0),
    "month": Line(f"1,000 drawn months x 4 strategies, {SWEEP_WORKERS} workers", "wall", 300.0),
}


@dataclass(frozen=True)
class Measured:
    """One case: seconds (median and range), chunks delivered per second, and peak memory; or why there is none."""

    case: str
    clock: str
    target_s: float
    median_s: float | None = None
    lowest_s: float | None = None
    highest_s: float | None = None
    deliveries_per_s: float | None = None
    peak_bytes: int | None = None
    problem: str = ""


def measure(case: str) -> Measured:
    """Runs one case in a process of its own."""
    if case in SWEEPS:
        return _measure_sweep(case)
    status, out, peak, _ = _run([sys.executable, str(HERE / "cases.py"), case])
    if status:
        return _failed(case, out)
    result = json.loads(out)
    return _measured(case, result["seconds"], peak, result["deliveries"])


def _measure_sweep(case: str) -> Measured:
    program = Path(sys.executable).with_name("r2cc-simai")
    with tempfile.TemporaryDirectory() as folder:
        out = ["--out", str(Path(folder) / "run")]
        status, text, peak, seconds = _run([str(program), "sweep", SWEEPS[case], *out, "--workers", str(SWEEP_WORKERS)])
    return _failed(case, text) if status else _measured(case, [seconds], peak)


def _run(command: list[str]) -> tuple[int, str, int, float]:
    """Exit status, output (errors where it failed), peak bytes of the largest process, and wall seconds."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        begun = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        shown = errors if status else out
        shown.seek(0)
        return process.returncode, shown.read(), usage.ru_maxrss * 1024, seconds


def _measured(case: str, seconds: list[float], peak: int, deliveries: int = 0) -> Measured:
    median = statistics.median(seconds)
    return Measured(
        case=case,
        clock=LINES[case].clock,
        target_s=LINES[case].target_s,
        median_s=median,
        lowest_s=min(seconds),
        highest_s=max(seconds),
        deliveries_per_s=deliveries / median if deliveries else None,
        peak_bytes=peak,
    )


def _failed(case: str, errors: str) -> Measured:
    lines = errors.strip().splitlines() or ["no output"]
    return Measured(case, LINES[case].clock, LINES[case].target_s, problem=lines[-1])


def machine() -> dict[str, str | int | None]:
    """What the figures were measured on."""
    return {"cpu": _cpu_model(), "cores": os.cpu_count(), "python": platform.python_version()}


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def print_table(results: list[Measured]) -> None:
    """Prints a line per case, and what the cases include."""
    from r2cc_simai.cli import show

    columns = ("case", "clock", "median", "range", "target", "", "peak (MiB)", "remark")
    show.table("speed and peak memory", columns, [_cells(result) for result in results], text=2)
    print(NOTES)


def _cells(result: Measured) -> list[str]:
    line = LINES[result.case]
    if result.median_s is None or result.peak_bytes is None:
        return [line.title, result.clock, "-", "-", _time(result.target_s), "-", "-", result.problem]
    remarks = [f"{result.deliveries_per_s / 1e6:.1f} M chunks/s"] if result.deliveries_per_s else []
    remarks += [line.beside] if line.beside else []
    return [
        line.title,
        result.clock,
        _time(result.median_s),
        f"{_time(result.lowest_s)} .. {_time(result.highest_s)}",
        _time(result.target_s),
        "met" if result.median_s <= result.target_s else "missed",
        f"{result.peak_bytes / 2**20:.0f}",
        "; ".join(remarks),
    ]


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds * 1e3:.1f} ms" if seconds < 0.1 else f"{seconds:.2f} s"


def main() -> None:
    """Measures every case, shows the table or prints JSON, and keeps the figures in `latest.json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"cases to run (default: all): {', '.join(LINES)}")
    arguments = parser.parse_args()
    unknown = set(arguments.cases) - set(LINES)
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))} (allowed: {', '.join(LINES)})")
    results = []
    for case in arguments.cases or LINES:
        print(f"measuring {case}", file=sys.stderr, flush=True)
        results.append(measure(case))
    report = {"machine": machine(), "results": [asdict(result) for result in results]}
    LATEST.write_text(json.dumps(report, indent=1) + "\n")
    if arguments.json:
        print(json.dumps(report, indent=1))
    else:
        print_table(results)


if __name__ == "__main__":
    main()
