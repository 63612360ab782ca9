"""When each end of a broken path knows, by mechanism.

- A **fixed delay** (`detection_ms`): one end knows after it, the other by notice.
- **Retry timeouts**: an end that sends knows once its tries have timed out, `timeout (retries + 1)` after it first
  sends; an end that only receives knows by notice. The error names a connection, not a part.
- **Link events**: the server of the NIC that lost its link knows within milliseconds, the other by notice. A path
  that breaks inside the fabric takes down no link, so retry timeouts have to find it.
- **Bilateral probes**: both ends probe each other. An end suspects after `misses` probes without a reply, or when the
  other says that it does; it then localises (one timeout, see `localise`) and takes the other's verdict into account.
"""

import math
import random
from dataclasses import dataclass

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.cluster.spec import FailoverSpec, LinkEventSpec, ProbesSpec, RetryTimeoutSpec
from r2cc_simai.detection.localise import blamed
from r2cc_simai.detection.model import Detection, End, Failure, Part, Traffic
from r2cc_simai.failures.timeline import Component

OWN, NOTICE = "own timer", "notice"
FIXED = "fixed delay"


@dataclass(frozen=True)
class _Knowledge:
    """Milliseconds after the failure, as the cluster file has them, and where each end has it from."""

    local_ms: float
    remote_ms: float
    local_source: str
    remote_source: str


def mechanism(failover: FailoverSpec) -> str:
    """The name of a cluster's mechanism."""
    return FIXED if failover.detection is None else failover.detection.mechanism


def detect(failover: FailoverSpec, failure: Failure, draw: random.Random | None = None) -> Detection:
    """When both ends know of a failure, and what they blame.

    `draw` gives the phases of probe timers where the mechanism draws them (`phase: drawn`); without one its seed does.
    """
    known = _known(failover, failure, draw)
    part = _blame(failover, failure.component, failure.auxiliary)
    ends = [
        End(known_ms * 1e-3, source, part if math.isfinite(known_ms) else None)
        for known_ms, source in ((known.local_ms, known.local_source), (known.remote_ms, known.remote_source))
    ]
    return Detection(*ends)


def resume_delay_s(cluster: Cluster, component: Component, draw: random.Random | None = None) -> float:
    """Seconds from a failure of a NIC under traffic until both ends use another one."""
    failover = cluster.spec.failover
    known = _known(failover, Failure(component), draw)
    return (max(known.local_ms, known.remote_ms) + failover.migrate_ms) * 1e-3


def _blame(failover: FailoverSpec, component: Component, auxiliary: bool) -> Part | None:
    match failover.detection:
        case ProbesSpec():
            return blamed(component, auxiliary)
        case LinkEventSpec() if component is not Component.PATH:
            return blamed(component)
        case _:
            return None


def _known(failover: FailoverSpec, failure: Failure, draw: random.Random | None) -> _Knowledge:
    notify = failover.notify_ms
    match failover.detection:
        case RetryTimeoutSpec() as spec:
            return _by_senders(spec.delay_ms, notify, failure.traffic)
        case LinkEventSpec() as spec:
            if failure.component is Component.PATH:
                return _by_senders(spec.silent_ms, notify, failure.traffic)
            if failure.component is Component.REMOTE_NIC:
                return _Knowledge(spec.event_ms + notify, spec.event_ms, NOTICE, "link event")
            return _Knowledge(spec.event_ms, spec.event_ms + notify, "link event", NOTICE)
        case ProbesSpec() as spec:
            return _by_probes(spec, notify, draw or random.Random(spec.seed))
        case _:
            return _Knowledge(failover.delay_ms, failover.delay_ms + notify, FIXED, NOTICE)


def _by_senders(delay_ms: float, notify_ms: float, traffic: Traffic) -> _Knowledge:
    local, remote = (math.inf if s is None else s * 1e3 + delay_ms for s in (traffic.local_s, traffic.remote_s))
    return _Knowledge(
        min(local, remote + notify_ms),
        min(remote, local + notify_ms),
        _source(local, remote + notify_ms),
        _source(remote, local + notify_ms),
    )


def _source(own: float, told: float) -> str:
    if math.isinf(min(own, told)):
        return "nothing sent"
    return OWN if own <= told else NOTICE


def _by_probes(spec: ProbesSpec, notify_ms: float, draw: random.Random) -> _Knowledge:
    """An end's first lost probe leaves after a phase of 0 to one interval; the verdict needs both ends' results."""
    drawn = spec.phase == "drawn"
    phases = [draw.random() * spec.interval_ms if drawn else spec.interval_ms for _ in range(2)]
    own = [phase + (spec.misses - 1) * spec.interval_ms + spec.timeout_ms for phase in phases]
    suspects = [min(own[0], own[1] + notify_ms), min(own[1], own[0] + notify_ms)]
    results = [suspect + spec.timeout_ms for suspect in suspects]
    return _Knowledge(
        max(results[0], results[1] + notify_ms),
        max(results[1], results[0] + notify_ms),
        _source(own[0], own[1] + notify_ms),
        _source(own[1], own[0] + notify_ms),
    )
