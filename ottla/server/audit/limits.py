"""Bounds of the lines that clients can provoke: denials, failed logins and failed changes. Pure.

The same question of the same client is written once in a minute. The first lines of an address are
written at once, further ones at a rate; the same applies to all addresses together. The number of
lines that are not written is kept for each client, and reported.
"""

from collections.abc import Hashable
from typing import NamedTuple

from ottla.server.audit.record import AuditEvent, Origin

REPEAT_SECONDS = 60.0
"""The time in which a line is not repeated, and after which suppressed lines are reported."""

ADDRESS_BURST, ADDRESS_PER_SECOND = 20, 1.0
TOTAL_BURST, TOTAL_PER_SECOND = 200, 20.0
# Of questions and addresses that are remembered, and of clients whose lines are counted.
_QUESTIONS_MAX = 10_000
_ADDRESSES_MAX = 10_000
_CLIENTS_MAX = 500
_OTHERS = Origin("", "")


class Suppressed(NamedTuple):
    """How many lines of a client were not written; without a principal, the lines of many clients."""

    event: AuditEvent
    origin: Origin
    lines_count: int


class _Bucket:
    """The lines that may be written now: refilled at a rate, up to a burst."""

    __slots__ = ("_at", "_burst", "_left", "_rate")

    def __init__(self, burst: int, rate: float, now: float) -> None:
        self._burst = burst
        self._rate = rate
        self._left = float(burst)
        self._at = now

    def has_one(self, now: float) -> bool:
        """Return True if a line may be written."""
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        return self._left >= 1

    def take(self) -> None:
        """Count a line that is written."""
        self._left -= 1


class Limiter:
    """Decides which lines are written; times come from a monotonic clock, in seconds."""

    def __init__(self) -> None:
        # When a question was last written.
        self._questions: dict[Hashable, float] = {}
        self._addresses: dict[str, _Bucket] = {}
        self._total: _Bucket | None = None
        self._suppressed: dict[tuple[AuditEvent, str, str], int] = {}

    @property
    def entries_count(self) -> int:
        """The number of questions and addresses that are remembered."""
        return len(self._questions) + len(self._addresses)

    @property
    def has_suppressed(self) -> bool:
        """True if lines were not written since the last report."""
        return bool(self._suppressed)

    def admits(self, event: AuditEvent, origin: Origin, question: Hashable, now: float) -> bool:
        """Return True if a line is to be written, and count it otherwise."""
        key = (event, origin.principal, origin.address, question)
        written_at = self._questions.get(key)
        is_repeated = written_at is not None and now - written_at < REPEAT_SECONDS
        if is_repeated or not self._take(origin.address, now):
            self.count(event, origin)
            return False
        if len(self._questions) >= _QUESTIONS_MAX:
            self._questions.clear()
        self._questions[key] = now
        return True

    def _take(self, address: str, now: float) -> bool:
        if self._total is None:
            self._total = _Bucket(TOTAL_BURST, TOTAL_PER_SECOND, now)
        bucket = self._addresses.get(address)
        if bucket is None:
            if len(self._addresses) >= _ADDRESSES_MAX:
                self._addresses.clear()
            bucket = self._addresses[address] = _Bucket(ADDRESS_BURST, ADDRESS_PER_SECOND, now)
        if not bucket.has_one(now) or not self._total.has_one(now):
            return False
        bucket.take()
        self._total.take()
        return True

    def is_exhausted(self, address: str, now: float) -> bool:
        """Return True if no line of this address is admitted now."""
        bucket, total = self._addresses.get(address), self._total
        if bucket is None or total is None:
            return False
        return not bucket.has_one(now) or not total.has_one(now)

    def count(self, event: AuditEvent, origin: Origin) -> None:
        """Count a line that is not written."""
        key = (event, origin.principal, origin.address)
        if key not in self._suppressed and len(self._suppressed) >= _CLIENTS_MAX:
            key = (event, *_OTHERS[:2])
        self._suppressed[key] = self._suppressed.get(key, 0) + 1

    def report(self) -> list[Suppressed]:
        """Return how many lines of each client were not written since the last report."""
        suppressed, self._suppressed = self._suppressed, {}
        return [
            Suppressed(event, Origin(principal, address), count)
            for (event, principal, address), count in suppressed.items()
        ]
