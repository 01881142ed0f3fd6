"""Responses that may not be available yet: either the response or a future of it."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Generic, TypeAlias, TypeVar, Union

from ottla.base.errors import ApiError, ErrorCode

_log = logging.getLogger(__name__)

R = TypeVar("R")
Q = TypeVar("Q")
Reply: TypeAlias = Union[R, "asyncio.Future[R]"]


class Waiter(Generic[R]):
    """The pending response of one request; it is sent immediately or later, but only once."""

    __slots__ = ("_future", "_response")

    def __init__(self) -> None:
        self._response: R | None = None
        self._future: asyncio.Future[R] | None = None

    def answer(self, response: R) -> None:
        """Send the response; the client may be disconnected already."""
        if self._future is None:
            assert self._response is None, "answered twice"
            self._response = response
        elif not self._future.done():
            self._future.set_result(response)

    def reply(self) -> Reply[R]:
        """Return the response, or a future of it."""
        if self._response is not None:
            return self._response
        self._future = asyncio.get_running_loop().create_future()
        return self._future


def after(
    committed: asyncio.Future[None],
    response: Callable[[], R],
    refuse: Callable[[ErrorCode], R],
) -> Reply[R]:
    """Return `response()` when `committed` is done, `refuse(code)` if it failed."""
    if committed.done():
        return _settle(committed, response, refuse)
    pending: asyncio.Future[R] = asyncio.get_running_loop().create_future()

    def settle(completed: asyncio.Future[None]) -> None:
        # The client may have disconnected, which cancels its response.
        if not pending.done():
            pending.set_result(_settle(completed, response, refuse))

    committed.add_done_callback(settle)
    return pending


def _settle(
    committed: asyncio.Future[None],
    response: Callable[[], R],
    refuse: Callable[[ErrorCode], R],
) -> R:
    error = committed.exception()
    if error is None:
        return response()
    if isinstance(error, ApiError):
        return refuse(error.code)
    # Raising here would leave the client without a response.
    _log.error("commit failed", exc_info=error)
    return refuse(ErrorCode.UNKNOWN_SERVER_ERROR)


def shaped(reply: Reply[Q], shape: Callable[[Q], R]) -> Reply[R]:
    """Apply `shape` to the response when it is available; an error of the future is passed on."""
    if not isinstance(reply, asyncio.Future):
        return shape(reply)
    if reply.done():
        return shape(reply.result())
    pending: asyncio.Future[R] = asyncio.get_running_loop().create_future()

    def settle(completed: asyncio.Future[Q]) -> None:
        if pending.done():
            return
        error = completed.exception()
        if error is None:
            pending.set_result(shape(completed.result()))
        else:
            pending.set_exception(error)

    reply.add_done_callback(settle)
    return pending


def gathered(replies: Sequence[Reply[Q]], shape: Callable[[list[Q]], R]) -> Reply[R]:
    """Return `shape` of all responses when the last of them is available."""
    waiting = [reply for reply in replies if isinstance(reply, asyncio.Future) and not reply.done()]

    def collect() -> R:
        return shape(
            [reply.result() if isinstance(reply, asyncio.Future) else reply for reply in replies]
        )

    if not waiting:
        return collect()
    pending: asyncio.Future[R] = asyncio.get_running_loop().create_future()
    unfinished = len(waiting)

    def settle(_: asyncio.Future[Q]) -> None:
        nonlocal unfinished
        unfinished -= 1
        if unfinished == 0 and not pending.done():
            pending.set_result(collect())

    for reply in waiting:
        reply.add_done_callback(settle)
    return pending
