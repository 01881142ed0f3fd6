"""The records that a flush waits for: those that were sent before it began (KafkaProducer.flush).

librdkafka's flush ends when the producer has no unacknowledged record at all. While other threads
or tasks keep sending, that may never happen. So a flush counts the records that follow, and their
delivery reports. At other times a record takes no detour.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

Produce = Callable[..., None]
"""librdkafka's `produce`: topic, value, key, partition, callback and, optionally, the callback once
more, timestamp and headers.
"""
# A callback that runs in this pause may wait for a thread that sends.
_PAUSE_S_MAX = 0.02


@dataclass(slots=True)
class Flush:
    """One flush: the number of later records, and of the reports of these."""

    sent: int = 0
    reported: int = 0


class _Report:
    """A callback that counts the report of a later record before it passes it on."""

    __slots__ = ("_callback", "_flushes")

    def __init__(self, callback: Callable[[Any, Any], None], flushes: tuple[Flush, ...]) -> None:
        self._callback = callback
        self._flushes = flushes

    def __call__(self, error: Any, report: Any) -> None:
        # One thread at a time serves reports.
        for flush in self._flushes:
            flush.reported += 1
        self._callback(error, report)


class Flushes:
    """The flushes of one producer that are under way.

    `replace(former, new)` changes the function by which records are sent, if it is `former`.
    """

    def __init__(self, producer: Any, replace: Callable[[Produce, Produce], None]) -> None:
        self.lock = threading.RLock()
        """Protects the replacement: a producer that closes replaces the function, too.

        A signal handler may send a record while this thread holds it.
        """
        self.native: Produce = producer.produce
        """The function outside of flushes."""
        self._producer = producer
        self._replace = replace
        self._counted: Produce = self._produce
        self._under_way: tuple[Flush, ...] = ()
        self._paused_by: int | None = None
        self._resumed = threading.Event()
        self._resumed.set()

    @contextmanager
    def begun(self) -> Iterator[Flush]:
        """Count the records that are sent during the block."""
        flush = Flush()
        with self.lock:
            self._under_way = (*self._under_way, flush)
            self._replace(self.native, self._counted)
        try:
            yield flush
        finally:
            with self.lock:
                self._under_way = tuple(other for other in self._under_way if other is not flush)
                if not self._under_way:
                    self._replace(self._counted, self.native)

    def unacknowledged(self, flush: Flush) -> int:
        """Serve the reports that wait, and return the number of earlier records without a report.

        No other thread may serve reports during the call. librdkafka counts a report that arrives
        between the two steps as a record: then the number is too large.
        """
        # Threads that send would delay the second step, because they use Python's lock all the
        # time, and more reports would arrive.
        self._paused_by = threading.get_ident()
        self._resumed.clear()
        try:
            self._producer.poll(0)
            with self.lock:
                return len(self._producer) - flush.sent + flush.reported
        finally:
            self._resumed.set()
            self._paused_by = None

    def _produce(
        self,
        topic: Any,
        value: Any,
        key: Any,
        partition: int,
        callback: Callable[[Any, Any], None],
        *others: Any,
    ) -> None:
        # The thread that pauses the others runs callbacks, which may send.
        if self._paused_by != threading.get_ident():
            self._resumed.wait(_PAUSE_S_MAX)
        # A record is sent and counted in one step, or a flush would take it for an earlier one.
        with self.lock:
            flushes = self._under_way
            report = _Report(callback, flushes)
            again = (report, *others[1:]) if others else ()
            self.native(topic, value, key, partition, report, *again)
            for flush in flushes:
                flush.sent += 1
