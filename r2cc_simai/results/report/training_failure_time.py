"""What one failure costs a job in all until it is repaired: pre-training of 175B, and RLHF."""

from collections.abc import Sequence
from dataclasses import dataclass

from r2cc_simai.results.report import labels, training_published, training_settings, units
from r2cc_simai.results.report.document import Block, Cell, Plot, Section, SectionKind, Table, Text, columns
from r2cc_simai.results.report.overhead_bars import overhead_bars
from r2cc_simai.results.table import Row

OURS = "r2cc-allreduce"
OTHER = "adapcc"


@dataclass(frozen=True)
class Job:
    """A job that has such a section: its scenario, and the published figure that it is compared with."""

    scenario: str
    title: str
    name: str
    published: str

    def claims(self, row: Row) -> bool:
        """Claim the scenario, and that of its other settings."""
        return row.scenario in (self.scenario, f"{self.scenario}-settings")

    def build(self, rows: Sequence[Row]) -> Section:
        """Return the section: time lost by strategy, and how it compares with AdapCC's."""
        main = [row for row in rows if row.scenario == self.scenario] or list(rows)
        lost = [row for row in main if row.metric == "failure_induced"]
        later = {row.strategy: row for row in main if row.metric == "tokens_per_s"}
        base = main[0].workload
        blocks: list[Block] = [
            Text(
                "Failure-induced time is how much longer the job needs for the same work: once, what the iteration "
                "that the failure hits takes longer (restart included), and then the overhead of each later iteration, "
                "until the NIC is replaced an hour later. The ratio compares it with AdapCC's."
            ),
            Text(f"Settings, chosen since the paper's are unknown: {training_settings.prose(base)}."),
        ]
        if later:
            blocks.append(self._bars(later))
        if lost:
            blocks.append(self._table(lost, later))
        blocks += self._settings([row for row in rows if row.scenario != self.scenario], base)
        return Section(self.scenario, self.title, tuple(blocks), tuple(self._findings(lost)))

    def _bars(self, later: dict[str, Row]) -> Plot:
        bars = {s: [row.overhead_pct or 0.0] for s, row in later.items() if (row.overhead_pct or 0.0) > 0.0}
        return overhead_bars(self.scenario, f"Overhead of later iterations, {self.name}.", [("", bars)])

    def _table(self, lost: Sequence[Row], later: dict[str, Row]) -> Table:
        other = _of(lost, OTHER)
        lines = []
        for row in sorted(lost, key=lambda r: labels.strategy_order(r.strategy)):
            after = later.get(row.strategy)
            lines.append(
                (
                    Cell(labels.strategy_name(row.strategy)),
                    Cell(training_settings.points(after.overhead_pct if after else None)),
                    Cell(units.time(row.simulated or 0.0)),
                    Cell(_times_less(row, other)),
                    Cell(self._published(row)),
                )
            )
        titles = columns(
            "<strategy", "overhead of later iterations", "time lost", "times less than AdapCC", "published"
        )
        return Table("Failure-induced time", titles, tuple(lines))

    def _published(self, row: Row) -> str:
        figure = training_published.value(self.published)
        return f"{figure:g}×" if labels.family(row.strategy) == OURS and figure is not None else units.DASH

    def _settings(self, rows: Sequence[Row], base: str) -> list[Block]:
        rows = [row for row in rows if row.metric == "tokens_per_s" and row.strategy != "ideal"]
        if not rows:
            return []
        return [
            Text(
                "AdapCC loses one replica of many, so that its loss follows from the number of replicas alone; the "
                "others' loss follows the share of the iteration in which gradients move and nothing is computed. The "
                "ratio is hence a matter of the settings."
            ),
            training_settings.by_strategy("Overhead of later iterations with other settings", rows, base, ratio=True),
        ]

    def _findings(self, lost: Sequence[Row]) -> list[str]:
        ours, other = _of(lost, OURS), _of(lost, OTHER)
        figure = training_published.value(self.published)
        if ours is None or other is None:
            return []
        published = f" (published {figure:g}×, settings unknown)" if figure is not None else ""
        return [
            f"{self.name}: a NIC that is down for an hour costs R2CC-AllReduce {units.time(ours.simulated or 0.0)} in "
            f"all, {_times_less(ours, other)} less than AdapCC{published}."
        ]


def _of(rows: Sequence[Row], family: str) -> Row | None:
    return next((row for row in rows if labels.family(row.strategy) == family), None)


def _times_less(row: Row, other: Row | None) -> str:
    if other is None or not row.simulated or not other.simulated:
        return units.DASH
    times = other.simulated / row.simulated
    return f"{times:.1f}×" if times >= 1 else f"{times:.2g}×"


PRETRAINING = Job(
    "training-175b",
    "Training 175B on 1,024 GPUs: time lost to a failure",
    "Training 175B on 1,024 GPUs",
    "failure-induced time of AdapCC over that of R2CC, 175B on 1024 GPUs",
)
RLHF = Job(
    "training-rlhf",
    "RLHF on 64 GPUs: time lost to a failure",
    "RLHF on 64 GPUs",
    "failure-induced time of AdapCC over that of R2CC, RLHF on 64 GPUs",
)
KINDS = tuple(SectionKind(job.claims, job.build) for job in (PRETRAINING, RLHF))
