"""Commits of one consumer: in the background, or with a wait that Ctrl-C ends.

Not done: metadata of offsets as it is, because confluent-kafka ends a text with a NUL character.
Our clients do not return that character; others see it. Ctrl-C does not end the commit of a
rebalance in `poll` while the coordinator is silent: librdkafka serves no other thread meanwhile.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.user_code import LoggedErrors
from ottla.client import transport
from ottla.client.errors import CommitFailed, TimedOut
from ottla.client.group.departures import Departures
from ottla.client.records import Committed, TopicPartition

OnCommit = Callable[[Committed, Exception | None], None]

_log = logging.getLogger("ottla.client")
_STEP_S = 0.1
_CLOSING_S = 5.0
_LEFT = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.STALE_MEMBER_EPOCH,
)


class Commits:
    """Sends commits of one consumer to its group's coordinator."""

    def __init__(self, departures: Departures, timeout_s: float, waits: transport.Waits) -> None:
        self._consumer: Any = None
        self._waits = waits
        self._departures = departures
        self._timeout_s = timeout_s
        self._is_hurried = False
        self._pending: list[tuple[Committed, OnCommit | None]] = []
        self._finished: list[tuple[Committed, Exception | None, OnCommit | None]] = []

    def open(self, consumer: Any) -> None:
        """Commit with this consumer of librdkafka, which calls `committed` with results."""
        self._consumer = consumer

    def start(self, offsets: Committed, callback: OnCommit | None = None) -> None:
        """Commit in the background; `report` reports the result."""
        self._pending.append((offsets, callback))
        self._consumer.commit(offsets=transport.commit_list(offsets), asynchronous=True)

    def committed(self, cause: Any, rows: Sequence[Any]) -> None:
        """Take the result of a commit in the background; librdkafka calls this in `poll`."""
        here = {(row.topic, row.partition): row.offset for row in rows}
        for index, (offsets, callback) in enumerate(self._pending):
            if {tuple(key): value.offset for key, value in offsets.items()} == here:
                del self._pending[index]
                errors = [row.error for row in rows if row.error is not None]
                cause = cause or (errors[0] if errors else None)
                error = None if cause is None else self._error_of(cause)
                self._finished.append((offsets, error, callback))
                return

    def report(self, on_commit: Callable[[Committed], None]) -> None:
        """Call `on_commit` and the callbacks of ended commits; raise their first error."""
        finished, self._finished = self._finished, []
        failures: list[Exception] = []
        for offsets, error, callback in finished:
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

    def wait(self, offsets: Committed) -> Committed:
        """Commit after all commits that were started before; CommitFailed, TimedOut or ApiError."""
        if self._is_hurried and self._waits.is_busy:
            raise TimedOut("the commit before this one was not confirmed yet")
        try:
            return self._waits.call(lambda: self.now(offsets), self._timeout_s)
        except TimedOut as error:
            raise TimedOut(
                f"the coordinator did not confirm the commit within {self._timeout_s:g} s"
            ) from error

    def hurry(self) -> None:
        """Let every wait end in a moment: the program was interrupted. Thread-safe."""
        self._is_hurried = True
        self._timeout_s = transport.INTERRUPTED_S

    def now(self, offsets: Committed) -> Committed:
        """Commit and wait in this thread, as a rebalance requires: librdkafka waits for it, too."""
        try:
            rows = transport.commit_list(offsets)
            for row in self._consumer.commit(offsets=rows, asynchronous=False):
                if row.error is not None:
                    raise self._error_of(row.error)
        except transport.LibrdkafkaError as error:
            raise self._error_of(error.args[0]) from error
        return offsets

    def close(self, partitions: Iterable[TopicPartition]) -> Iterator[Any]:
        """Wait a short time for commits in the background, while the partitions are paused.

        librdkafka reports commits only in `poll`. Yields the messages that it returns meanwhile.
        """
        if self._pending:
            self._consumer.pause(transport.partitions(dict.fromkeys(partitions, transport.STORED)))
        deadline = time.monotonic() + _CLOSING_S
        while self._pending and not self._is_hurried and time.monotonic() < deadline:
            message = self._consumer.poll(_STEP_S / 2)
            if message is not None:
                yield message

    def _error_of(self, cause: Any) -> Exception:
        error = transport.translate(cause)
        if transport.is_fenced_instance(cause):
            self._departures.fenced()
        elif isinstance(error, ApiError) and error.code is ErrorCode.UNKNOWN_MEMBER_ID:
            self._departures.removed()
        elif transport.is_fatal(cause) and self._departures.has_left:
            pass
        elif not (isinstance(error, ApiError) and error.code in _LEFT):
            return error
        elif self._departures.is_late:
            self._departures.poll_came_late()
        return CommitFailed(f"the offsets were not committed: {self._departures.sentence()}")
