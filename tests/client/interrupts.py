"""A program that interrupts itself in one call after the other, as Ctrl-C does.

`python -m tests.client.interrupts KIND` waits for a broker that accepts connections and never
responds; members of groups wait for a broker that is paused, and producers also for an address at
which nothing listens. It prints one line for each call: its name, the ms until the call has ended,
and the ms until its `with` block has ended.
"""

import asyncio
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ottla.client import (
    AsyncConsumer,
    AsyncProducer,
    Consumer,
    Producer,
    RebalanceListener,
    TopicPartition,
)
from ottla.testing import Cluster

LIMIT_S = 0.2
# A busy machine may delay one attempt. A call that cannot be interrupted fails in all.
_ATTEMPTS = 3
# Long enough for the call to begin.
_DELAY_S = 0.1
_silent = socket.create_server(("127.0.0.1", 0))
_BROKER = {"bootstrap_servers": f"127.0.0.1:{_silent.getsockname()[1]}"}
_PRODUCER = {**_BROKER, "enable_idempotence": False, "queue_buffering_max_messages": 10}
_KEY = ("t", 0)
_STICKY = {"partition_assignment_strategy": "sticky"}


class Interrupt:
    """Sends SIGINT to this process after a moment, and measures the time since then."""

    def __init__(self) -> None:
        self.sent = 0.0
        self.call_s = self.block_s = float("inf")
        self._timer = threading.Timer(_DELAY_S, self._send)

    def start(self) -> None:
        """Send the signal soon."""
        self._timer.start()

    def _send(self) -> None:
        self.sent = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    def call_ended(self) -> None:
        """Note the end of the call."""
        self.call_s = time.monotonic() - self.sent

    def block_ended(self) -> None:
        """Note the end of the `with` block."""
        self.block_s = time.monotonic() - self.sent


def _in_thread(client: Callable[[], Any], call: Callable[[Any], Any]) -> Interrupt:
    interrupt = Interrupt()
    try:
        with client() as opened:
            interrupt.start()
            try:
                call(opened)
            except KeyboardInterrupt:
                interrupt.call_ended()
                raise
    except KeyboardInterrupt:
        interrupt.block_ended()
    return interrupt


def _in_task(client: Callable[[], Any], call: Callable[[Any], Any]) -> Interrupt:
    interrupt = Interrupt()

    async def run() -> None:
        async with client() as opened:
            interrupt.start()
            try:
                await call(opened)
            except asyncio.CancelledError:
                interrupt.call_ended()
                raise

    try:
        asyncio.run(run())
    except KeyboardInterrupt:
        interrupt.block_ended()
    return interrupt


def _transactional(**settings: Any) -> Producer:
    return Producer(_BROKER, transactional_id="t", **settings)


def _assigned() -> Consumer:
    consumer = Consumer(group_id="g", **_BROKER)
    consumer.assign([_KEY])
    return consumer


def _assigned_async() -> AsyncConsumer:
    consumer = AsyncConsumer(group_id="g", **_BROKER)
    consumer._consumer.assign([_KEY])
    return consumer


def _iterate(consumer: Consumer) -> None:
    for _ in consumer:
        pass


def _send_many(producer: Producer) -> None:
    for _ in range(20):
        producer.send("t", b"x")


def _send_and_flush(producer: Producer) -> None:
    producer.send("t", b"x")
    producer.flush()


def _send_and_wait(producer: Producer) -> None:
    producer.send("t", b"x")
    threading.Event().wait()


def _send_and_close(producer: Producer) -> None:
    producer.send("t", b"x")
    producer.close()


async def _iterate_async(consumer: AsyncConsumer) -> None:
    async for _ in consumer:
        pass


async def _result_async(producer: AsyncProducer) -> None:
    await (await producer.send("t", b"x"))


async def _send_many_async(producer: AsyncProducer) -> None:
    for _ in range(20):
        await producer.send("t", b"x")


async def _flush_async(producer: AsyncProducer) -> None:
    await producer.send("t", b"x")
    await producer.flush()


async def _close_async(producer: AsyncProducer) -> None:
    await producer.send("t", b"x")
    await producer.close()


async def _close_consumer_async(consumer: AsyncConsumer) -> None:
    await consumer.commit_async({_KEY: 1})
    await consumer.close()


async def _begin_async(producer: AsyncProducer) -> None:
    async with producer.transaction():
        pass


def _producer() -> Producer:
    return Producer(_PRODUCER)


def _partitioning() -> Producer:
    return Producer(_PRODUCER, partitioner="round_robin")


def _async_producer() -> AsyncProducer:
    return AsyncProducer(_PRODUCER)


class _Committing(RebalanceListener):
    """Commits positions when partitions are revoked, as the notes' programs do."""

    def __init__(self) -> None:
        self.consumer: Consumer | None = None
        self.revoked: list[int] = []

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """Commit, and note the thread."""
        assert self.consumer is not None
        self.revoked.append(threading.get_ident())
        self.consumer.commit()


