"""The producer, for threads: `send` returns a future, callbacks run in the thread that serves them."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Any

from ottla.base.errors import ApiError, ErrorCode
from ottla.client import transport
from ottla.client.config.forks import FORKED, call_after_fork
from ottla.client.config.settings import Config
from ottla.client.errors import ClientError, Closed, TimedOut
from ottla.client.producer.back_pressure import Deadline
from ottla.client.producer.flushes import Flushes, Produce
from ottla.client.producer.futures import DeliveryFuture, OnDelivery
from ottla.client.producer.options import ProducerErrors
from ottla.client.producer.parts import open_parts
from ottla.client.producer.preparation import (
    MALFORMED,
    PreparedRecord,
    native_timestamp,
    plain_type_error,
)
from ottla.client.producer.serving import ReportServer, warned_errors
from ottla.client.producer.transactions import GroupMember
from ottla.client.records import (
    Headers,
    Offsets,
    ProducerRecord,
    as_bytes,
    native_headers,
    unsent,
)

# Reports are served after every 64th record: each time costs as much as sending a record. A sender
# that is slower than 6 400 records per second leaves most of them to the background thread.
_SERVED_EVERY = 63
_REFUSALS = (BufferError, *MALFORMED, transport.LibrdkafkaError)
_STEP_S = 0.05
INTERRUPTED = "%d records were not acknowledged when the program was interrupted"
_log = logging.getLogger("ottla.client")
not_aborted = warned_errors("a transaction was not aborted")
not_closed = warned_errors("a producer was not closed cleanly")


class Producer:
    """Sends records to a cluster; thread-safe, and a context manager that ends with `close`.

        address = "localhost:9092"
        with Producer(bootstrap_servers=address, value_serializer=Serdes.json()) as producer:
            producer.send("orders", {"id": 1}, key="a")

    Settings have Kafka's names in snake_case, or are in `config`, a dict or the path of a
    .properties file with Kafka's own names. `interceptors` are objects or classes; `partitioner` is
    "murmur2" (Java's, with sticky partitions for records without a key), "round_robin", "sticky"
    (which ignores keys), a function of (key bytes, partitions) or an object with `partition`. Keys
    and values are bytes or text unless a serializer is set. Defaults are Kafka's: acks=all,
    idempotent, at most 32 MB unsent.
    """

    def __init__(self, config: Config = None, /, **settings: Any) -> None:
        self._parts = parts = open_parts(config, settings)
        self._producer, self._preparation = parts.producer, parts.preparation
        self._transactions = parts.transactions
        self._flushes = Flushes(self._producer, self._replace_produce)
        self._produce = self._flushes.native
        self._server = ReportServer(self._producer, parts.errors)
        self._new_future = DeliveryFuture.class_for(self._server, parts.errors)
        self._is_plain = self._preparation.is_plain
        self._sent = 0
        self._unclosed = parts.warning_unless_closed(self)
        self._is_closed = False
        call_after_fork(self._forked)

    def send(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> DeliveryFuture:
        """Queue a record and return the future of its position.

        Blocks up to `max.block.ms` while the queue is full, then raises TimedOut. `timestamp` is in
        ms since 1970, at least 1. `on_delivery(metadata, error)` is called once, with one of the
        two; it must not wait for the producer. Raises SerializationError before anything is queued;
        errors of the broker are raised by the future's `result()`.
        """
        future = self._new_future(on_delivery)
        if self._is_plain:
            try:
                if headers is None and partition is None and timestamp is None:
                    self._produce(topic, value, key, -1, future)
                else:
                    partition_or_any = -1 if partition is None else partition
                    self._produce(
                        topic, value, key, partition_or_any, future, future,
                        native_timestamp(timestamp), native_headers(headers),
                    )  # fmt: skip
            except _REFUSALS:
                self._queue(
                    PreparedRecord(
                        topic, as_bytes(value), as_bytes(key), headers, partition, timestamp
                    ),
                    future,
                )
        else:
            sent = ProducerRecord(topic, value, key, headers, partition, timestamp)
            self._send_prepared(sent, future)
        self._sent = sent_count = self._sent + 1
        if not sent_count & _SERVED_EVERY:
            self._server.serve()
        if self._server.is_idle:
            self._server.wake()
        return future

    def flush(self, timeout: float | None = None) -> None:
        """Send every queued record now and wait for its acknowledgement; TimedOut after `timeout`
        s.

        It does not wait for records that other threads send during the call. Errors of single
        records are in their futures.
        """
        self._check_open()
        with self._flushes.begun() as flush:
            self._flush(timeout, partial(self._flushes.unacknowledged, flush))
        # Another thread may have closed it during the flush.
        self._check_open()

    def _flush(
        self, timeout: float | None, remaining_records: Callable[[], int] | None = None
    ) -> None:
        unacknowledged = self._server.flush(timeout, remaining_records)
        if unacknowledged:
            text = f"{unacknowledged} records were not acknowledged within {timeout:g} s"
            raise TimedOut(self._parts.errors.because(text))

    def partitions_for(self, topic: str) -> list[int]:
        """Return the partitions of a topic; ApiError if it does not exist."""
        self._check_open()
        return list(self._preparation.topology.partitions(topic))

    @contextmanager
    def transaction(self) -> Iterator["Producer"]:
        """Send the records of the block atomically: all become visible at its end, or none.

        An exception in the block aborts the transaction and is raised again. TransactionAborted
        means that the cluster aborted it: the block can be repeated. Fenced means that another
        producer with the same `transactional_id` has taken over.
        """
        self.begin_transaction()
        try:
            yield self
        except KeyboardInterrupt:
            with self._server.exclusive():
                self._transactions.abandon()
            raise
        except BaseException:
            with not_aborted:
                self.abort_transaction()
            raise
        self.commit_transaction()

    def init_transactions(self) -> None:
        """Register the transactional id; `begin_transaction` does it if needed."""
        self._check_transactional()
        self._transactions.initialize()

    def begin_transaction(self) -> None:
        """Begin a transaction; `transaction` is the safer form."""
        self._check_transactional()
        self._transactions.begin()

    def commit_transaction(self) -> None:
        """Commit the transaction; TransactionAborted if it was aborted instead."""
        self._check_transactional()
        self._server.flush(None)
        with self._server.exclusive():
            self._transactions.commit()

    def abort_transaction(self) -> None:
        """Abort the transaction; its records are never visible to read_committed consumers."""
        self._check_transactional()
        # librdkafka drops queued records, whose reports it serves during the call.
        with self._server.exclusive():
            self._transactions.abort()

    def send_offsets(self, consumer: GroupMember, offsets: Offsets | None = None) -> None:
        """Commit a consumer's offsets with the transaction; its positions by default.

        Offsets are the next ones to read. The consumer must have `enable_auto_commit=False`.
        """
        self._check_transactional()
        chosen = consumer.positions() if offsets is None else offsets
        self._transactions.send_offsets(chosen, consumer.group_metadata())

    def close(self, timeout: float | None = None) -> None:
        """Send what is queued, then stop; TimedOut if records remain after `timeout` s. Idempotent.

        Other threads and callbacks cannot send any more: `send` raises Closed. An open transaction
        is aborted. As in Java, a producer that cannot continue, because another one has taken over
        or of another fatal error, is closed without an error.
        """
        if self._is_closed:
            return
        self._server.check_thread("close()")
        is_interrupted = False
        # Otherwise threads that send all the time would keep it from ending.
        self._refuse_records()
        try:
            if self._transactions.is_open:
                with not_aborted:
                    self.abort_transaction()
            with self._parts.errors.logged_if_fatal():
                self._flush(timeout)
        except KeyboardInterrupt:
            is_interrupted = True
            raise
        finally:
            self._stop(is_interrupted=is_interrupted)

    def __enter__(self) -> "Producer":
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close; records that are queued when an exception is propagating are sent, too.

        They are given up after a second if the cluster has never been reached.
        After Ctrl-C they are sent within 100 ms or not at all: a warning has their number.
        """
        if kind is None:
            self.close()
        elif not issubclass(kind, KeyboardInterrupt):
            errors = self._parts.errors
            with not_closed:
                while errors.is_undecided(self._sent, len(self._producer)):
                    self._server.flush(_STEP_S)
                self.close(errors.patience_after_error(self._sent, len(self._producer)))
        elif not self._is_closed:
            try:
                if self._transactions.is_open:
                    with self._server.exclusive():
                        self._transactions.abandon()
                elif unacknowledged := self._server.flush(transport.INTERRUPTED_S):
                    _log.warning(INTERRUPTED, unacknowledged)
            finally:
                self._stop(is_interrupted=True)

    def _stop(self, *, is_interrupted: bool) -> None:
        self._is_closed = True
        self._unclosed.detach()
        self._refuse_records()
        self._server.close()
        self._parts.close(is_interrupted=is_interrupted)

    def _refuse_records(self) -> None:
        with self._flushes.lock:
            self._is_plain, self._produce = True, _closed

    def _replace_produce(self, former: Produce, new: Produce) -> None:
        if self._produce is former:
            self._produce = new

    def _send_prepared(self, sent: ProducerRecord, future: DeliveryFuture) -> None:
        preparation = self._preparation
        if preparation.interceptors:
            sent = preparation.intercepted(sent)
            future._observer = preparation.interceptors.on_acknowledgement
        try:
            self._queue(preparation.prepared(sent), future)
        except Exception as error:
            preparation.interceptors.on_acknowledgement(unsent(sent.topic, sent.partition), error)
            raise

    def _queue(self, record: PreparedRecord, future: DeliveryFuture) -> None:
        """Wait until the queue has room; complete the future of a record that is too large."""
        deadline = None
        while True:
            try:
                self._produce(
                    record.topic, record.value, record.key,
                    -1 if record.partition is None else record.partition,
                    future, future, native_timestamp(record.timestamp),
                    native_headers(record.headers),
                )  # fmt: skip
                return
            except BufferError:
                deadline = deadline or Deadline(self._parts.max_block_s, self._parts.errors.because)
                deadline.check(record.topic)
            except MALFORMED as error:
                raise plain_type_error(record, error) from error
            except transport.LibrdkafkaError as error:
                self._refuse(record, future, error)
                return
            if not self._server.serve(_STEP_S):
                self._server.wait()

    def _refuse(
        self, record: PreparedRecord, future: DeliveryFuture, error: transport.LibrdkafkaError
    ) -> None:
        if transport.is_fatal(error.args[0]):
            # Its reason may not have been reported yet.
            self._server.serve()
        raised = refusal(record, error.args[0], self._parts.errors)
        if not isinstance(raised, ApiError):
            raise raised from error
        # As in Kafka, errors of a single record are in its future.
        self._transactions.refuse(raised)
        with self._server.user_code:
            future.finish(unsent(record.topic, record.partition), raised)

    def _forked(self) -> None:
        self._is_closed = True
        self._unclosed.detach()
        self._is_plain, self._produce = True, _forked

    def _check_transactional(self) -> None:
        self._check_open()
        self._parts.check_transactional()

    def _check_open(self) -> None:
        if self._is_closed:
            self._produce()


def refusal(record: PreparedRecord, cause: Any, errors: ProducerErrors) -> Exception:
    """Return the error of a record that librdkafka refuses."""
    if cause.code() == transport.MESSAGE_TOO_LARGE:
        return ApiError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"A record of {len(record.value or b'')} bytes for topic {record.topic!r} is larger "
            "than max.request.size: raise it, and the topic's max.message.bytes.",
        )
    if cause.code() == transport.WRONG_STATE:
        return ClientError(
            "a producer with transactional_id sends records only in a transaction: use `with "
            "producer.transaction():`"
        )
    return errors.unsent(cause, record.topic, record.partition)


def _forked(*_: Any) -> None:
    raise Closed(FORKED.format("producer"))


def _closed(*_: Any) -> None:
    raise Closed("the producer is closed: create a new one")
