"""Background tasks: every task has an owner that ends it and is notified if it fails.

`spawn` runs a piece of work once. `supervise` runs work that must not end: after an unexpected
exception it is restarted with back-off. A failure is logged with the name of the task, counted, and
reported to the owner, never swallowed.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from ottla.base.clock import Clock, RealClock
from ottla.base.logs import provoked_logger

# The first pause before a restart; each one is twice as long as the one before it.
RESTART_SECONDS = 1.0
RESTART_SECONDS_MAX = 60.0
# A task that has run this long after a failure is considered healthy again.
WELL_SECONDS = 2 * RESTART_SECONDS_MAX
# The label for work that is not supervised.
ONCE = "once"

_log = provoked_logger(__name__)

T = TypeVar("T")
OnFailure = Callable[[str, BaseException], None]
Work = Callable[[], Coroutine[Any, Any, None]]


class Failure(NamedTuple):
    """The last failure of a supervised task, with its monotonic time in seconds."""

    error: str
    at: float


def run_in_own_thread(work: Callable[[], T]) -> "asyncio.Future[T]":
    """Run blocking work in a thread of its own, which no other work can keep waiting.

    The loop's pool has a few threads, and all of them may be waiting for a slow disk.
    """
    executor = ThreadPoolExecutor(1, "own")
    future = asyncio.get_running_loop().run_in_executor(executor, work)
    executor.shutdown(wait=False)
    return future


class Tasks:
    """The background tasks of one owner, on the loop that is running when `spawn` is called."""

    def __init__(self, on_failure: OnFailure | None = None, clock: Clock | None = None) -> None:
        # In the order of their start, because the order of a set differs between processes.
        self._running: dict[asyncio.Task[Any], None] = {}
        self._on_failure = on_failure
        self._clock = clock or RealClock()
        self._failed: dict[str, Failure] = {}
        # Unexpected exceptions since the start, by kind of task.
        self.failures: Counter[str] = Counter()
        self._kinds = {ONCE}

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Start `work`; an exception that escapes it is logged and reported to the owner."""
        return self._start(work, name, self._finished)

    def supervise(self, work: Work, kind: str, of: str = "") -> "asyncio.Task[None]":
        """Run `work()` until it returns; after an unexpected exception, run it again with back-off.

        `kind` names the work, `of` the partition or broker it is for. Cancelling the returned task
        cancels the work.
        """
        name = f"{kind} {of}".rstrip()
        self._kinds.add(kind)
        return self._start(self._supervise(work, kind, name), name, self._ended)

    def failure_counts(self) -> dict[str, int]:
        """Return the number of unexpected exceptions of each kind of task, also 0.

        Prometheus sees no increase in a counter that begins with 1.
        """
        return {kind: self.failures[kind] for kind in sorted(self._kinds)}

    def failing(self) -> dict[str, str]:
        """Return the last error of each supervised task that failed recently, by its name."""
        now = self._clock.monotonic()
        self._failed = {
            name: failure
            for name, failure in self._failed.items()
            if now - failure.at < WELL_SECONDS
        }
        return {name: failure.error for name, failure in self._failed.items()}

    def _start(
        self,
        work: Coroutine[Any, Any, Any],
        name: str,
        on_end: Callable[[asyncio.Task[Any]], None],
    ) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        # The loop keeps only a weak reference to a task.
        self._running[task] = None
        task.add_done_callback(on_end)
        return task

    async def _supervise(self, work: Work, kind: str, name: str) -> None:
        pause = RESTART_SECONDS
        while True:
            started = self._clock.monotonic()
            with _Attempt() as attempt:
                await work()
            error = attempt.error
            if error is None:
                self._failed.pop(name, None)
                return
            now = self._clock.monotonic()
            if now - started > WELL_SECONDS:
                pause = RESTART_SECONDS
            self._failed[name] = Failure(f"{type(error).__name__}: {error}", now)
            self._report(kind, name, error)
            await self._clock.sleep(pause)
            pause = min(2 * pause, RESTART_SECONDS_MAX)

    def _report(self, kind: str, name: str, error: BaseException) -> None:
        self.failures[kind] += 1
        _log.error("background task failed task=%s", name, exc_info=error)
        if self._on_failure is not None:
            self._on_failure(name, error)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.pop(task, None)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._ended(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._report(ONCE, task.get_name(), error)

    async def close(self) -> None:
        """Cancel the tasks that still run and wait until they have ended."""
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


class _Attempt:
    """One run of supervised work: stores the exception that ended it. A cancellation is passed on."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def __enter__(self) -> "_Attempt":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, Exception):
            self.error = error
        return self.error is not None