class _Observing(_Committing):
    """Notes the thread only."""

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """Note the thread."""
        self.revoked.append(threading.get_ident())


def _member(
    listener: _Committing | None,
    call: Callable[[Consumer], object] = Consumer.close,
    **settings: Any,
) -> Interrupt:
    """Interrupt a call of a member that has read a record, while its coordinator is paused."""
    options = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1"}
    with Cluster(options=options) as cluster:
        cluster.create_topic("t")
        with Producer(bootstrap_servers=cluster.bootstrap) as producer:
            producer.send("t", b"x")
        consumer = Consumer(
            bootstrap_servers=cluster.bootstrap,
            group_id="g",
            auto_offset_reset="earliest",
            **settings,
        )
        if listener is not None:
            listener.consumer = consumer
        consumer.subscribe("t", listener=listener)
        while not consumer.poll(1):
            pass
        interrupt = Interrupt()
        cluster.pause(cluster.brokers[0])
        try:
            interrupt.start()
            try:
                with consumer:
                    try:
                        call(consumer)
                    except KeyboardInterrupt:
                        interrupt.call_ended()
                        raise
            except KeyboardInterrupt:
                interrupt.block_ended()
        finally:
            cluster.resume(cluster.brokers[0])
        if listener is not None:
            assert listener.revoked == [threading.get_ident()], listener.revoked
    return interrupt


class _Rebalance:
    """A cluster whose coordinator stops responding when a second member has caused a rebalance."""

    def __init__(self, **settings: Any) -> None:
        self.interrupt = Interrupt()
        options = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1"}
        self._cluster = Cluster(options=options)
        self._settings = settings
        self._is_silent = threading.Event()
        self._joining = threading.Thread(target=self._join, daemon=True)

    def __enter__(self) -> dict[str, Any]:
        """Start; return the settings of a member that finds a record."""
        bootstrap = self._cluster.__enter__().bootstrap
        self._cluster.create_topic("t", partitions=2)
        with Producer(bootstrap_servers=bootstrap) as producer:
            producer.send("t", b"x")
        self._settings |= {
            "bootstrap_servers": bootstrap,
            "group_id": "g",
            "auto_offset_reset": "earliest",
        }
        return self._settings

    def __exit__(self, *error: object) -> None:
        """Stop everything."""
        self._is_silent.set()
        self._cluster.resume(self._cluster.brokers[0])
        self._joining.join()
        self._cluster.__exit__(None, None, None)

    def start(self) -> None:
        """Let the second member join."""
        self._joining.start()

    def begin(self) -> bool:
        """Pause the coordinator and announce the signal; False if that was done before."""
        if self._is_silent.is_set():
            return False
        self._is_silent.set()
        self._cluster.pause(self._cluster.brokers[0])
        self.interrupt.start()
        return True

    def _join(self) -> None:
        with Consumer("t", **self._settings) as other:
            while not self._is_silent.is_set():
                other.poll(0.1)


class _Pausing(RebalanceListener):
    """Commits in the rebalance; at the end of the block it must not wait for the coordinator."""

    def __init__(self, rebalance: _Rebalance) -> None:
        self._rebalance = rebalance
        self.consumer: Consumer | None = None

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """Commit."""
        assert self.consumer is not None
        if self._rebalance.begin():
            self.consumer.commit()


class _PausingAsync(RebalanceListener):
    """The same on an event loop."""

    def __init__(self, rebalance: _Rebalance) -> None:
        self._rebalance = rebalance
        self.consumer: AsyncConsumer | None = None

    async def on_partitions_revoked(  # type: ignore[override]
        self, partitions: list[TopicPartition]
    ) -> None:
        """Commit."""
        assert self.consumer is not None
        if self._rebalance.begin():
            await self.consumer.commit()


def _rebalancing(**settings: Any) -> Interrupt:
    """Interrupt the commit of a listener in a rebalance, which a second member has caused."""
    rebalance = _Rebalance(**settings)
    interrupt, listener = rebalance.interrupt, _Pausing(rebalance)
    with rebalance as member:
        try:
            with Consumer(**member) as consumer:
                listener.consumer = consumer
                consumer.subscribe("t", listener=listener)
                while not consumer.poll(1):
                    pass
                rebalance.start()
                try:
                    _iterate(consumer)
                except KeyboardInterrupt:
                    interrupt.call_ended()
                    raise
        except KeyboardInterrupt:
            interrupt.block_ended()
    return interrupt


def _rebalancing_async(**settings: Any) -> Interrupt:
    """The same on an event loop, where the listener is a coroutine function."""
    rebalance = _Rebalance(**settings)
    interrupt, listener = rebalance.interrupt, _PausingAsync(rebalance)

    async def run(member: dict[str, Any]) -> None:
        async with AsyncConsumer(**member) as consumer:
            listener.consumer = consumer
            await consumer.subscribe("t", listener=listener)
            while not await consumer.poll(1):
                pass
            rebalance.start()
            try:
                await _iterate_async(consumer)
            except asyncio.CancelledError:
                interrupt.call_ended()
                raise

    with rebalance as member:
        try:
            asyncio.run(run(member))
        except KeyboardInterrupt:
            interrupt.block_ended()
    return interrupt


