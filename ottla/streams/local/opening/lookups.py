"""Requests of a worker to the brokers, in a thread of their own.

Brokers that do not respond delay the tasks that wait for the result, and no others. The thread does
not keep the process alive.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Protocol, TypeVar

from ottla.base.user_code import LoggedErrors

T = TypeVar("T")


class StartLookup(Protocol):
    """Makes a request, and returns its result or its error as a future."""

    def __call__(self, request: Callable[[], T]) -> Future[T]:
        """Start the request."""


class BrokerLookups(Protocol):
    """Where a worker makes requests."""

    def start(self, request: Callable[[], T]) -> Future[T]:
        """Start a request."""

    def stop(self, timeout_s: float) -> bool:
        """End; return False if the current request takes longer."""


def look_up_now(request: Callable[[], T]) -> Future[T]:
    """Make a request in this thread."""
    future: Future[T] = Future()
    _complete(request, future)
    return future


def _complete(request: Callable[[], T], future: Future[T]) -> None:
    with LoggedErrors(future.set_exception):
        future.set_result(request())


class LookupThread:
    """The thread makes one request after the other. Its methods are for one other thread."""

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self, request: Callable[[], T]) -> Future[T]:
        """Start a request."""
        future: Future[T] = Future()
        if self._thread.ident is None:
            self._thread.start()
        self._jobs.put(lambda: _complete(request, future))
        return future

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def stop(self, timeout_s: float) -> bool:
        """End the thread after its current request; return False if that takes longer."""
        self._jobs.put(None)
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()
