"""Limits of the bytes that a broker sends to followers and copies from leaders (KIP-73).

Pure: times are in seconds of a monotonic clock. A limit applies to the replicas that a topic's
option names, and only while they are out of sync, so that a limit cannot remove a replica from the
ISR. Follows kafka.server.ReplicationQuotaManager and
org.apache.kafka.common.metrics.stats.SimpleRate.
"""

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

_EVERY_REPLICA = "*"


class Throttled(NamedTuple):
    """The limits to which one replica is subject: as the leader, and as a follower."""

    as_leader: bool = False
    as_follower: bool = False


NOT_THROTTLED = Throttled()


class ReplicationQuotaWindow(NamedTuple):
    """The period over which a rate is computed; the current sample is one of `samples`."""

    samples: int = 11
    sample_seconds: float = 1.0

    @property
    def seconds(self) -> float:
        """After this time, bytes are no longer counted."""
        return self.samples * self.sample_seconds


DEFAULT_WINDOW = ReplicationQuotaWindow()


class _Sample:
    __slots__ = ("last_at", "size_bytes", "started_at")

    def __init__(self, now: float) -> None:
        self.started_at = self.last_at = now
        self.size_bytes = 0


class Throttle:
    """Measures the rate of one direction of replication; `limit` returns the maximum in bytes per
    second.
    """

    __slots__ = ("_limit", "_samples", "_window")

    def __init__(
        self, limit: Callable[[], float], window: ReplicationQuotaWindow = DEFAULT_WINDOW
    ) -> None:
        self._limit = limit
        self._window = window
        self._samples: deque[_Sample] = deque()

    def record(self, size_bytes: int, now: float) -> None:
        """Count bytes of throttled replicas, whether or not they are in sync."""
        samples = self._samples
        self._forget(now)
        if not samples or now - samples[-1].started_at >= self._window.sample_seconds:
            samples.append(_Sample(now))
        samples[-1].size_bytes += size_bytes
        samples[-1].last_at = now

    def bytes_per_second(self, now: float) -> float:
        """Return the rate since the start of the oldest sample."""
        self._forget(now)
        return self._size_bytes() / self._elapsed(now)

    def is_exceeded(self, now: float) -> bool:
        """Return True if replicas that are throttled and out of sync must wait."""
        return bool(self._samples) and self.bytes_per_second(now) > self._limit()

    def seconds_left(self, now: float) -> float:
        """Return how long the rate exceeds the limit if nothing more is counted."""
        if not self.is_exceeded(now):
            return 0.0
        oldest = self._samples[0].last_at + self._window.seconds - now
        limit = self._limit()
        if limit <= 0:
            return oldest
        return min(oldest, self._size_bytes() / limit - self._elapsed(now))

    def _size_bytes(self) -> int:
        return sum(sample.size_bytes for sample in self._samples)

    def _elapsed(self, now: float) -> float:
        # A rate over less than one sample would exceed any limit.
        elapsed = now - self._samples[0].started_at if self._samples else 0.0
        return max(elapsed, self._window.sample_seconds)

    def _forget(self, now: float) -> None:
        samples = self._samples
        while samples and now - samples[0].last_at >= self._window.seconds:
            samples.popleft()


class ReplicationTraffic:
    """The replication of one broker in both directions: its limits, and the bytes since the start.

    `reassigned` bytes belong to replicas that a reassignment adds (KIP-352).
    """

    __slots__ = (
        "from_leaders",
        "reassigned_received_bytes",
        "reassigned_sent_bytes",
        "received_bytes",
        "sent_bytes",
        "to_followers",
    )

    def __init__(
        self, to_followers: Throttle | None = None, from_leaders: Throttle | None = None
    ) -> None:
        self.to_followers = to_followers or Throttle(lambda: math.inf)
        self.from_leaders = from_leaders or Throttle(lambda: math.inf)
        self.sent_bytes = self.received_bytes = 0
        self.reassigned_sent_bytes = self.reassigned_received_bytes = 0

    def received(self, size_bytes: int, now: float, *, throttled: bool, added: bool) -> None:
        """Count bytes that a follower has appended; `added` if a reassignment adds this replica."""
        self.received_bytes += size_bytes
        if added:
            self.reassigned_received_bytes += size_bytes
        if throttled:
            self.from_leaders.record(size_bytes, now)

    def sent(self, size_bytes: int, now: float, *, throttled: bool, added: bool) -> None:
        """Count bytes sent to a follower; `added` if a reassignment adds that replica."""
        self.sent_bytes += size_bytes
        if added:
            self.reassigned_sent_bytes += size_bytes
        if throttled:
            self.to_followers.record(size_bytes, now)


def names_replica(replicas: Sequence[str], partition: int, broker_id: int) -> bool:
    """Return True if a topic's list of throttled replicas contains this one."""
    return _EVERY_REPLICA in replicas or f"{partition}:{broker_id}" in replicas
