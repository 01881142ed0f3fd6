"""The result of `AsyncProducer.send`: an `asyncio.Future` in behaviour, and a small object in C.

librdkafka calls the future itself with its delivery report. Most records are acknowledged before
anyone waits for them, so only a wait, a callback or an error creates an `asyncio.Future`, and
everything but the common case is that object's work. Python's garbage collector tracks a delivery
from then on only: 100 000 tracked objects start full collections (decision 0023).
"""

import asyncio
from collections.abc import Callable, Generator
from contextlib import suppress
from contextvars import Context
from typing import Any, ClassVar, cast

import msgspec

from ottla.client.errors import Closed, Fenced
from ottla.client.producer.futures import OnDelivery, refuse_coroutine
from ottla.client.producer.options import ProducerErrors
from ottla.client.producer.serving import logged_errors
from ottla.client.records import RecordMetadata, metadata_of

_PENDING = "the record is not acknowledged yet"
_user_code = logged_errors("the callback of a record")


class _Callback:
    """A callback that receives the delivery instead of the future behind it."""

    __slots__ = ("_callback", "_delivery")

    def __init__(self, callback: Callable[[Any], object], delivery: "AsyncDelivery") -> None:
        self._callback = callback
        self._delivery = delivery

    def __call__(self, future: object) -> None:
        self._callback(self._delivery)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Callback) and self._callback == other._callback

    __hash__ = None  # type: ignore[assignment]


class AsyncDelivery(msgspec.Struct, eq=False, weakref=True):
    """A future of RecordMetadata on the event loop; `isinstance` says `asyncio.Future`.

    Awaiting it raises ApiError for the broker's error, TimedOut after `delivery.timeout.ms`.
    Cancelling it ends the wait only: the record is sent.
    """

    _on_delivery: OnDelivery | None = None
    _observer: Callable[[RecordMetadata, Exception | None], None] | None = None
    _outcome: RecordMetadata | Exception | None = None
    _waited: asyncio.Future[RecordMetadata] | None = None

    # Of a producer's own subclass, so that a delivery does not store it.
    _errors: ClassVar[ProducerErrors] = ProducerErrors()

    @staticmethod
    def class_for(errors: ProducerErrors) -> "type[AsyncDelivery]":
        """Return the class of one producer's deliveries."""
        namespace = {"_errors": errors}
        kind = msgspec.defstruct("AsyncDelivery", [], bases=(AsyncDelivery,), namespace=namespace)
        return cast("type[AsyncDelivery]", kind)

    # asyncio recognizes futures by this attribute. The event loop never sees a delivery block,
    # because `__await__` yields the future behind it.
    _asyncio_future_blocking: ClassVar[bool] = False
    __class__ = property(lambda self: asyncio.Future)

    def __call__(self, error: Any, report: Any) -> None:
        """Take librdkafka's delivery report."""
        if error is None and self._observer is None and self._on_delivery is None:
            self._outcome = metadata_of(report)
            if self._waited is not None:
                self._complete(self._waited)
            return
        raised = None if error is None else self._errors.unsent_report(error, report)
        self.finish(RecordMetadata(report), raised)

    def finish(self, metadata: RecordMetadata, error: Exception | None) -> None:
        """Complete the future: interceptors first, then the callback, then those that wait."""
        try:
            if self._observer is not None:
                self._observer(metadata, error)
        finally:
            try:
                if self._on_delivery is not None:
                    with _user_code:
                        refuse_coroutine(self._on_delivery(None if error else metadata, error))
            finally:
                self._outcome = metadata if error is None else error
                self._end_waits(error)

    def _end_waits(self, error: Exception | None) -> None:
        if self._waited is not None:
            self._complete(self._waited)
        elif error is not None and not self._is_told(error):
            # A future logs its error if no task awaits it. The thread that closes an interrupted
            # producer has no loop.
            with suppress(RuntimeError):
                self._future()

    def _future(self) -> asyncio.Future[RecordMetadata]:
        if self._waited is None:
            self._waited = asyncio.get_running_loop().create_future()
            self._complete(self._waited)
        return self._waited

    def _complete(self, waited: asyncio.Future[RecordMetadata]) -> None:
        outcome = self._outcome
        if outcome is None or waited.done():
            return
        if not isinstance(outcome, Exception):
            waited.set_result(outcome)
            return
        waited.set_exception(outcome)
        if self._is_told(outcome):
            waited.exception()

    def _is_told(self, error: Exception) -> bool:
        """Return True if the error is not lost when no task awaits the future: the callback has it,
        or the producer has reported that it stops.
        """
        return self._on_delivery is not None or isinstance(error, Closed | Fenced)

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        """Wait for the acknowledgement."""
        if self._waited is None and isinstance(self._outcome, RecordMetadata):
            return self._outcome
        return (yield from self._future())

    __iter__ = __await__

    def done(self) -> bool:
        """Return True if the record is acknowledged, has failed, or the wait was cancelled."""
        if self._waited is None:
            return self._outcome is not None
        return self._waited.done()

    def result(self) -> RecordMetadata:
        """Return the position; raise the record's error, InvalidStateError if it is not done."""
        if self._waited is not None:
            return self._waited.result()
        # Without an event loop, too: the caller may have left it.
        if isinstance(self._outcome, RecordMetadata):
            return self._outcome
        raise self._outcome or asyncio.InvalidStateError(_PENDING)

    def exception(self) -> BaseException | None:
        """Return the record's error or None; raises InvalidStateError if it is not done."""
        if self._waited is not None:
            return self._waited.exception()
        if self._outcome is None:
            raise asyncio.InvalidStateError(_PENDING)
        return None if isinstance(self._outcome, RecordMetadata) else self._outcome

    def cancel(self, msg: Any = None) -> bool:
        """End the wait, not the record; return False if it is done."""
        return self._future().cancel(msg)

    def cancelled(self) -> bool:
        """Return True if the wait was cancelled."""
        return self._waited is not None and self._waited.cancelled()

    def add_done_callback(
        self, callback: Callable[[Any], object], *, context: Context | None = None
    ) -> None:
        """Call `callback(delivery)` on the event loop once the future is done."""
        self._future().add_done_callback(_Callback(callback, self), context=context)

    def remove_done_callback(self, callback: Callable[[Any], object]) -> int:
        """Remove a callback; return how often it was added."""
        return self._future().remove_done_callback(_Callback(callback, self))

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop."""
        return self._future().get_loop()

    def __repr__(self) -> str:
        return f"AsyncDelivery({'pending' if self._outcome is None else self._outcome!r})"
