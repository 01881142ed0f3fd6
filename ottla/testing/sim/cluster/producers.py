"""Producers of a simulated cluster: idempotent with acks=all, and without guarantees with acks=1."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from ottla.base.errors import ErrorCode
from ottla.testing.checkers.kafka import Write, acknowledge
from ottla.testing.sim.cluster.clients import (
    REQUEST_SECONDS,
    RETRIABLE,
    ClusterClient,
    Refused,
    Unavailable,
    check,
)
from ottla.testing.sim.cluster.workers import LOOSE, STRICT, Work, Worker
from ottla.wire.fields import Message
from ottla.wire.messages import init_producer_id, produce
from ottla.wire.records.records import Record, encode_batch

ACKS_ALL = -1
IN_FLIGHT_MAX = 3
_VERSION = 9
_TIMEOUT_MS = 2000


class Identity(NamedTuple):
    """A producer's id and epoch."""

    producer_id: int
    epoch: int


def batch_of(
    client: ClusterClient,
    values: Sequence[str],
    identity: Identity | None = None,
    sequence: int = 0,
    *,
    is_transactional: bool = False,
) -> bytes:
    """Return a batch of records, one for each value, with random padding."""
    now = client.clock.time_ms()
    records = [
        Record(None, f"{value} {'x' * client.rng.below(120)}".encode(), timestamp=now)
        for value in values
    ]
    if identity is None:
        return bytes(encode_batch(records))
    return bytes(
        encode_batch(
            records,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            base_sequence=sequence,
            transactional=is_transactional,
        )
    )


def produce_request(
    topic: str, partition: int, data: bytes, acks: int, transactional_id: str | None = None
) -> produce.ProduceRequest:
    """Return a request with one batch."""
    produced = produce.PartitionProduceData(index=partition, records=data)
    return produce.ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=_TIMEOUT_MS,
        topic_data=[produce.TopicProduceData(name=topic, partition_data=[produced])],
    )


def produced(response: Message) -> produce.PartitionProduceResponse:
    """Return the part of a response that concerns its one batch."""
    assert isinstance(response, produce.ProduceResponse)
    return response.responses[0].partition_responses[0]


async def identify(client: ClusterClient) -> Identity:
    """Return a new producer id; raises Unavailable."""
    request = init_producer_id.InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=60_000
    )
    response = await client.ask_any(request, 4, init_producer_id.InitProducerIdResponse)
    check(response.error_code)
    return Identity(response.producer_id, response.producer_epoch)


class _Batch(NamedTuple):
    writes: list[Write]
    data: bytes


class IdempotentProducer(Worker):
    """Writes to one partition with several requests under way, and repeats them until acknowledged."""

    def __init__(self, work: Work, name: str, partition: int) -> None:
        super().__init__(work, name)
        self._partition = partition
        self._identity: Identity | None = None
        self._sequence = 0
        self._count = 0
        self._unacknowledged: list[_Batch] = []
        self._acknowledged_at: float | None = None

    async def run(self) -> None:
        """Produce until it is over and everything is acknowledged."""
        while not self.work.is_over or self._unacknowledged:
            try:
                if self._identity is None:
                    self._identity = await identify(self.client)
                await self._produce(self._identity)
                await self.client.clock.sleep((30 + self.rng.below(170)) / 1000)
            except Unavailable as error:
                self.state = str(error)
                self.client.forget_leader(STRICT, self._partition)
                await self.client.pause()
        self.client.close()

    async def _produce(self, identity: Identity) -> None:
        limit = 1 + self.rng.below(IN_FLIGHT_MAX)
        while len(self._unacknowledged) < limit and not self.work.is_over:
            self._unacknowledged.append(self._next_batch(identity))
        leader = await self.client.leader(STRICT, self._partition)
        connection = await self.client.connection(leader)
        futures = [
            connection.send(
                produce_request(STRICT, self._partition, batch.data, ACKS_ALL), _VERSION
            )
            for batch in self._unacknowledged
        ]
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                for future in futures:
                    self._judge(produced(await future))
        except OSError as error:
            connection.close()
            connection.is_lost = True
            raise Unavailable(str(error)) from error
        except Unavailable:
            # Later requests may have been performed; their responses arrive before the repetition.
            await asyncio.wait(futures, timeout=REQUEST_SECONDS)
            raise
        finally:
            for future in futures:
                future.cancel()
                if future.done() and not future.cancelled():
                    future.exception()

    def _judge(self, response: produce.PartitionProduceResponse) -> None:
        error = ErrorCode(response.error_code)
        if error in RETRIABLE:
            raise Unavailable(error.name)
        if error not in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            # All earlier batches were acknowledged, so that this one is in order.
            self.complain(f"{error.name} for the oldest unacknowledged batch")
            self._identity = None
            self._unacknowledged.clear()
            raise Unavailable(error.name)
        batch = self._unacknowledged.pop(0)
        acknowledge(batch.writes, response.base_offset)
        self.progress += 1
        now = self.client.clock.monotonic()
        if self._acknowledged_at is not None:
            gap = now - self._acknowledged_at
            self.work.longest_gap_seconds = max(self.work.longest_gap_seconds, gap)
        self._acknowledged_at = now

    def _next_batch(self, identity: Identity) -> _Batch:
        count = 1 + self.rng.below(3)
        values = [f"{self.name}.{self._count + number}" for number in range(count)]
        self._count += count
        data = batch_of(self.client, values, identity, self._sequence)
        self._sequence += count
        return _Batch(self.work.history.send(self.name, (STRICT, self._partition), values), data)


class WeakProducer(Worker):
    """Writes with acks=1 and never repeats a request, so that nothing can be written twice."""

    def __init__(self, work: Work, name: str, partition: int) -> None:
        super().__init__(work, name)
        self._partition = partition
        self._count = 0

    async def run(self) -> None:
        """Produce until it is over."""
        while not self.work.is_over:
            try:
                await self._produce()
                await self.client.clock.sleep((30 + self.rng.below(170)) / 1000)
            except (Unavailable, Refused) as error:
                self.state = str(error)
                self.client.forget_leader(LOOSE, self._partition)
                await self.client.pause()
        self.client.close()

    async def _produce(self) -> None:
        # A write counts as sent when a leader is known: nothing is written before.
        await self.client.leader(LOOSE, self._partition)
        values = [f"{self.name}.{self._count}"]
        self._count += 1
        writes = self.work.history.send(self.name, (LOOSE, self._partition), values, is_weak=True)
        request = produce_request(LOOSE, self._partition, batch_of(self.client, values), 1)
        response = await self.client.ask_leader(
            LOOSE, self._partition, request, _VERSION, produce.ProduceResponse
        )
        result = produced(response)
        check(result.error_code)
        acknowledge(writes, result.base_offset)
        self.progress += 1
