"""Serves librdkafka's delivery reports, in one thread at a time.

The thread that sends serves reports every few records, and a thread that waits for a future or for
`flush` serves them during the wait. If neither happens, a background thread does. A background
thread alone, as in the Java client, would compete with the sender for Python's lock at each record.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from ottla.base.user_code import LoggedErrors
from ottla.client import transport
from ottla.client.errors import ClientError
from ottla.client.producer.options import ProducerErrors

_log = logging.getLogger("ottla.client")
# The pause of the background thread while records are unacknowledged, and without any. librdkafka's
# other callbacks (statistics, OAuth) have to wait that long when nothing is sent.
_TICK_S = 0.01
_IDLE_TICK_S = 0.5
# Short enough for Ctrl-C: a signal is handled between two waits.
_STEP_S = 0.1


def logged_errors(subject: str) -> LoggedErrors:
    """Return a context for user code; `subject` is the subject of the log line of an exception.

    Errors of librdkafka are raised: they are not the user's.
    """

    def report(error: Exception) -> None:
        _log.error("%s failed: %r", subject, error, exc_info=error)

    return LoggedErrors(report, raised=(transport.LibrdkafkaError,))


def warned_errors(subject: str) -> LoggedErrors:
    """Return a context whose errors are one line in the log: another error is more important."""
    return LoggedErrors(lambda error: _log.warning("%s: %s", subject, error))


class Awaited(Protocol):
    """An object that a thread may wait for: a DeliveryFuture."""

    @property
    def condition(self) -> threading.Condition:
        """Notified when the wait is over."""
        ...

    def done(self) -> bool:
        """Return True if the wait is over."""
        ...


class ReportServer:
    """Serves the reports of one producer."""

    def __init__(self, producer: Any, errors: ProducerErrors) -> None:
        self._errors = errors
        self.creation = threading.Lock()
        """Protects the creation of a future's own lock."""
        self.user_code = logged_errors("the callback of a record")
        self._producer = producer
        self._poll = producer.poll
        self._serving = threading.Lock()
        self._owner: int | None = None
        self._wake = threading.Event()
        self._is_closed = False
        self._last_served = 0.0
        self.is_idle = True
        """True while the background thread expects no report; a sender calls `wake` then."""
        self._thread = threading.Thread(target=self._run, name="ottla-producer", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Let the background thread look for reports again."""
        self.is_idle = False
        self._wake.set()

    def serve(self, timeout_s: float = 0) -> bool:
        """Serve pending reports unless another thread does; return False then."""
        if not self._serving.acquire(blocking=False):
            return False
        if self._is_closed:
            self._serving.release()
            return False
        self._owner = threading.get_ident()
        try:
            # librdkafka keeps the reports behind a callback that raises for the next call.
            with self.user_code:
                self._poll(timeout_s)
        except transport.LibrdkafkaError as error:
            # A fatal error, which the next call of the sender raises again.
            self._errors.stopped(error.args[0])
            _log.error("the producer cannot continue: %s", error.args[0].str())
        finally:
            self._owner = None
            self._last_served = time.monotonic()
            self._serving.release()
        if self._errors.pending:
            self._errors.log()
        return True

    def wait_for(self, future: Awaited, timeout_s: float | None) -> None:
        """Serve reports, or wait while another thread serves them, for a short time."""
        self.check_thread("result()")
        step = _STEP_S if timeout_s is None else min(_STEP_S, timeout_s)
        if not self.serve(min(step, _TICK_S)):
            condition = future.condition
            with condition:
                if not future.done():
                    condition.wait(min(step, _TICK_S))

    def wait(self) -> None:
        """Wait a short time for the thread that serves reports."""
        time.sleep(_TICK_S / 10)

    def flush(
        self, timeout_s: float | None, remaining_records: Callable[[], int] | None = None
    ) -> int:
        """Send everything now and serve its reports; return the number of unacknowledged records.

        `remaining_records` serves reports, and counts the records to wait for: by default all, also
        those that other threads send during the call.
        """
        self.check_thread("flush()")
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._is_closed and (unacknowledged := len(self._producer)):
            remaining = _STEP_S if deadline is None else deadline - time.monotonic()
            try:
                with self.exclusive(), self.user_code:
                    # librdkafka counts its events, too, such as errors: zero seconds serve them. It
                    # waits for all records.
                    step = _STEP_S if remaining_records is None else _TICK_S
                    self._producer.flush(max(0.0, min(step, remaining)))
                    unacknowledged = len(self._producer)
                    if unacknowledged and remaining_records is not None:
                        unacknowledged = remaining_records()
            except transport.LibrdkafkaError as error:
                self._errors.stopped(error.args[0])
                raise transport.translate(error.args[0]) from error
            self._errors.log()
            if unacknowledged <= 0:
                return 0
            if remaining <= 0:
                return unacknowledged
        return 0

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Let this thread alone serve reports during the block."""
        with self._serving:
            self._owner = threading.get_ident()
            try:
                yield
            finally:
                self._owner = None

    def close(self) -> None:
        """Stop the background thread, and let other threads end their calls of librdkafka."""
        self._is_closed = True
        self._wake.set()
        if self._thread is not threading.current_thread():
            self._thread.join()
        if self._serving.acquire(timeout=_STEP_S):
            self._serving.release()

    def check_thread(self, call: str) -> None:
        """Raise ClientError in the thread that serves reports now, that is, in a callback."""
        if self._owner == threading.get_ident():
            raise ClientError(
                f"{call} in a callback would wait for itself: callbacks run in the thread that "
                "serves delivery reports"
            )

    def _run(self) -> None:
        while not self._is_closed:
            if len(self._producer):
                self.is_idle = False
                self._wake.clear()
                self._wake.wait(_TICK_S)
                if time.monotonic() - self._last_served > _TICK_S:
                    self._serve_in_background()
                continue
            self._wake.clear()
            self.is_idle = True
            # A record that was sent between the two lines above is found by the next check.
            if not len(self._producer):
                self._wake.wait(_IDLE_TICK_S)
                self._serve_in_background()

    def _serve_in_background(self) -> None:
        try:
            self.serve()
        except SystemExit:
            _log.error("sys.exit in the callback of a record ends no program: raise an error")
