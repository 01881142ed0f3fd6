"""Commits of one consumer: in the background, or with a wait that Ctrl-C ends."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.user_code import LoggedErrors
from ottla.client import transport
from ottla.client.errors import CommitFailed, TimedOut
from ottla.client.group.departures import Departures
from ottla.client.records import Committed, TopicPartition

OnCommit = Callable[[Committed, Exception | None], None]

_log = logging.getLogger("ottla.client")
_CLOSING_S = 5.0
_LEFT = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.STALE_MEMBER_EPOCH,
)


class CommitSender(Protocol):
    """Sends the commits of one consumer in the order of the calls."""

    @property
    def is_busy(self) -> bool:
        """True while a call of `commit` continues that was interrupted."""

    def send(self, offsets: Committed) -> "Future[None]":
        """Commit in the background."""

    def commit(self, offsets: Committed, timeout_s: float) -> None:
        """Commit and wait."""

    def finish(
        self,
        partitions: Iterable[TopicPartition],
        sent: Sequence["Future[None]"],
        is_over: Callable[[], bool],
    ) -> Iterator[Any]:
        """Wait for commits of `send` until `is_over()`, with these partitions paused if needed.

        Yields the messages that librdkafka returns during the wait.
        """
        ...


class Commits:
    """Sends commits of one consumer to its group's coordinator, and reports their results."""

    def __init__(
        self,
        sender: CommitSender,
        departures: Departures,
        timeout_s: float,
        is_subscribed: Callable[[], bool],
    ) -> None:
        self._sender = sender
        self._is_subscribed = is_subscribed
        self._departures = departures
        self._timeout_s = timeout_s
        self._is_hurried = False
        self._pending: list[tuple[Committed, OnCommit | None, Future[None]]] = []

    def start(self, offsets: Committed, callback: OnCommit | None = None) -> None:
        """Commit in the background; `report` reports the result."""
        self._pending.append((offsets, callback, self._sender.send(offsets)))

    def report(self, on_commit: Callable[[Committed], None]) -> None:
        """Call `on_commit` and the callbacks of ended commits; raise their first error."""
        if not self._pending:
            return
        ended = [row for row in self._pending if row[2].done()]
        self._pending = [row for row in self._pending if not row[2].done()]
        failures: list[Exception] = []
        for offsets, callback, done in ended:
            cause = done.exception()
            error = self._error_of(cause) if isinstance(cause, Exception) else None
            if error is None:
                on_commit(offsets)
            if callback is not None:
                with LoggedErrors(failures.append):
                    callback(offsets, error)
            elif error is not None:
                _log.warning("offsets were not committed: %s", error)
        for failure in failures[1:]:
            _log.error("the callback of a commit failed: %r", failure, exc_info=failure)
        if failures:
            raise failures[0]

    def wait(self, offsets: Committed) -> None:
        """Commit after all commits that were started before; CommitFailed, TimedOut or ApiError."""
        if self._is_hurried and self._sender.is_busy:
            raise TimedOut("the commit before this one was not confirmed yet")
        try:
            self._sender.commit(offsets, self._timeout_s)
        except TimedOut as error:
            raise TimedOut(
                f"the coordinator did not confirm the commit within {self._timeout_s:g} s"
            ) from error
        except transport.LibrdkafkaError as error:
            raise self._error_of(error) from error

    def hurry(self) -> None:
        """Let every wait end in a moment: the program was interrupted. Thread-safe."""
        self._is_hurried = True
        self._timeout_s = transport.INTERRUPTED_S

    def finish(self, partitions: Iterable[TopicPartition]) -> Iterator[Any]:
        """Wait a short time for commits in the background, before the partitions are given up.

        Yields the messages that librdkafka returns during the wait.
        """
        deadline = time.monotonic() + _CLOSING_S
        yield from self._sender.finish(
            partitions,
            [done for _, _, done in self._pending],
            lambda: self._is_hurried or time.monotonic() > deadline,
        )

    def _error_of(self, error: Exception) -> Exception:
        if not isinstance(error, transport.LibrdkafkaError):
            return error
        cause = error.args[0]
        ours = transport.translate(cause)
        if transport.is_fenced_instance(cause):
            self._departures.fenced()
        elif isinstance(ours, ApiError) and ours.code in _LEFT and not self._is_subscribed():
            return CommitFailed(
                "the offsets were not committed: the group has members that subscribe, and this "
                "consumer is none of them: use another group_id for partitions of `assign`"
            )
        elif isinstance(ours, ApiError) and ours.code is ErrorCode.UNKNOWN_MEMBER_ID:
            self._departures.removed()
        elif transport.is_fatal(cause) and self._departures.has_left:
            pass
        elif not (isinstance(ours, ApiError) and ours.code in _LEFT):
            return ours
        elif self._departures.is_late:
            self._departures.poll_came_late()
        return CommitFailed(f"the offsets were not committed: {self._departures.sentence()}")
