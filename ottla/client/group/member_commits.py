"""Commits of a member that librdkafka has in a group, over a connection of their own.

librdkafka's own commits end metadata with a NUL character, and Ctrl-C does not end their wait in a
rebalance: its binding serves no other thread until the listener returns.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.client import transport
from ottla.client.group.coordinator_thread import CoordinatorThread
from ottla.client.group.identities import NO_GENERATION, Identity, decode_metadata
from ottla.client.group.offset_requests import Offsets
from ottla.client.records import TopicPartition

_STEP_S = 0.05
# The response to a heartbeat, which has the new epoch, arrives before this time is over.
_EPOCH_S = 5.0
_PAUSE_S = 0.02
# Errors of a commit that was sent with an identity of before a rebalance.
_OUTDATED = (
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.STALE_MEMBER_EPOCH,
)


class MemberCommits:
    """Sends commits with the identity that librdkafka's consumer has at the call.

    `metadata` returns it, as `consumer_group_metadata` does. `is_subscribed` is False for assigned
    partitions, whose commits need no membership. For one thread.
    """

    def __init__(
        self,
        thread: CoordinatorThread,
        metadata: Callable[[], bytes],
        is_subscribed: Callable[[], bool],
        waits: transport.Waits,
    ) -> None:
        self._thread = thread
        self._metadata = metadata
        self._is_subscribed = is_subscribed
        self._waits = waits
        self._identity = Identity()
        self._answer: Future[int] | None = None

    @property
    def is_busy(self) -> bool:
        """True while a call of `commit` continues that was interrupted."""
        return self._answer is not None and not self._answer.done()

    def send(self, offsets: Offsets) -> "Future[None]":
        """Commit in the background after earlier calls; it fails with the errors of `commit`."""
        done: Future[None] = Future()

        def ended(answer: "Future[int]") -> None:
            error = answer.exception()
            if error is None and (code := answer.result()):
                error = transport.broker_error(code)
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)

        self._send(offsets, self._current()).add_done_callback(ended)
        return done

    def commit(self, offsets: Offsets, timeout_s: float) -> None:
        """Commit after earlier calls and wait.

        Raises LibrdkafkaError for an error code, ApiError or ClientError if the group has no
        coordinator, TimedOut and Closed.
        """
        started = time.monotonic()
        identity = self._current()
        while True:
            self._answer = self._send(offsets, identity)
            code = self._waits.result(self._answer, started + timeout_s - time.monotonic())
            sent, identity = identity, self._current()
            passed_s = time.monotonic() - started
            if code == ErrorCode.STALE_MEMBER_EPOCH and sent == identity and passed_s < _EPOCH_S:
                time.sleep(_PAUSE_S)
            elif code not in _OUTDATED or sent == identity:
                break
        if code:
            raise transport.broker_error(code)

    def finish(
        self,
        partitions: Iterable[TopicPartition],
        sent: Sequence["Future[None]"],
        is_over: Callable[[], bool],
    ) -> Iterator[Any]:
        """Wait for commits in the background; yields nothing."""
        while wait(sent, _STEP_S).not_done and not is_over():
            pass
        yield from ()

    def _current(self) -> Identity:
        # After an interrupted lookup, librdkafka's consumer blocks until that has ended.
        if not self._waits.is_busy:
            self._identity = decode_metadata(self._metadata())
        return self._identity

    def _send(self, offsets: Offsets, identity: Identity) -> "Future[int]":
        if identity.generation == NO_GENERATION and self._is_subscribed():
            # An empty group would accept the commit of a member that it has removed.
            done: Future[int] = Future()
            done.set_result(int(ErrorCode.UNKNOWN_MEMBER_ID))
            return done
        return self._thread.commit(offsets, identity)
