"""The thread of an AsyncConsumer: it makes the consumer's calls, one after the other.

librdkafka calls a listener in the thread that polls. If the listener is a coroutine function, the
thread waits for the event loop, and makes the coroutine's calls, such as a commit, during the wait.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

from ottla.base.user_code import LoggedErrors

T = TypeVar("T")


class _Job(NamedTuple):
    call: Callable[[], Any]
    future: "Future[Any]"
    during_rebalance: bool

    def run(self) -> None:
        """Make the call, unless its task was cancelled before."""
        if self.future.set_running_or_notify_cancel():
            with LoggedErrors(self.future.set_exception):
                self.future.set_result(self.call())


class ConsumerThread:
    """Starts with the first call and ends with `stop`; it does not keep the process alive."""

    def __init__(self) -> None:
        # None wakes the thread up: it then looks whether it has stopped, or has waited long enough.
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_stopped = False
        self._listener: Future[Any] | None = None

    def submit(self, call: Callable[[], T], *, during_rebalance: bool = True) -> "Future[T]":
        """Make a call in the thread; without `during_rebalance` not while a listener runs."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="ottla-consumer", daemon=True)
            self._thread.start()
        future: Future[T] = Future()
        self._jobs.put(_Job(call, future, during_rebalance))
        return future

    def wait_for(self, listener: "Future[T]") -> T:
        """Wait in the thread for a listener on the event loop, and make its calls while waiting."""
        self._listener = listener
        listener.add_done_callback(lambda _: self._jobs.put(None))
        later = []
        while not listener.done():
            job = self._jobs.get()
            if job is not None and job.during_rebalance:
                job.run()
            elif job is not None:
                later.append(job)
        for job in later:
            self._jobs.put(job)
        return listener.result()

    def cancel_listener(self) -> None:
        """End a wait for a listener: its coroutine is cancelled."""
        if self._listener is not None:
            self._listener.cancel()

    def stop(self) -> None:
        """End the thread after the calls that were submitted."""
        self._is_stopped = True
        self._jobs.put(None)

    def _run(self) -> None:
        while True:
            job = self._jobs.get()
            if job is not None:
                job.run()
            elif self._is_stopped:
                return