def _unreachable(call: Callable[[Producer], Any]) -> Interrupt:
    return _in_thread(
        lambda: Producer({**_PRODUCER, "bootstrap_servers": f"127.0.0.1:{_closed_port()}"}), call
    )


def _closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


CALLS: dict[str, dict[str, Callable[[], Interrupt]]] = {
    "Producer": {
        "result": lambda: _in_thread(_producer, lambda one: one.send("t", b"x").result()),
        "send with a full queue": lambda: _in_thread(_producer, _send_many),
        "send that needs metadata": lambda: _in_thread(_partitioning, _send_many),
        "flush": lambda: _in_thread(_producer, _send_and_flush),
        "close": lambda: _in_thread(_producer, _send_and_close),
        "partitions_for": lambda: _in_thread(_producer, lambda one: one.partitions_for("t")),
        "begin_transaction": lambda: _in_thread(
            _transactional, lambda one: one.begin_transaction()
        ),
    },
    "Consumer": {
        "poll": lambda: _in_thread(_assigned, lambda one: one.poll(60)),
        "iteration": lambda: _in_thread(_assigned, _iterate),
        "iteration of a member": lambda: _in_thread(
            lambda: Consumer("t", group_id="g", **_BROKER), _iterate
        ),
        "commit": lambda: _in_thread(_assigned, lambda one: one.commit({_KEY: 1})),
        "committed": lambda: _in_thread(_assigned, lambda one: one.committed()),
        "end_offsets": lambda: _in_thread(_assigned, lambda one: one.end_offsets([_KEY])),
        "close": lambda: _in_thread(
            _assigned, lambda one: (one.commit_async({_KEY: 1}), one.close())
        ),
    },
    "Member": {
        "close": lambda: _member(None, enable_auto_commit=False),
        "close that commits": lambda: _member(None),
        "unsubscribe": lambda: _member(None, Consumer.unsubscribe),
        "lookup of a time": lambda: _member(None, lambda one: one.seek_to_time(0)),
        "close with a listener": lambda: _member(_Observing(), enable_auto_commit=False),
        "close with a listener that commits": lambda: _member(_Committing()),
        "commit in a rebalance": _rebalancing,
    },
    "Member of a consumer group": {
        "commit in a rebalance": lambda: _rebalancing(group_protocol="consumer"),
    },
    "Member with the StickyAssignor": {
        "iteration": lambda: _in_thread(
            lambda: Consumer("t", group_id="g", **_BROKER, **_STICKY), _iterate
        ),
        "close": lambda: _member(None, enable_auto_commit=False, **_STICKY),
        "close that commits": lambda: _member(None, **_STICKY),
        "unsubscribe": lambda: _member(None, Consumer.unsubscribe, **_STICKY),
        "close with a listener that commits": lambda: _member(_Committing(), **_STICKY),
        "commit in a rebalance": lambda: _rebalancing(**_STICKY),
    },
    "Producer without brokers": {
        "flush": lambda: _unreachable(_send_and_flush),
        "close": lambda: _unreachable(_send_and_close),
        "result": lambda: _unreachable(lambda one: one.send("t", b"x").result()),
        "end of the block": lambda: _unreachable(_send_and_wait),
    },
    "AsyncProducer": {
        "result": lambda: _in_task(_async_producer, _result_async),
        "send with a full queue": lambda: _in_task(_async_producer, _send_many_async),
        "flush": lambda: _in_task(_async_producer, _flush_async),
        "close": lambda: _in_task(_async_producer, _close_async),
        "transaction": lambda: _in_task(
            lambda: AsyncProducer(_BROKER, transactional_id="t"), _begin_async
        ),
    },
    "AsyncConsumer": {
        "poll": lambda: _in_task(_assigned_async, lambda one: one.poll(60)),
        "iteration": lambda: _in_task(_assigned_async, _iterate_async),
        "commit": lambda: _in_task(_assigned_async, lambda one: one.commit({_KEY: 1})),
        "close": lambda: _in_task(_assigned_async, _close_consumer_async),
        "commit in a rebalance": _rebalancing_async,
    },
}


def main(kind: str) -> None:
    """Interrupt every call of one kind of client."""
    for name, attempt in CALLS[kind].items():
        for _ in range(_ATTEMPTS):
            interrupt = attempt()
            if max(interrupt.call_s, interrupt.block_s) < LIMIT_S:
                break
        print(f"{name}: {interrupt.call_s * 1000:.0f} {interrupt.block_s * 1000:.0f}", flush=True)


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        main(sys.argv[1])
