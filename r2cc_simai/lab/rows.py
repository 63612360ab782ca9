"""Rows of the results table from what the lab measured: one for every metric and repetition.

`measured` holds the value; `source` names the raw file, the repetition, the machine and the versions. Bytes of an
iteration that a cut hits carry the scenario with `/cut` behind it, as in the simulated rows.
"""

from collections.abc import Iterator

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.lab.record import CaseRecord, Iteration, environment
from r2cc_simai.lab.spec import LabSpec
from r2cc_simai.results import Row, make_row
from r2cc_simai.results.tolerance import LAB
from r2cc_simai.runners.rows import CUT

BACKEND = "lab"
RAW = "raw"
"""Folder of the raw records inside a run folder."""


def case_rows(record: CaseRecord, spec: LabSpec, cluster: Cluster, raw: str) -> list[Row]:
    """All rows of a case; `raw` is its raw file, relative to the run folder."""
    maker = _Maker(record, spec, cluster, raw)
    rows = [row for one in record.iterations for row in maker.iteration(one)]
    return rows + list(maker.began())


class _Maker:
    """Makes the rows of one case."""

    def __init__(self, record: CaseRecord, spec: LabSpec, cluster: Cluster, raw: str) -> None:
        self._record = record
        self._spec = spec
        self._cluster = cluster
        self._raw = raw
        self._repetitions = 1 + max((one.repetition for one in record.iterations), default=0)
        self._machine = "; ".join(f"{key} {value}" for key, value in environment().items())

    def iteration(self, one: Iteration) -> Iterator[Row]:
        """Times, bytes per NIC, and what it took to get there. Iterations until a script has ended have none."""
        if one.role == "during":
            return
        cut = one.role == "cut"
        yield self._row("time_cut" if cut else "time", "s", one.time_s, one.repetition)
        for nic, counted in one.wire_bytes.items():
            for way, value in zip(("rx_bytes", "tx_bytes"), counted, strict=True):
                yield self._row(f"{way}[{nic}]", "B", float(value), one.repetition, CUT if cut else "")
        kind = CUT if cut else ""
        yield self._row("cpu_s", "s", sum(one.cpu_s) / len(one.cpu_s), one.repetition, kind)
        yield self._row("wrong_elements", "1", float(one.wrong_elements), one.repetition, kind)
        yield self._row("recoveries", "1", float(len(one.recoveries)), one.repetition, kind)
        yield self._row("false_alarms", "1", float(one.false_alarms), one.repetition, kind)

    def began(self) -> Iterator[Row]:
        """When each cut of the script began, by its position, in seconds since the collective's start."""
        for repetition, began in enumerate(self._record.began_s):
            for position, time_s in sorted(began.items()):
                yield self._row(f"cut_at[{position}]", "s", time_s, repetition, CUT)

    def _row(self, metric: str, unit: str, value: float, repetition: int, kind: str = "") -> Row:
        return make_row(
            scenario=f"{LAB}{self._cluster.name}{kind}",
            cluster=self._cluster.name,
            workload=self._spec.collective,
            pattern=self._record.pattern,
            strategy=self._record.strategy,
            backend=BACKEND,
            bytes=self._record.bytes,
            metric=metric,
            unit=unit,
            simulated=None,
            measured=value,
            source=f"{self._raw} repetition {repetition + 1} of {self._repetitions}; {self._machine}",
        )
