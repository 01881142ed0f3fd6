"""The time that the event loop spends on a coroutine, step by step, without the waits in between."""

from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, TypeVar

from ottla.base.clock import Clock
from ottla.server.quotas.clients import RequestUsage

T = TypeVar("T")


class Timed(Coroutine[Any, Any, Any]):
    """A coroutine whose steps are charged to a request."""

    def __init__(
        self, work: Coroutine[Any, Any, Any], usage: RequestUsage, now: Callable[[], float]
    ) -> None:
        self._work = work
        self._usage = usage
        self._now = now

    def send(self, value: Any) -> Any:
        """Run the next step."""
        self._usage.started(self._now())
        try:
            return self._work.send(value)
        finally:
            self._usage.stopped(self._now())

    def throw(
        self,
        kind: type[BaseException] | BaseException,
        value: BaseException | object = None,
        trace: TracebackType | None = None,
        /,
    ) -> Any:
        """Run the next step, which begins with an exception."""
        error = kind if isinstance(kind, BaseException) else value
        assert isinstance(error, BaseException), "asyncio throws exceptions, not types"
        self._usage.started(self._now())
        try:
            return self._work.throw(error)
        finally:
            self._usage.stopped(self._now())

    def close(self) -> None:
        """Close the coroutine."""
        self._work.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        """Await the coroutine itself; only tasks are measured."""
        return self._work.__await__()


def counted(
    work: Coroutine[Any, Any, T], usage: RequestUsage | None, clock: Clock
) -> Coroutine[Any, Any, T]:
    """Wrap a handler's background work so that its time is charged to its request."""
    return work if usage is None else Timed(work, usage, clock.monotonic)
