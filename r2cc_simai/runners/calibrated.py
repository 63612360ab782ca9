"""The parameters of a cluster that a healthy sweep can tell, and the cluster with other values of them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from r2cc_simai.cluster.load import preset_names
from r2cc_simai.cluster.spec import ClusterSpec, NicSpec, ServerSpec

Values = Mapping[str, float]

RATE, LINE_RATE, BURST = "rate_gbps", "line_rate_gbps", "burst_kb"
BASE, STEP, LINK = "base_latency_us", "step_latency_us", "intra_server.latency_us"
LL_THRESHOLD = "ll_threshold_kib"

PORT_SPEEDS_GBPS = (1, 2.5, 5, 10, 25, 40, 50, 56, 100, 200, 400, 800, 1600)
LL_CHOICES_KIB = (0.0, *(float(2**k) for k in range(4, 13)))
SMALLEST_LATENCY_US = 0.05


@dataclass(frozen=True)
class Parameter:
    """A parameter's value in the cluster as it is, and the physical bounds within which a fit may move it."""

    name: str
    value: float
    low: float
    high: float


def parameters_of(spec: ClusterSpec) -> list[Parameter]:
    """What a fit may move, at most six and the low-latency threshold. NICs keep the ratio of their rates.

    A rate limit is below the port's speed, the burst rate between the two: line_rate_gbps >= rate_gbps, and at most the
    next port speed that is sold. NICs without a token bucket have no burst to fit.
    """
    nic = spec.server.nics[0]
    port = _port_speed(nic.line_rate_gbps or nic.rate_gbps)
    found = [Parameter(RATE, nic.rate_gbps, 0.5 * nic.rate_gbps, min(1.2 * nic.rate_gbps, port))]
    if nic.line_rate_gbps is not None and nic.burst_kb > 0:
        found.append(Parameter(LINE_RATE, nic.line_rate_gbps, nic.rate_gbps, port))
        found.append(Parameter(BURST, nic.burst_kb, 1.0, 1e5))
    latencies = (
        (BASE, spec.transport.base_latency_us),
        (STEP, spec.transport.step_latency_us),
        (LINK, spec.server.intra_server.latency_us),
    )
    return found + [Parameter(n, max(v, SMALLEST_LATENCY_US), SMALLEST_LATENCY_US, 1e3) for n, v in latencies]


def _port_speed(rate_gbps: float) -> float:
    return next((float(speed) for speed in PORT_SPEEDS_GBPS if speed >= rate_gbps), rate_gbps)


def with_values(spec: ClusterSpec, values: Values) -> ClusterSpec:
    """The same cluster with the parameters of `values`; those that it does not name stay."""
    scale = {
        key: values[key] / own
        for key, own in ((RATE, spec.server.nics[0].rate_gbps), (LINE_RATE, spec.server.nics[0].line_rate_gbps))
        if key in values and own
    }

    def nic(old: NicSpec) -> NicSpec:
        rate = old.rate_gbps * scale.get(RATE, 1.0)
        line = old.line_rate_gbps and max(old.line_rate_gbps * scale.get(LINE_RATE, 1.0), rate)
        burst = values.get(BURST, old.burst_kb) if old.burst_kb else old.burst_kb
        return old.model_copy(update={RATE: rate, LINE_RATE: line, BURST: burst})

    def server(old: ServerSpec) -> ServerSpec:
        link = old.intra_server.model_copy(update={"latency_us": values.get(LINK, old.intra_server.latency_us)})
        return old.model_copy(update={"nics": [nic(one) for one in old.nics], "intra_server": link})

    transport = {key: values[key] for key in (BASE, STEP, LL_THRESHOLD) if key in values}
    return spec.model_copy(
        update={
            "server": server(spec.server),
            "overrides": {name: server(one) for name, one in spec.overrides.items()},
            "transport": spec.transport.model_copy(update=transport),
        }
    )


def as_file(spec: ClusterSpec, preset: str | None, heading: str) -> str:
    """The YAML of a calibrated cluster: what differs from `preset`, or all of it where there is none.

    `heading` becomes the comment on its first line.
    """
    import yaml

    whole: dict[str, Any] = spec.model_dump(exclude_defaults=True)
    data = whole
    if preset is not None:
        # Merged over the preset key by key, so that a value which equals the default must be written, too.
        whole = spec.model_dump(exclude_none=True)
        server = {"nics": whole["server"]["nics"], "intra_server": whole["server"]["intra_server"]}
        data = {"preset": preset, "servers": spec.servers, "server": server, "transport": whole["transport"]}
        data |= {"overrides": whole["overrides"]} if spec.overrides else {}
    return f"# {heading}\n" + yaml.safe_dump(data, sort_keys=False, width=120, default_flow_style=None)


def preset_of(name: str) -> str | None:
    """The preset in `h100` or `h100x16`; None for a file."""
    preset = re.sub(r"x\d+$", "", name)
    return next((known for known in (name, preset) if known in preset_names()), None)


def rounded(values: Values, digits: int = 4) -> dict[str, float]:
    """Values with as many significant digits as a person would write."""
    return {key: float(f"{value:.{digits}g}") for key, value in values.items()}
