"""Writes the records of tasks, and commits them with the offsets of their inputs.

With exactly_once_v2 the records and the offsets since the last commit are one transaction
(KIP-447): the coordinator refuses offsets of a former member of the group, so a worker that was
replaced without noticing writes nothing that a reader of committed records sees.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from ottla.base.errors import ApiError
from ottla.client import transport
from ottla.client.errors import ClientError, Fenced, TimedOut, TransactionAborted
from ottla.client.group.identities import Identity, encode_metadata
from ottla.client.producer.options import ProducerErrors
from ottla.client.producer.transactions import Transactions
from ottla.client.records import TopicPartition, native_headers
from ottla.streams.local.ports import EnginePorts
from ottla.streams.local.running import Offsets, RunningTask
from ottla.streams.local.sending.refused import (
    RefusedRecord,
    RefusedRecords,
    SentRecord,
    refusal_of,
)
from ottla.streams.model.errors import RecordsRefused, TaskMigrated
from ottla.streams.model.raw import ProducedRecord

CommitOffsets = Callable[[Offsets], None]
_FLUSH_STEP_S = 0.5
_TIMEOUT_S = 60.0
_REPORT_S = 0.2
_PRODUCER = {
    # Of a commit, the first record is sent at once.
    "linger.ms": 5,
    "enable.idempotence": True,
    "acks": "all",
    "partitioner": "murmur2_random",
    "queue.buffering.max.messages": 1_000_000,
}


class TaskOutput:
    """One producer. For one thread.

    `refusals` remembers refused records; without it, they are errors.
    """

    def __init__(
        self,
        ports: EnginePorts,
        properties: Mapping[str, Any],
        transactional_id: str | None,
        refusals: RefusedRecords | None = None,
    ) -> None:
        self._ports = ports
        self.refusals = refusals
        self._refused: list[RefusedRecord] = []
        self._failure: Exception | None = None
        self._waits = ports.open_waits()
        named = {"transactional.id": transactional_id} if transactional_id else {}
        self._settings = {**properties, **_PRODUCER, **named, "on_delivery": self._delivered}
        self._is_transactional = bool(transactional_id)
        self._logged: dict[TopicPartition, int] = {}
        self._open()

    def _open(self) -> None:
        """Open the producer; a transactional one fences those that have had its id."""
        self._producer = self._ports.open_producer(self._settings)
        self._transactions = (
            Transactions(self._producer, _TIMEOUT_S, self._waits, ProducerErrors())
            if self._is_transactional
            else None
        )
        self._unsent = self._is_broken = False

    def write(self, record: ProducedRecord, *, is_logged: bool = False) -> None:
        """Queue a record; blocks while the queue is full. Raises ApiError for a record that is too
        large.

        The offsets of logged records are noted.
        """
        self._write(record, self._delivered_logged if is_logged else None)

    def write_result(self, record: ProducedRecord, task: RunningTask) -> None:
        """Queue a result of a task. Raises ApiError, too, for one that was refused before.

        Needs `refusals`: it has the refusals of results.
        """
        self.write_again(SentRecord(record, task.task.current_record(), task))

    def write_again(self, sent: SentRecord) -> None:
        """Queue a result that was in a batch with a refused one, or a new one."""
        assert self.refusals is not None
        self.refusals.check(sent.record, sent.current[0])
        if self.refusals.begins_batch(sent.record):
            self._drain()
        self._write(sent.record, partial(self._delivered_result, sent))

    def _write(self, record: ProducedRecord, on_delivery: Callable[..., None] | None) -> None:
        if self._transactions is not None and not self._transactions.is_open:
            with self._migrations():
                self._transactions.begin()
        self._unsent = True
        options: dict[str, Any] = {"timestamp": record.timestamp}
        if record.headers:
            options["headers"] = native_headers(record.headers)
        if record.partition is not None:
            options["partition"] = record.partition
        if on_delivery is not None:
            options["on_delivery"] = on_delivery
        while True:
            try:
                self._producer.produce(record.topic, record.value, record.key, **options)
                return
            except BufferError:
                self._producer.poll(_FLUSH_STEP_S)
                self._raise_failure()
            except transport.LibrdkafkaError as error:
                if self._is_transactional and error.args[0].code() == transport.WRONG_STATE:
                    # An earlier record was refused: the transaction can only be aborted.
                    self._raise_cause()
                    raise TaskMigrated(f"a record was not sent: {error}") from error
                raise transport.unsent_error(error.args[0], record.topic, None) from error

    def serve(self) -> None:
        """Handle delivery reports. Raises the error of a record that was not delivered."""
        self._producer.poll(0)
        self._raise_failure()

    def commit(
        self, group_id: str, identity: Identity, offsets: Offsets, plain: CommitOffsets
    ) -> None:
        """Commit everything since the last commit; `plain` commits offsets without a transaction.

        Raises TaskMigrated if the group, or a newer producer, does not accept it.
        """
        if self._transactions is None:
            self._flush()
            if offsets:
                plain(offsets)
            self._note_committed(offsets)
            return
        if not offsets and not self._unsent:
            return
        with self._migrations():
            if not self._transactions.is_open:
                self._transactions.begin()
            if offsets:
                metadata = encode_metadata(group_id, identity)
                self._send_offsets(offsets, metadata)
            self._transactions.commit()
        self._unsent = False
        self._raise_failure()
        self._note_committed(offsets)

    def _note_committed(self, offsets: Offsets) -> None:
        if self.refusals is not None:
            self.refusals.note_sent()
            self.refusals.forget(offsets)

    def settle(self) -> list[RefusedRecord]:
        """Wait until all records are delivered; return those that were refused without a
        transaction.
        """
        if self._transactions is not None:
            return []
        self._flush()
        refused, self._refused = self._refused, []
        return refused

    def _send_offsets(self, offsets: Offsets, metadata: bytes) -> None:
        listed = transport.commit_list(offsets)
        assert self._transactions is not None
        self._transactions.send_listed(listed, metadata)

    def take_logged(self) -> dict[TopicPartition, int]:
        """Return the offsets after the logged records since the last call. Call it after a commit."""
        while self._producer.poll(0):
            continue
        logged, self._logged = self._logged, {}
        return logged

    def abort(self) -> None:
        """Discard what was written since the last commit; without transactions it stays.

        A producer that the coordinator has fenced is replaced.
        """
        self._failure = None
        try:
            self._abort()
        finally:
            self._logged = {}
            self._refused.clear()
            if self.refusals is not None:
                self.refusals.note_sent()

    def _abort(self) -> None:
        if self._transactions is None:
            return
        if self._transactions.is_open and not self._is_broken:
            with contextlib.suppress(TaskMigrated), self._migrations():
                self._transactions.abort()
        if self._is_broken:
            self._close_producer()
            self._open()
        self._unsent = False

    def close(self) -> None:
        """Close the producer; an open transaction is aborted."""
        with contextlib.suppress(TaskMigrated):
            self.abort()
        self._close_producer()
        self._waits.stop()

    @contextlib.contextmanager
    def _migrations(self) -> Iterator[None]:
        """Raise TaskMigrated for errors of a transaction after which its tasks must be restored."""
        try:
            yield
        except (ApiError, ClientError) as error:
            if isinstance(error, TimedOut):
                raise
            if isinstance(error, TransactionAborted):
                self._raise_cause()
            self._is_broken = not isinstance(error, TransactionAborted)
            raise TaskMigrated(f"the commit was refused: {error}") from error

    def _close_producer(self) -> None:
        # One that is fenced cannot end its transaction, which the coordinator has aborted.
        with contextlib.suppress(ApiError, ClientError):
            transport.close_producer(self._producer)

    def _flush(self) -> None:
        self._drain()
        self._unsent = False

    def _drain(self) -> None:
        deadline = time.monotonic() + _TIMEOUT_S
        while self._producer.flush(_FLUSH_STEP_S):
            self._raise_failure()
            if time.monotonic() > deadline:
                raise TimedOut(f"the records of a commit were not written within {_TIMEOUT_S:g} s")
        self._raise_failure()

    def _delivered(self, error: Any, message: Any) -> None:
        # Records of an aborted transaction are purged.
        if error is not None and self._failure is None and error.code() not in transport.DROPPED:
            self._failure = transport.record_error(error, message.topic(), transport.WRITE)

    def _delivered_logged(self, error: Any, message: Any) -> None:
        if error is None:
            # The last one has the largest offset: an idempotent producer writes in order.
            self._logged[TopicPartition(message.topic(), message.partition())] = (
                message.offset() + 1
            )
        else:
            self._delivered(error, message)

    def _delivered_result(self, sent: SentRecord, error: Any, message: Any) -> None:
        if error is None or error.code() in transport.DROPPED:
            return
        assert self.refusals is not None
        is_letter = sent.record.topic == self.refusals.dead_letter_topic
        refused = None if is_letter else refusal_of(error, sent)
        if refused is None:
            self._delivered(error, message)
        else:
            self._refused.append(refused)

    def _raise_cause(self) -> None:
        """Raise the error because of which a transaction must be aborted, if it is of a record."""
        # librdkafka fails the transaction before it reports the record.
        self._producer.poll(_REPORT_S)
        while self._producer.poll(0):
            continue
        self._raise_failure()

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if isinstance(failure, Fenced):
            # The coordinator has aborted the transaction while this process was paused.
            with self._migrations():
                raise failure
        if isinstance(failure, TimedOut) and self._transactions is not None:
            # As in Kafka Streams, whose tasks are then revived from their last commit.
            raise TaskMigrated(f"the records of a transaction were not written: {failure}")
        if failure is not None:
            raise failure
        if self._refused and self._transactions is not None:
            assert self.refusals is not None
            refused, self._refused = self._refused, []
            self.refusals.note(refused)
            raise RecordsRefused(str(refused[0].error).rstrip("."))
