"""The limits of a copy: bytes per second, and the time without records. Pure."""

from ottla.client.errors import TimedOut
from ottla.client.raw.consumer import ConsumedRecord

# A copy pays as soon as it owes this much, so that a transaction and its points stay small.
_DEBT_S = 0.5


class RateLimit:
    """A limit in bytes of keys, values and headers per second; None is no limit."""

    def __init__(self, bytes_per_s: int | None) -> None:
        self._bytes_per_s = bytes_per_s
        self._paid_until = 0.0

    def count(self, record: ConsumedRecord, now: float) -> None:
        """Add a record that was copied at a time."""
        if self._bytes_per_s is not None:
            size = len(record.key or b"") + len(record.value or b"")
            size += sum(len(name) + len(value or b"") for name, value in record.headers)
            self._paid_until = max(self._paid_until, now) + size / self._bytes_per_s

    def wait_s(self, now: float) -> float:
        """Return the seconds to wait before the next record is copied."""
        return max(self._paid_until - now, 0.0)

    def is_reached(self, now: float) -> bool:
        """Return True if the copy has to wait before it continues."""
        return self.wait_s(now) > _DEBT_S


class Patience:
    """The seconds that a copy waits for records of brokers that send nothing."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._heard_at = 0.0

    def check(self, now: float, *, is_heard: bool) -> None:
        """Raise TimedOut if nothing was heard for too long."""
        if is_heard:
            self._heard_at = now
        elif now - self._heard_at > self._seconds:
            raise TimedOut(
                f"no record arrived for {self._seconds:g} s: check that the leaders of all partitions "
                "of the source are running"
            )
