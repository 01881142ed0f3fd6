"""The producer for asyncio: the same steps as `Producer`, without a thread.

Delivery reports are served on the event loop: after every few records, and every 2 ms while records
are unacknowledged. Futures and callbacks are completed there, without a change of thread.
A serializer may ask a schema registry: the first record of a topic is prepared in a thread.
"""

import asyncio
import logging
from asyncio import get_running_loop
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple

from ottla.base.errors import ApiError
from ottla.base.user_code import LoggedErrors
from ottla.client import transport
from ottla.client.config.forks import FORKED, call_after_fork
from ottla.client.config.settings import Config
from ottla.client.errors import ClientError, Closed, TimedOut
from ottla.client.producer.back_pressure import Deadline
from ottla.client.producer.delivery import AsyncDelivery
from ottla.client.producer.flushes import Flushes, Produce
from ottla.client.producer.futures import OnDelivery
from ottla.client.producer.parts import open_parts
from ottla.client.producer.preparation import (
    MALFORMED,
    PreparedRecord,
    native_timestamp,
    plain_type_error,
)
from ottla.client.producer.producer import INTERRUPTED, not_aborted, not_closed, refusal
from ottla.client.producer.transactions import AsyncGroupMember, GroupMember
from ottla.client.records import (
    Headers,
    Offsets,
    ProducerRecord,
    as_bytes,
    native_headers,
    unsent,
)

_SERVED_EVERY = 15
_TICK_S = 0.002
_log = logging.getLogger("ottla.client")


class _Waiting(NamedTuple):
    """A record that waits; `turn` is done when it is queued, has failed or is cancelled."""

    sent: ProducerRecord | PreparedRecord
    future: AsyncDelivery
    turn: asyncio.Future[None]
    deadline: Deadline


