"""NCCL's port recovery (2.30): how the two ends of a connection take a port into use again.

After `src/transport/net_ib/p2p_resiliency_recovery.cc` of NVIDIA/nccl. Both ends start `start` after they have marked
the device as failed.

- The **sender** posts a batch of "alive" messages and waits `ack_timeout` for the receiver's acknowledgement; then the
  attempt has failed and it posts the next batch.
- The **receiver** wants more messages in order than one batch has, so two batches in a row (`batches`). Every
  `alive_timeout` without a message is a failed attempt. Its clock starts at zero, so the first one fails at once.
- An end that has failed `attempts` times marks the device as failed for good; the other one is not told.

With the defaults the receiver gives up 16.2 s after it knew and the sender after 25.2 s, and two batches take 5 s. A
port that comes back later than about 10 s stays unused although the sender goes on trying: the skew of nccl issue 2157.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from r2cc_simai.detection.outage import Outage, Recovery

_LONGEST_PAUSE_S = 3600.0


@dataclass(frozen=True)
class Timers:
    """The protocol's timers in seconds, and its budget of attempts per end.

    `batches` in a row must arrive. `lost_attempts` are batches that get lost although the port works: its address has
    changed with the flap (nccl pull request 2183). `pause_s` above 0: after a round without success both ends start
    another one that much later, twice as late after each further round, up to an hour (asked for in nccl issue 2323;
    NCCL has no such thing).
    """

    start_s: float = 0.2
    batch_s: float = 0.5
    alive_timeout_s: float = 4.0
    ack_timeout_s: float = 5.0
    attempts: int = 5
    batches: int = 2
    lost_attempts: int = 0
    pause_s: float = 0.0


@dataclass(frozen=True)
class _Round:
    recovered_s: float | None
    failed: int
    lost: int
    ended_s: float
    reason: str


def recover_port(outage: Outage, timers: Timers) -> Recovery:
    """When the port carries traffic again, or why it never does."""
    failed, lost, rounds = 0, timers.lost_attempts, 0
    last_change = max(time for span in outage.working_s for time in span if math.isfinite(time))
    sender, receiver = outage.sender_s, outage.receiver_s
    while True:
        rounds += 1
        one = _round(outage, timers, sender, receiver, lost)
        failed += one.failed
        lost -= one.lost
        if one.recovered_s is not None:
            return Recovery(outage, one.recovered_s, 1, failed, rounds)
        hopeless = min(sender, receiver) > last_change and one.lost == 0
        if timers.pause_s == 0 or hopeless:
            return Recovery(outage, None, 0, failed, rounds, one.reason)
        sender = receiver = one.ended_s + min(_LONGEST_PAUSE_S, timers.pause_s * 2.0 ** min(rounds - 1, 60))


def _round(outage: Outage, timers: Timers, sender_s: float, receiver_s: float, lost: int) -> _Round:
    receiver = _Receiver(timers, receiver_s + timers.start_s)
    sender_ends = sender_s + timers.start_s + timers.attempts * _period(timers)
    in_row = used_up = 0
    for failed, time_s in enumerate(_batches(timers, sender_s + timers.start_s)):
        receiver.wait_until(time_s)
        if receiver.gave_up_s is not None:
            break
        if not outage.works(time_s) or time_s < receiver.began_s:
            in_row = 0
            continue
        if used_up < lost:
            used_up, in_row = used_up + 1, 0
            continue
        receiver.hear(time_s)
        in_row += 1
        if in_row == timers.batches:
            return _Round(time_s, failed, used_up, time_s, "")
    receiver.wait_until(math.inf)
    assert receiver.gave_up_s is not None
    ended = max(sender_ends, receiver.gave_up_s)
    return _Round(None, timers.attempts, used_up, ended, _reason(outage, timers, sender_ends, receiver.gave_up_s))


def _period(timers: Timers) -> float:
    return max(timers.ack_timeout_s, timers.batch_s)


def _batches(timers: Timers, start_s: float) -> Iterator[float]:
    for attempt in range(timers.attempts):
        yield start_s + attempt * _period(timers)


class _Receiver:
    """The receiver's budget: one attempt at once, one more for each `alive_timeout_s` without a message."""

    def __init__(self, timers: Timers, began_s: float) -> None:
        self._timers = timers
        self._last_s = began_s
        self._failed = 1
        self.began_s = began_s
        self.gave_up_s: float | None = began_s if timers.attempts <= 1 else None

    def wait_until(self, time_s: float) -> None:
        while self.gave_up_s is None and self._last_s + self._timers.alive_timeout_s < time_s:
            self._last_s += self._timers.alive_timeout_s
            self._failed += 1
            if self._failed >= self._timers.attempts:
                self.gave_up_s = self._last_s

    def hear(self, time_s: float) -> None:
        self._last_s = time_s


def _reason(outage: Outage, timers: Timers, sender_ends: float, receiver_ends: float) -> str:
    budget = f"the {timers.attempts} recovery attempts"
    ends = {"sender": sender_ends, "receiver": receiver_ends}
    first = min(ends, key=lambda end: ends[end])
    other = "receiver" if first == "sender" else "sender"
    if outage.up_s >= max(ends.values()):
        return f"{budget} of both ends were used up {max(ends.values()) - outage.down_s:.4g} s after the failure"
    return (
        f"{budget} of the {first} were used up {ends[first] - outage.down_s:.4g} s after the failure, "
        f"those of the {other} {ends[other] - outage.down_s:.4g} s after it"
    )
