"""Transactions of a producer (KIP-98, KIP-447).

librdkafka's calls block, so they are made in short steps: Ctrl-C takes effect between two of them.
`send_offsets`, which needs longer steps, waits in a thread.

Not done: metadata of `send_offsets` as it is, because confluent-kafka ends a text with a NUL
character. Our clients do not return that character; others see it.
"""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ottla.base.errors import ApiError
from ottla.client import transport
from ottla.client.errors import ClientError, Fenced, TimedOut, TransactionAborted
from ottla.client.producer.options import ProducerErrors
from ottla.client.records import Offsets, next_offsets

_log = logging.getLogger("ottla.client")
_STEP_S = 0.1
# Longer than connections.max.idle.ms: librdkafka may need that long to look for a group's new
# coordinator, and a call that has been too short for it has the transaction aborted.
_OFFSETS_STEP_S = 6.0


class GroupMember(Protocol):
    """A consumer whose offsets become part of a transaction."""

    def group_metadata(self) -> Any:
        """Return librdkafka's description of the member."""

    def positions(self) -> Mapping[Any, int]:
        """Return the next offsets to read."""


class AsyncGroupMember(Protocol):
    """The same on an event loop."""

    def group_metadata(self) -> Any:
        """Return librdkafka's description of the member."""

    async def positions(self) -> Mapping[Any, int]:
        """Return the next offsets to read."""


class Transactions:
    """The transactions of one producer, one after the other."""

    def __init__(
        self, producer: Any, timeout_s: float, waits: transport.Waits, errors: ProducerErrors
    ) -> None:
        self._producer = producer
        self._errors = errors
        self._waits = waits
        self._timeout_s = timeout_s
        self._is_initialized = False
        self.is_open = False
        # True until an abort that has begun is complete.
        self._must_abort = False
        # The error of a record that librdkafka did not take, and so does not miss.
        self._refusal: ApiError | None = None

    def initialize(self) -> None:
        """Register the transactional id: fences older producers, aborts what they left open."""
        if not self._is_initialized:
            self._call(self._producer.init_transactions)
            self._is_initialized = True

    def begin(self) -> None:
        """Begin a transaction."""
        self.initialize()
        if self._must_abort:
            self.abort()
        try:
            self._producer.begin_transaction()
        except transport.LibrdkafkaError as error:
            raise self._error_of(error.args[0]) from error
        self.is_open = True

    def commit(self) -> None:
        """Make the records and offsets visible, all or none; TransactionAborted if that failed.

        Raises the ApiError of a record that was refused, after an abort.
        """
        refusal = self._refusal
        if refusal is not None:
            self.abort()
            text = f"The transaction was aborted, because a record was not sent: {refusal}"
            raise ApiError(refusal.code, text) from refusal
        try:
            self._call(self._producer.commit_transaction)
        except TransactionAborted:
            self.abort()
            raise
        self.is_open = False

    def refuse(self, error: ApiError) -> None:
        """Let the commit fail, as in Kafka: a record of the open transaction was not queued."""
        if self.is_open:
            self._refusal = self._refusal or error

    def abort(self) -> None:
        """Discard the records and offsets of the transaction."""
        self._refusal, self._must_abort = None, True
        self._call(self._producer.abort_transaction)
        self.is_open = self._must_abort = False

    def abandon(self) -> None:
        """Abort, but wait for a moment only: the program was interrupted.

        If this fails, the next transaction completes the abort before it begins, or the coordinator
        aborts after `transaction.timeout.ms`.
        """
        self.is_open, self._refusal = False, None
        try:
            self._producer.abort_transaction(transport.INTERRUPTED_S)
        except transport.LibrdkafkaError as error:
            self._must_abort = True
            _log.warning("the transaction is left to its timeout: %s", error.args[0].str())

    def send_offsets(self, offsets: Offsets, metadata: Any) -> None:
        """Commit offsets of the group whose member has this `group_metadata`."""
        self.send_listed(transport.commit_list(next_offsets(offsets)), metadata)

    def send_listed(self, listed: list[Any], metadata: Any) -> None:
        """Commit offsets in librdkafka's form, as `send_offsets`."""
        send = self._producer.send_offsets_to_transaction
        self._call(
            lambda step: self._waits.call(lambda: send(listed, metadata, step)), _OFFSETS_STEP_S
        )

    def _call(self, step: Callable[[float], None], seconds: float = _STEP_S) -> None:
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                return step(seconds)
            except transport.LibrdkafkaError as error:
                cause = error.args[0]
                if not cause.retriable() or time.monotonic() > deadline:
                    raise self._error_of(cause) from error

    def _error_of(self, cause: Any) -> Exception:
        self._errors.stopped(cause)
        return _error_of(cause)


def _error_of(cause: Any) -> Exception:
    if cause.txn_requires_abort():
        return TransactionAborted(f"the transaction must be aborted: {cause.str()}")
    error = transport.translate(cause)
    if isinstance(error, Fenced):
        return Fenced(
            f"{error}; a transaction that is open for longer than transaction.timeout.ms has the "
            "same effect"
        )
    if isinstance(error, TimedOut):
        return error
    if cause.code() == transport.WRONG_STATE:
        return ClientError(f"{cause.str()}; use `with producer.transaction():`")
    return error
