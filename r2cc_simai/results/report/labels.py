"""What the text columns of a row say: members, lost fraction, strategy and its options, metric."""

import re

from r2cc_simai.results.report import units

_CLUSTER = re.compile(r"(?P<preset>.+?)x(?P<servers>\d+)")
_PARTIAL_LOSS = re.compile(r"[^=@]+=(?P<left>[0-9.eE+-]+)@0(\.0*)?")
_NUMBERS = re.compile(r"(\D*)(\d*)")
_AFTER_BYTES = re.compile(r"@bytes:(?P<count>\d+(\.\d+)?)")
_COUNTER = re.compile(r"(?P<way>[rt]x)_bytes\[(?P<port>[^\]]+)\]")

STRATEGY_NAMES = {
    "ideal": "Ideal (healthy)",
    "nccl": "NCCL",
    "nccl-failover": "NCCL failover",
    "hot-repair": "Hot repair",
    "balance": "Balance",
    "r2cc-allreduce": "R2CC-AllReduce",
    "optcc": "OptCC",
    "adapcc": "AdapCC",
    "dejavu": "DéjàVu",
    "auto": "Auto",
}
METRIC_NAMES = {
    "time": "steady time",
    "time_first": "with one-off costs",
    "time_cut": "iteration hit by the cut",
    "algbw": "algorithm bandwidth",
    "busbw": "bus bandwidth",
    "iteration": "time of an iteration",
    "iteration_cut": "iteration hit by the failure",
    "tokens_per_s": "tokens per second",
    "exposed_share": "share of exposed communication",
    "stopped": "time at a standstill",
    "work_factor": "iterations for the same work",
    "failure_induced": "time lost until the repair",
    "ratio": "ratio to healthy",
    "effective_time": "effective time",
}


def servers(cluster: str) -> int | None:
    """Return the number of servers in a name such as `uniformx8`; None for another name."""
    found = _CLUSTER.fullmatch(cluster)
    return int(found["servers"]) if found else None


def cluster_kind(cluster: str) -> str:
    """Return the preset in a name such as `uniformx8`; another name as it is."""
    found = _CLUSTER.fullmatch(cluster)
    return found["preset"] if found else cluster


def lost_fraction(pattern: str) -> float | None:
    """Return X of a pattern such as `server0.nic0=0.875@0` (which keeps 0.875 of its rate): 0.125.

    None for a pattern that is not the partial loss of one component from the start on.
    """
    found = _PARTIAL_LOSS.fullmatch(pattern)
    try:
        left = float(found["left"]) if found else 1.0
    except ValueError:
        return None
    return 1.0 - left if 0.0 < left < 1.0 else None


def family(strategy: str) -> str:
    """Return a strategy's name without its options."""
    return strategy.partition(":")[0]


def options(strategy: str) -> dict[str, str]:
    """Return the options of a strategy: `r2cc-allreduce:k=8,y=opt` gives {"k": "8", "y": "opt"}.

    K of R2CC-AllReduce is named even where it is the default, since readers compare by it.
    """
    pairs = (item.partition("=") for item in strategy.partition(":")[2].split(",") if item)
    written = {key.strip(): value.strip() for key, _, value in pairs}
    return {"k": "4"} | written if family(strategy) == "r2cc-allreduce" else written


def family_name(strategy: str) -> str:
    """Return a strategy without its options as a reader knows it: `R2CC-AllReduce`."""
    return STRATEGY_NAMES.get(family(strategy), family(strategy))


def strategy_name(strategy: str) -> str:
    """Return a strategy as a reader knows it: `R2CC-AllReduce k=128`."""
    extra = " ".join(f"{key}={value}" for key, value in options(strategy).items())
    return f"{family_name(strategy)} {extra}".rstrip()


def metric_name(metric: str) -> str:
    """Return what a metric means in a few words."""
    way = counter(metric)
    if way:
        return f"{'received' if way[0] == 'rx' else 'sent'} on {way[1]}"
    return METRIC_NAMES.get(metric, metric)


def counter(metric: str) -> tuple[str, str] | None:
    """Return (rx or tx, NIC or server) of a metric such as `rx_bytes[server0.mlx5_2]`; else None."""
    found = _COUNTER.fullmatch(metric)
    return (found["way"], found["port"]) if found else None


def short_pattern(pattern: str) -> str:
    """Return a pattern with its counts of bytes in binary units: `server0.mlx5_2 after 573.2 MiB`."""
    return _AFTER_BYTES.sub(lambda found: f" after {units.size(float(found['count']))}", pattern)


def without_bytes(failure: str) -> str:
    """Return a failure by bytes as one from the start on, for a picture of where it is: `server0.mlx5_2@0`."""
    return _AFTER_BYTES.sub("@0", failure)


def strategy_order(strategy: str) -> tuple[int, str, tuple[tuple[str, float, str], ...]]:
    """Return the key that sorts strategies: from the simplest to the most elaborate, options by value."""
    base = family(strategy)
    known = list(STRATEGY_NAMES)
    rank = known.index(base) if base in known else len(known)
    return rank, base, tuple((key, _numeric(value), value) for key, value in options(strategy).items())


def natural(text: str) -> tuple[tuple[str, int], ...]:
    """Return the key that sorts text with its numbers by value: `nic2` before `nic10`."""
    return tuple((other, int(number or 0)) for other, number in _NUMBERS.findall(text))


def _numeric(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return 0.0