class AsyncProducer:
    """Sends records to a cluster from one event loop; a context manager with `async with`.

        async with AsyncProducer(bootstrap_servers="localhost:9092") as producer:
            metadata = await (await producer.send("orders", b"one"))

    Settings, interceptors, serializers and partitioners are the same as for `Producer`.
    """

    def __init__(self, config: Config = None, /, **settings: Any) -> None:
        self._parts = parts = open_parts(config, settings)
        self._producer, self._preparation = parts.producer, parts.preparation
        self._transactions = parts.transactions
        self._flushes = Flushes(self._producer, self._replace_produce)
        self._produce = self._flushes.native
        self._new_future = AsyncDelivery.class_for(parts.errors)
        self._is_plain = self._preparation.is_plain
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ticker: asyncio.TimerHandle | None = None
        self._sent = 0
        # The records that wait, in order.
        self._waiting: deque[_Waiting] = deque()
        self._sender: asyncio.Task[None] | None = None
        self._unclosed = parts.warning_unless_closed(self)
        self._is_closed = False
        call_after_fork(self._forked)

    async def send(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> AsyncDelivery:
        """Queue a record and return the future of its position; arguments as for `Producer.send`.

        Waits up to `max.block.ms` while the queue is full, then raises TimedOut.
        """
        loop = get_running_loop()
        if self._loop is not loop:
            self._bind(loop)
        future = self._new_future(on_delivery)
        if self._is_plain:
            try:
                if headers is None and partition is None and timestamp is None:
                    self._produce(topic, value, key, -1, future)
                else:
                    partition_or_any = -1 if partition is None else partition
                    at = native_timestamp(timestamp)
                    named = native_headers(headers)
                    self._produce(topic, value, key, partition_or_any, future, future, at, named)
            except (BufferError, *MALFORMED, transport.LibrdkafkaError):
                value, key = as_bytes(value), as_bytes(key)
                record = PreparedRecord(topic, value, key, headers, partition, timestamp)
                await self._queue_or_wait(record, future)
        else:
            sent = ProducerRecord(topic, value, key, headers, partition, timestamp)
            await self._send_prepared(sent, future)
        self._sent = sent_count = self._sent + 1
        if not sent_count & _SERVED_EVERY:
            self._serve()
        if self._ticker is None:
            self._ticker = loop.call_later(_TICK_S, self._tick)
        return future

    async def flush(self, timeout: float | None = None) -> None:
        """Send every queued record now and wait for its acknowledgement; TimedOut after `timeout`
        s.

        It does not wait for records that other tasks send during the call.
        """
        with self._flushes.begun() as flush:
            await self._flush(timeout, partial(self._flushes.unacknowledged, flush))

    async def _flush(
        self, timeout: float | None, remaining_records: Callable[[], int] | None = None
    ) -> None:
        self._check_open()
        count = remaining_records or self._producer.__len__
        deadline = None if timeout is None else self._now() + timeout
        while unacknowledged := len(self._producer):
            if deadline is not None and self._now() > deadline:
                text = f"{unacknowledged} records were not acknowledged within {timeout:g} s"
                raise TimedOut(self._parts.errors.because(text))
            # librdkafka stops lingering while a flush is under way; 1 ms at most blocks the loop.
            try:
                self._producer.flush(0.001)
                if count() <= 0:
                    return
            except transport.LibrdkafkaError as error:
                self._parts.errors.stopped(error.args[0])
                raise transport.translate(error.args[0]) from error
            await asyncio.sleep(0)

    async def partitions_for(self, topic: str) -> list[int]:
        """Return the partitions of a topic; ApiError if it does not exist."""
        self._check_open()
        return list(await asyncio.to_thread(self._preparation.topology.partitions, topic))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["AsyncProducer"]:
        """Send the records of the block atomically, as `Producer.transaction` does."""
        await self.begin_transaction()
        try:
            yield self
        except asyncio.CancelledError:
            await self._abandon()
            raise
        except BaseException:
            with not_aborted:
                await self.abort_transaction()
            raise
        await self.commit_transaction()

    async def init_transactions(self) -> None:
        """Register the transactional id; `begin_transaction` does it if needed."""
        self._check_transactional()
        await asyncio.to_thread(self._transactions.initialize)

    async def begin_transaction(self) -> None:
        """Begin a transaction; `transaction` is the safer form."""
        self._check_transactional()
        await asyncio.to_thread(self._transactions.begin)

    async def commit_transaction(self) -> None:
        """Commit the transaction; TransactionAborted if it was aborted instead."""
        self._check_transactional()
        await self._flush(None)
        try:
            await asyncio.to_thread(self._transactions.commit)
        except BaseException:
            self._serve()
            raise

    async def abort_transaction(self) -> None:
        """Abort the transaction; its records are never visible to read_committed consumers."""
        self._check_transactional()
        # Records are completed first, so that the thread below has no report to serve.
        await self._flush(None)
        await asyncio.to_thread(self._transactions.abort)

    async def send_offsets(
        self, consumer: GroupMember | AsyncGroupMember, offsets: Offsets | None = None
    ) -> None:
        """Commit a consumer's offsets with the transaction; its positions by default."""
        self._check_transactional()
        if offsets is None:
            positions = consumer.positions()
            offsets = positions if isinstance(positions, Mapping) else await positions
        await asyncio.to_thread(self._transactions.send_offsets, offsets, consumer.group_metadata())

    async def close(self, timeout: float | None = None) -> None:
        """Send what is queued, then stop; TimedOut if records remain after `timeout` s. Idempotent.

        Other tasks cannot send any more: `send` raises Closed.
        """
        if self._is_closed:
            return
        is_interrupted = False
        # Otherwise tasks that send all the time would keep it from ending.
        self._refuse_records()
        try:
            if self._transactions.is_open:
                with not_aborted:
                    await self.abort_transaction()
            with self._parts.errors.logged_if_fatal():
                await self._flush(timeout)
        except asyncio.CancelledError:
            is_interrupted = True
            raise
        finally:
            self._stop(is_interrupted=is_interrupted)

    async def __aenter__(self) -> "AsyncProducer":
        """Return itself."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close; after a cancellation, as by Ctrl-C, within 200 ms as `Producer` does.

        After another error, records are given up after a second if the cluster has never been
        reached.
        """
        if kind is None:
            await self.close()
        elif not issubclass(kind, asyncio.CancelledError):
            errors = self._parts.errors
            with not_closed:
                while errors.is_undecided(self._sent, len(self._producer)):
                    await asyncio.sleep(_TICK_S)
                await self.close(errors.patience_after_error(self._sent, len(self._producer)))
        elif not self._is_closed:
            try:
                if self._transactions.is_open:
                    await self._abandon()
                else:
                    await self._flush(transport.INTERRUPTED_S)
            except TimedOut:
                _log.warning(INTERRUPTED, len(self._producer))
            finally:
                self._stop(is_interrupted=True)

    def _stop(self, *, is_interrupted: bool) -> None:
        self._is_closed = True
        self._unclosed.detach()
        self._refuse_records()
        if self._ticker is not None:
            self._ticker.cancel()
        self._parts.close(is_interrupted=is_interrupted)

    def _refuse_records(self) -> None:
        with self._flushes.lock:
            self._is_plain, self._produce = True, _closed

    def _replace_produce(self, former: Produce, new: Produce) -> None:
        if self._produce is former:
            self._produce = new

    async def _abandon(self) -> None:
        self._producer.purge()
        self._serve()
        await asyncio.to_thread(self._transactions.abandon)

    async def _send_prepared(self, sent: ProducerRecord, future: AsyncDelivery) -> None:
        preparation = self._preparation
        if preparation.interceptors:
            sent = preparation.intercepted(sent)
            future._observer = preparation.interceptors.on_acknowledgement
        try:
            if self._waiting or not preparation.is_ready(sent):
                await self._send_in_turn(sent, future)
                return
            await self._queue_or_wait(preparation.prepared(sent), future)
        except Exception as error:
            preparation.interceptors.on_acknowledgement(unsent(sent.topic, sent.partition), error)
            raise

    async def _queue_or_wait(self, record: PreparedRecord, future: AsyncDelivery) -> None:
        try:
            self._queue(record, future)
        except BufferError:
            await self._send_in_turn(record, future)
        except (*MALFORMED, transport.LibrdkafkaError) as error:
            self._refuse(record, future, error)

    async def _send_in_turn(
        self, sent: ProducerRecord | PreparedRecord, future: AsyncDelivery
    ) -> None:
        """Send a record after those that wait for room, a registry or the partitions of a topic."""
        turn = get_running_loop().create_future()
        self._waiting.append(
            _Waiting(
                sent, future, turn, Deadline(self._parts.max_block_s, self._parts.errors.because)
            )
        )
        if len(self._waiting) == 1:
            # Later records wait, too, also if they need no preparation.
            self._is_plain = False
            self._sender = asyncio.create_task(self._send_waiting())
        await turn

    async def _send_waiting(self) -> None:
        while self._waiting:
            waiting = self._waiting[0]
            turn = waiting.turn
            if not turn.done():
                with LoggedErrors(partial(_fail, turn)):
                    record = await self._prepared(waiting.sent)
                    # It may have been cancelled during the preparation.
                    if not turn.done():
                        await self._queue_with_patience(record, waiting)
            if not turn.done():
                turn.set_result(None)
            self._waiting.popleft()
        self._is_plain = self._is_closed or self._preparation.is_plain

    async def _prepared(self, sent: ProducerRecord | PreparedRecord) -> PreparedRecord:
        if isinstance(sent, PreparedRecord):
            return sent
        if self._preparation.is_ready(sent):
            return self._preparation.prepared(sent)
        return await asyncio.to_thread(self._preparation.prepared_first, sent)

    def _queue(self, record: PreparedRecord, future: AsyncDelivery) -> None:
        self._produce(
            record.topic, record.value, record.key,
            -1 if record.partition is None else record.partition,
            future, future, native_timestamp(record.timestamp), native_headers(record.headers),
        )  # fmt: skip

    async def _queue_with_patience(self, record: PreparedRecord, waiting: _Waiting) -> None:
        while True:
            try:
                return self._queue(record, waiting.future)
            except BufferError:
                waiting.deadline.check(record.topic)
            except (*MALFORMED, transport.LibrdkafkaError) as error:
                return self._refuse(record, waiting.future, error)
            self._serve()
            await asyncio.sleep(_TICK_S)
            if waiting.turn.done():
                return None

    def _refuse(self, record: PreparedRecord, future: AsyncDelivery, error: Exception) -> None:
        if isinstance(error, MALFORMED):
            raise plain_type_error(record, error) from error
        if transport.is_fatal(error.args[0]):
            # Its reason may not have been reported yet.
            self._serve()
        raised = refusal(record, error.args[0], self._parts.errors)
        if not isinstance(raised, ApiError):
            raise raised from error
        self._transactions.refuse(raised)
        future.finish(unsent(record.topic, record.partition), raised)

    def _serve(self) -> None:
        try:
            self._producer.poll(0)
            self._parts.errors.log()
        except transport.LibrdkafkaError as error:
            # A fatal error, which the next record raises again.
            self._parts.errors.stopped(error.args[0])
            _log.error("the producer cannot continue: %s", error.args[0].str())

    def _tick(self) -> None:
        self._serve()
        self._ticker = None
        if len(self._producer) and self._loop is not None:
            self._ticker = self._loop.call_later(_TICK_S, self._tick)

    def _bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Complete futures on the running loop from now on, if no other one runs them."""
        if self._loop is not None and not self._loop.is_closed():
            raise ClientError("the producer belongs to another event loop: create one for each")
        self._loop = loop
        self._ticker = None
        self._waiting.clear()
        self._is_plain = self._is_closed or self._preparation.is_plain

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

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


def _fail(turn: "asyncio.Future[None]", error: Exception) -> None:
    if not turn.done():
        turn.set_exception(error)


def _forked(*_: Any) -> None:
    raise Closed(FORKED.format("producer"))


def _closed(*_: Any) -> None:
    raise Closed("the producer is closed: create a new one")
