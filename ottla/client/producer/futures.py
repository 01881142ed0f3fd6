"""The result of `send`: a `concurrent.futures.Future` in behaviour, and a small object in C.

librdkafka calls the future itself with its delivery report. One thread at a time serves these
reports: see `serving.py`.

There is one future for each record that is not acknowledged, so it must be cheap: a struct of
msgspec, which the garbage collector does not visit (`gc=False`), because 100 000 objects of a class
start full collections (decision 0023). An object that the collector does not visit must not be part
of a reference cycle when it is finished: `_finish` and `_notify` drop the callbacks, and `result`
raises a copy of the error, whose traceback may refer to the caller's variables.
"""

import inspect
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, TimeoutError
from typing import Any, ClassVar, cast

import msgspec

from ottla.client.producer.options import ProducerErrors
from ottla.client.producer.serving import ReportServer
from ottla.client.records import RecordMetadata

OnDelivery = Callable[[RecordMetadata | None, Exception | None], object]
_log = logging.getLogger("ottla.client")


def refuse_coroutine(returned: object) -> None:
    """Raise TypeError if a callback has returned a coroutine, which nothing would await."""
    if inspect.iscoroutine(returned):
        returned.close()
        raise TypeError(
            f"on_delivery is the async function {returned.__qualname__!r}, whose body would never "
            "run: pass a plain function, or await the future that send returns (Producer's "
            "with asyncio.wrap_future)"
        )


class _Waiting:
    """The lock and the callbacks of a future that a thread waits for, created by the first one."""

    __slots__ = ("callbacks", "condition", "waiters")

    def __init__(self) -> None:
        self.condition = threading.Condition()
        self.waiters: list[Any] = []
        self.callbacks: list[Callable[[Any], object]] = []


class DeliveryFuture(msgspec.Struct, eq=False, gc=False):
    """A future of RecordMetadata; works with `concurrent.futures.wait` and `asyncio.wrap_future`.

    `result()` raises ApiError for the broker's error, TimedOut after `delivery.timeout.ms`.
    A record cannot be cancelled once it is sent. It is an instance of `concurrent.futures.Future`
    for `isinstance`.
    """

    _on_delivery: OnDelivery | None = None
    _outcome: RecordMetadata | Exception | None = None
    _observer: Callable[[RecordMetadata, Exception | None], None] | None = None
    _waiting: _Waiting | None = None

    # Of a producer's own subclass, so that a future does not store it.
    _server: ClassVar[ReportServer]
    _errors: ClassVar[ProducerErrors]

    @staticmethod
    def class_for(server: ReportServer, errors: ProducerErrors) -> "type[DeliveryFuture]":
        """Return the class of one producer's futures."""
        namespace = {"_server": server, "_errors": errors}
        kind = msgspec.defstruct("DeliveryFuture", [], bases=(DeliveryFuture,), namespace=namespace)
        return cast("type[DeliveryFuture]", kind)

    # The class for isinstance, which asyncio asserts: msgspec allows no other base class.
    __class__ = property(lambda self: Future)

    def __call__(self, error: Any, report: Any) -> None:
        """Take librdkafka's delivery report."""
        if error is not None or self._observer is not None:
            raised = None if error is None else self._errors.unsent_report(error, report)
            self.finish(RecordMetadata(report), raised)
            return
        # The common case, for which a call more would be a tenth of the cost of a record.
        metadata = RecordMetadata(report)
        on_delivery = self._on_delivery
        if on_delivery is None:
            self._outcome = metadata
            if self._waiting is not None:
                self._notify(self._waiting)
            return
        self._on_delivery = None
        try:
            # `send` does not look at the function: that would cost time for every record.
            if (returned := on_delivery(metadata, None)) is not None:
                refuse_coroutine(returned)
        finally:
            self._complete(metadata)

    def finish(self, metadata: RecordMetadata, error: Exception | None) -> None:
        """Complete the future: interceptors first, then the callback, then those that wait."""
        observer, on_delivery = self._observer, self._on_delivery
        self._observer = self._on_delivery = None
        try:
            if observer is not None:
                observer(metadata, error)
        finally:
            try:
                if on_delivery is not None:
                    refuse_coroutine(on_delivery(None if error else metadata, error))
            finally:
                self._complete(metadata if error is None else error)

    def _complete(self, outcome: RecordMetadata | Exception) -> None:
        self._outcome = outcome
        if self._waiting is not None:
            self._notify(self._waiting)

    def _notify(self, waiting: _Waiting) -> None:
        # A thread that creates the lock later finds the future finished.
        with waiting.condition:
            is_failed = isinstance(self._outcome, Exception)
            for waiter in waiting.waiters:
                (waiter.add_exception if is_failed else waiter.add_result)(self)
            waiting.condition.notify_all()
        callbacks, waiting.callbacks = waiting.callbacks, []
        for callback in callbacks:
            self._call(callback)

    def _call(self, callback: Callable[[Any], object]) -> None:
        with self._server.user_code:
            callback(self)

    def _wait_state(self) -> _Waiting:
        if self._waiting is None:
            with self._server.creation:
                if self._waiting is None:
                    self._waiting = _Waiting()
        return self._waiting

    # The names that `concurrent.futures.wait` and `as_completed` use.

    @property
    def _condition(self) -> threading.Condition:
        return self._wait_state().condition

    @property
    def _waiters(self) -> list[Any]:
        return self._wait_state().waiters

    @property
    def _state(self) -> str:
        return "PENDING" if self._outcome is None else "FINISHED"

    @property
    def condition(self) -> threading.Condition:
        """The condition that is notified when the future is complete."""
        return self._condition

    def done(self) -> bool:
        """Return True if the broker has acknowledged the record, or the record has failed."""
        return self._outcome is not None

    def running(self) -> bool:
        """Return False: a record waits, or is finished."""
        return False

    def cancel(self) -> bool:
        """Return False: a record cannot be cancelled once it is sent."""
        return False

    def cancelled(self) -> bool:
        """Return False: a record cannot be cancelled once it is sent."""
        return False

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        """Call `callback(future)` once the future is complete; immediately, if it is."""
        with self._condition:
            if self._outcome is None:
                self._wait_state().callbacks.append(callback)
                return
        self._call(callback)

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Wait for the acknowledgement, in seconds; raise the record's error or TimeoutError."""
        outcome = self._wait(timeout)
        if isinstance(outcome, Exception):
            raise _copy_of(outcome)
        return outcome

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the acknowledgement, in seconds; return the record's error or None."""
        outcome = self._wait(timeout)
        return outcome if isinstance(outcome, Exception) else None

    def _wait(self, timeout: float | None) -> RecordMetadata | Exception:
        deadline = None if timeout is None else time.monotonic() + timeout
        while self._outcome is None:
            remaining_s = None if deadline is None else deadline - time.monotonic()
            if remaining_s is not None and remaining_s <= 0:
                text = f"the record was not acknowledged within {timeout:g} s"
                raise TimeoutError(self._errors.because(text))
            self._server.wait_for(self, remaining_s)
        return self._outcome

    def __repr__(self) -> str:
        return f"DeliveryFuture({'pending' if self._outcome is None else self._outcome!r})"


def _copy_of(error: Exception) -> Exception:
    """Return an equal error without traceback."""
    copy = type(error).__new__(type(error), *error.args)
    copy.__dict__.update(error.__dict__)
    copy.__cause__ = error.__cause__
    return copy
