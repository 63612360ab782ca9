"""A 7B job on 4 to 64 servers of eight A100: what a NIC costs under each strategy as the job grows."""

from collections.abc import Sequence

from r2cc_simai.results.report import labels, training_lines, training_published, training_settings, units
from r2cc_simai.results.report.document import Block, Cell, Plot, Section, SectionKind, Table, Text, columns
from r2cc_simai.results.table import Row

SCENARIO = "training-servers"
SETTINGS = "training-servers-settings"
GPUS_A_SERVER = 8


def claims(row: Row) -> bool:
    """Claim the two scenarios, where the cluster's name says how many servers it has."""
    return row.scenario in (SCENARIO, SETTINGS) and labels.servers(row.cluster) is not None


def build(rows: Sequence[Row]) -> Section:
    """Return the section: overhead over servers, the iteration that the failure hits, other settings."""
    told = [row for row in rows if row.metric == "tokens_per_s" and row.overhead_pct is not None]
    main = [row for row in told if row.scenario == SCENARIO] or told
    hit = [row for row in rows if row.scenario == SCENARIO and row.metric == "iteration_cut"]
    base = main[0].workload
    slower = [row for row in main if (row.overhead_pct or 0.0) > 0.0]
    blocks: list[Block] = [
        Text(
            "One NIC dies in the middle of an iteration. The overhead is that of later iterations, until the NIC is "
            "replaced: time for the same tokens over that of the healthy job. AdapCC goes on without the replica of "
            "the ranks that it drops. NCCL restarts on a spare server, and then is as fast as before."
        ),
        Text(
            f"Settings, chosen since the paper's are unknown: {_settings_of(base)}. The batch is that of "
            "all servers together, so that gradients weigh the more, the more servers there are."
        ),
        Plot("training-servers", "Overhead of later iterations by number of servers.", _plot(slower)),
        _table("Overhead of later iterations", main, training_settings.overhead),
    ]
    if hit:
        blocks.append(_table("What the iteration that the failure hits takes longer, once", hit, _extra))
    blocks += _settings([row for row in told if row.scenario == SETTINGS], base)
    title = "Training a 7B model on 4 to 64 servers"
    return Section(SCENARIO, title, tuple(blocks), tuple(_findings(main)))


def _plot(rows: Sequence[Row]) -> str:
    points: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        points.setdefault(row.strategy, []).append((float(_servers(row)), row.overhead_pct or 0.0))
    return training_lines.lines(points, "servers of 8 GPUs", "overhead over the healthy job (%)")


def _table(caption: str, rows: Sequence[Row], told: training_settings.Told) -> Table:
    by_place = {(row.strategy, _servers(row)): row for row in rows}
    counts = sorted({_servers(row) for row in rows})
    strategies = sorted({row.strategy for row in rows}, key=labels.strategy_order)
    lines = [
        (
            Cell(labels.strategy_name(s)),
            *(told(by_place[s, n]) if (s, n) in by_place else Cell(units.DASH) for n in counts),
        )
        for s in strategies
    ]
    return Table(caption, columns("<strategy", *(f"{n} servers" for n in counts)), tuple(lines))


def _extra(row: Row) -> Cell:
    if row.simulated is None or row.ideal is None:
        return Cell(units.DASH)
    return Cell(units.time(max(0.0, row.simulated - row.ideal)))


def _settings(rows: Sequence[Row], base: str) -> list[Block]:
    rows = [row for row in rows if row.strategy != "ideal"]
    if not rows:
        return []
    servers = _servers(rows[0])
    return [
        Text(
            "How much that depends on what was chosen: the overhead follows the share of the iteration in which "
            "gradients move and nothing is computed."
        ),
        training_settings.by_strategy(f"Overhead with other settings, {servers} servers", rows, base),
    ]


def _findings(rows: Sequence[Row]) -> list[str]:
    most = max(_servers(row) for row in rows)
    slower = [r for r in rows if _servers(r) == most and (r.overhead_pct or 0.0) > 0.0]
    own = sorted(slower, key=lambda r: r.overhead_pct or 0.0)
    parts = [f"{labels.strategy_name(r.strategy)} {training_settings.points(r.overhead_pct)}" for r in own]
    limit = training_published.value("overhead under a NIC failure, at most")
    published = f" (published: R²CC below {limit:g}%)" if limit is not None else ""
    what = f"Training a 7B model on {most} servers with a NIC down costs, until it is replaced"
    return [f"{what}: {', '.join(parts)}{published}."]


def _settings_of(workload: str) -> str:
    return f"{training_settings.prose(workload, without=('dp',))}, as many replicas as fit"


def _servers(row: Row) -> int:
    servers = labels.servers(row.cluster)
    assert servers is not None
    return servers


KIND = SectionKind(claims, build)
