"""The result of `send`: a `concurrent.futures.Future` that costs no lock until someone waits.

librdkafka calls the future itself with its delivery report. One thread at a time serves these
reports: see `serving.py`.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, TimeoutError
from typing import Any

from ottla.client import transport
from ottla.client.producer.serving import ReportServer
from ottla.client.records import RecordMetadata

OnDelivery = Callable[[RecordMetadata | None, Exception | None], None]
_PENDING, _FINISHED = "PENDING", "FINISHED"


class DeliveryFuture(Future[RecordMetadata]):
    """A future of RecordMetadata; works with `concurrent.futures.wait` and `asyncio.wrap_future`.

    `result()` raises ApiError for the broker's error, TimedOut after `delivery.timeout.ms`.
    A record cannot be cancelled once it is sent.
    """

    # Class attributes instead of those that Future.__init__ sets: its lock and condition take
    # longer than sending a record.
    _state = _PENDING
    _result: Any = None
    _exception: Any = None
    _waiters: Any = ()
    _done_callbacks: Any = ()
    _on_delivery: OnDelivery | None = None
    _observer: Callable[[RecordMetadata, Exception | None], None] | None = None
    _lock: threading.Condition | None = None

    _server: ReportServer
    # The server is an attribute of a producer's own subclass, so that a future needs no __init__.
    __init__ = object.__init__

    @staticmethod
    def class_for(server: ReportServer) -> "type[DeliveryFuture]":
        """Return the class of one producer's futures."""
        return type("DeliveryFuture", (DeliveryFuture,), {"_server": server})

    def __call__(self, error: Any, report: Any) -> None:
        """Take librdkafka's delivery report."""
        if error is not None or self._observer is not None:
            raised = None if error is None else transport.translate(error)
            self.finish(RecordMetadata(report), raised)
            return
        # The common case, for which a call more would be a tenth of the cost of a record.
        metadata = self._result = RecordMetadata(report)
        try:
            if self._on_delivery is not None:
                self._on_delivery(metadata, None)
        finally:
            self._state = _FINISHED
            if self._lock is not None:
                self._notify()

    def finish(self, metadata: RecordMetadata, error: Exception | None) -> None:
        """Complete the future: interceptors first, then the callback, then those that wait."""
        if self._observer is not None:
            self._observer(metadata, error)
        if error is None:
            self._result = metadata
        else:
            self._exception = error
        try:
            if self._on_delivery is not None:
                self._on_delivery(None if error else metadata, error)
        finally:
            self._state = _FINISHED
            if self._lock is not None:
                self._notify()

    def _notify(self) -> None:
        # A thread that creates the lock later finds the future finished.
        with self._condition:
            for waiter in self._waiters:
                (waiter.add_exception if self._exception else waiter.add_result)(self)
            self._condition.notify_all()
        self._invoke_callbacks()  # type: ignore[attr-defined]

    @property
    def _condition(self) -> threading.Condition:  # type: ignore[override]
        # The name that concurrent.futures uses.
        if self._lock is None:
            with self._server.creation:
                if self._lock is None:
                    self._waiters, self._done_callbacks = [], []
                    self._lock = threading.Condition()
        return self._lock

    @property
    def condition(self) -> threading.Condition:
        """The condition that is notified when the future is complete."""
        return self._condition

    def done(self) -> bool:
        """Return True if the broker has acknowledged the record, or the record has failed."""
        return self._state is _FINISHED

    def cancel(self) -> bool:
        """Return False: a record cannot be cancelled once it is sent."""
        return False

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Wait for the acknowledgement, in seconds; raise the record's error or TimeoutError."""
        self._wait(timeout)
        if self._exception is not None:
            raise self._exception
        metadata: RecordMetadata = self._result
        return metadata

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the acknowledgement, in seconds; return the record's error or None."""
        self._wait(timeout)
        error: BaseException | None = self._exception
        return error

    def _wait(self, timeout: float | None) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        while self._state is not _FINISHED:
            remaining_s = None if deadline is None else deadline - time.monotonic()
            if remaining_s is not None and remaining_s <= 0:
                raise TimeoutError
            self._server.wait_for(self, remaining_s)
