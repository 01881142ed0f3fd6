"""The consumer for asyncio: `Consumer` in a thread of its own, which the event loop awaits."""

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

from ottla.client.config.forks import call_after_fork
from ottla.client.config.settings import Config
from ottla.client.consumer.assigned import Partitions, Starts
from ottla.client.consumer.commits import OnCommit
from ottla.client.consumer.consumer import Consumer
from ottla.client.consumer.membership import RebalanceListener, checked_listener
from ottla.client.consumer.offset_stores import OffsetStore
from ottla.client.consumer.thread import ConsumerThread
from ottla.client.errors import Closed
from ottla.client.records import (
    Committed,
    ConsumerRecord,
    OffsetAndMetadata,
    Offsets,
    TopicPartition,
)

T = TypeVar("T")
# A task that is cancelled, as by Ctrl-C, waits at most that long for the consumer's thread.
_POLL_S = 0.05


class AsyncConsumer:
    """Reads records on an event loop; a context manager with `async with`.

        async with AsyncConsumer("orders", group_id="billing") as consumer:
            async for record in consumer:
                print(record.value)

    Settings are the same as for `Consumer`. Records are fetched while the loop runs other tasks;
    the member stays in its group as long as polls follow each other within `max.poll.interval.ms`.
    Methods of a listener may be coroutine functions, which may seek, commit and look up offsets:
    the rebalance waits for them. Use one task.
    """

    def __init__(
        self,
        *topics: str,
        config: Config = None,
        listener: RebalanceListener | None = None,
        offset_store: OffsetStore | None = None,
        **settings: Any,
    ) -> None:
        self._listener = checked_listener(listener, may_be_async=True)
        self._thread = ConsumerThread()
        self._consumer = Consumer(config=config, offset_store=offset_store, **settings)
        self._first = topics
        self._is_closed = self._is_stopped = False
        call_after_fork(self._forked)

    async def subscribe(
        self,
        topics: str | Sequence[str] = (),
        *,
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Join the group for topics, or for all whose whole name matches a pattern."""
        loop = asyncio.get_running_loop()
        listener = checked_listener(listener, may_be_async=True) or self._listener
        adapted = None if listener is None else _OnLoop(listener, loop, self._thread)
        await self._run(lambda: self._consumer.subscribe(topics, pattern=pattern, listener=adapted))

    async def assign(self, partitions: Partitions | Starts) -> None:
        """Read these partitions without a group; a mapping has the offset of each."""
        await self._run(lambda: self._consumer.assign(partitions))

    async def unsubscribe(self) -> None:
        """Leave the group; `subscribe` joins again."""
        await self._run(self._consumer.unsubscribe)

    @property
    def subscription(self) -> tuple[str, ...]:
        """The subscribed topics; a pattern begins with ^."""
        return self._consumer.subscription

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that this consumer reads now."""
        return self._consumer.assignment

    @property
    def departure(self) -> str | None:
        """Why this member left its group the last time, in a sentence; None if it never did."""
        return self._consumer.departure

    async def poll(
        self, timeout: float = 1.0, *, max_records: int | None = None
    ) -> list[ConsumerRecord]:
        """Return records, at most `max.poll.records`; an empty list after `timeout` seconds."""
        await self._subscribe_first()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while True:
            step = max(0.0, min(_POLL_S, deadline - loop.time()))
            await self._run(partial(self._consumer.fetch, step, max_records))
            # Taken here, not in the thread: a poll that is cancelled loses no record.
            records = self._consumer.unread()
            if records or loop.time() >= deadline:
                return records

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """Yield records as they arrive, until the consumer is closed, also by another task."""
        await self._subscribe_first()
        if self._is_closed:
            # It raises.
            await self._run(self._fetch)
        while not self._is_closed:
            # The thread fetches; records of one fetch are yielded without it.
            try:
                await self._run(self._fetch)
            except Closed:
                if self._is_closed:
                    return
                raise
            for record in self._consumer.fetched():
                yield record

    async def positions(self) -> dict[TopicPartition, int]:
        """Return the next offset to read of each assigned partition that has one."""
        return await self._run(self._consumer.positions)

    async def commit(self, offsets: Offsets | None = None) -> Committed:
        """Commit positions, records, or next offsets by partition; return what was committed."""
        return await self._run(lambda: self._consumer.commit(offsets))

    async def commit_async(
        self, offsets: Offsets | None = None, *, callback: OnCommit | None = None
    ) -> None:
        """Commit in the background; a later `poll` or `close` calls `callback(offsets, error)` in
        the consumer's thread.
        """
        await self._run(lambda: self._consumer.commit_async(offsets, callback=callback))

    async def committed(self, partitions: Partitions | None = None) -> Committed:
        """Return the committed offsets of these partitions, or of the assigned ones."""
        return await self._run(lambda: self._consumer.committed(partitions))

    async def seek(self, partition: tuple[str, int], offset: int | OffsetAndMetadata) -> None:
        """Read an assigned partition from an offset next, which may be one of `committed`."""
        await self._run(lambda: self._consumer.seek(partition, offset))

    async def seek_to_beginning(self, partitions: Partitions | None = None) -> None:
        """Read these partitions, or all assigned ones, from their first record next."""
        await self._run(lambda: self._consumer.seek_to_beginning(partitions))

    async def seek_to_end(self, partitions: Partitions | None = None) -> None:
        """Read these partitions, or all assigned ones, from their end next."""
        await self._run(lambda: self._consumer.seek_to_end(partitions))

    async def seek_to_time(self, timestamp: float, partitions: Partitions | None = None) -> None:
        """Read from the first record at or after a time (ms since 1970), or from the end."""
        await self._run(lambda: self._consumer.seek_to_time(timestamp, partitions))

    async def pause(self, partitions: Partitions | None = None) -> None:
        """Return no records of these partitions until `resume`."""
        await self._run(lambda: self._consumer.pause(partitions))

    async def resume(self, partitions: Partitions | None = None) -> None:
        """Return records of these partitions again."""
        await self._run(lambda: self._consumer.resume(partitions))

    async def offsets_for_times(
        self, times: Mapping[tuple[str, int], float]
    ) -> dict[TopicPartition, int | None]:
        """Return the first offset at or after a time (ms) in each partition, None without such a
        record.
        """
        return await self._run(lambda: self._consumer.offsets_for_times(times))

    async def partitions_for(self, topic: str) -> list[int]:
        """Return the partitions of a topic; ApiError if it does not exist."""
        return await self._run(lambda: self._consumer.partitions_for(topic))

    async def beginning_offsets(self, partitions: Partitions) -> dict[TopicPartition, int]:
        """Return the offset of the first record of each partition."""
        return await self._run(lambda: self._consumer.beginning_offsets(partitions))

    async def end_offsets(self, partitions: Partitions) -> dict[TopicPartition, int]:
        """Return the offset after the last readable record of each partition."""
        return await self._run(lambda: self._consumer.end_offsets(partitions))

    def group_metadata(self) -> Any:
        """Return the membership in the form that `AsyncProducer.send_offsets` passes on."""
        return self._consumer.group_metadata()

    async def close(self) -> None:
        """Commit positions if the consumer does that itself, leave the group, stop; idempotent."""
        if not self._is_closed:
            self._is_closed = True
            await self._end(self._consumer.close)

    async def __aenter__(self) -> "AsyncConsumer":
        """Subscribe to the topics of the constructor; return itself."""
        await self._subscribe_first()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close; after an exception in the block without committing what it was processing.

        After a cancellation, as by Ctrl-C, this takes at most 200 ms."""
        if self._is_closed:
            return
        self._is_closed = True
        if kind is not None and issubclass(kind, asyncio.CancelledError):
            await self._abandon()
        else:
            await self._end(lambda: self._consumer.__exit__(kind, error, trace))

    async def _end(self, close: Callable[[], object]) -> None:
        try:
            await self._run(close, during_rebalance=False)
        except asyncio.CancelledError:
            await self._abandon()
            raise
        finally:
            self._stop()

    async def _abandon(self) -> None:
        self._consumer.interrupt()
        self._thread.cancel_listener()
        try:
            await self._run(self._consumer.abandon, during_rebalance=False)
        finally:
            self._stop()

    def _stop(self) -> None:
        self._is_stopped = True
        self._thread.stop()

    def _forked(self) -> None:
        # The closed consumer raises, without the thread.
        self._is_stopped = True

    def _fetch(self) -> None:
        self._consumer.fetch(_POLL_S)

    async def _subscribe_first(self) -> None:
        topics, self._first = self._first, ()
        if topics:
            await self.subscribe(topics)

    async def _run(self, call: Callable[[], T], *, during_rebalance: bool = True) -> T:
        if self._is_stopped:
            # The closed consumer raises; nothing blocks.
            return call()
        future = self._thread.submit(call, during_rebalance=during_rebalance)
        return await asyncio.wrap_future(future)


class _OnLoop(RebalanceListener):
    """Calls a listener from the consumer's thread; coroutine functions run on the event loop."""

    def __init__(
        self,
        listener: RebalanceListener,
        loop: asyncio.AbstractEventLoop,
        thread: ConsumerThread,
    ) -> None:
        self._listener = listener
        self._loop = loop
        self._thread = thread

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """Call the listener."""
        self._call(self._listener.on_partitions_assigned, partitions)

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """Call the listener."""
        self._call(self._listener.on_partitions_revoked, partitions)

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        """Call the listener."""
        revoked = self._listener.on_partitions_revoked
        self._call(getattr(self._listener, "on_partitions_lost", revoked), partitions)

    def _call(self, method: Callable[[list[TopicPartition]], Any], rows: Iterable[Any]) -> None:
        result = method(list(rows))
        if inspect.isawaitable(result):
            done = asyncio.run_coroutine_threadsafe(_awaited(result), self._loop)
            self._thread.wait_for(done)


async def _awaited(result: Any) -> None:
    await result
