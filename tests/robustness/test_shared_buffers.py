"""Records of many connections pass through shared receive buffers and end where they were sent.

A faulty reuse of buffers once stored records in the wrong topic (CVE-2026-35554). Here produce
requests of several connections arrive interleaved at arbitrary split points, pipelined, and every
buffer is overwritten as soon as the broker may reuse it. Small requests are parsed in the buffer
that all connections share, or wait in it for their rest; large ones have buffers from a pool;
records of compacting topics, and of transactions, are stored after their frame is gone.
"""

import asyncio
import random
import struct
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ottla.base.errors import ErrorCode
from ottla.net.buffers import ReceiveBuffers
from ottla.net.connection import Connection
from ottla.net.limits import Limits
from ottla.net.receive_budget import ReceiveBudget
from ottla.net.receiving import nothing_received
from ottla.server.produce.admission import Admission, TransactionalWrite
from ottla.server.transport.apis import ROWS
from ottla.server.transport.dispatch import Dispatcher
from ottla.wire import headers
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.handlers.logs import LogsBroker, batch, logs_broker, values
from tests.unit.net.conftest import HandHousehold, HandTransport, Wire

# Topics whose batches are stored as they are, and one whose batches are compressed again.
TOPICS = ("plain", "other", "plain-2", "heavy")
PARTITIONS = 2
FIRST_VERSION_WITH_IDS = 13
# Beginnings of small requests stay in the shared buffer up to 64 KiB; it has 256 KiB.
SIZES = (1, 40, 1000, 20_000, 70_000, 140_000, 300_000)
SCRIBBLE = 0xEE


class Buffers(ReceiveBuffers):
    """Overwrites each buffer that is given back."""

    def give_back(self, buffer: bytearray) -> None:
        buffer[:] = bytes((SCRIBBLE,)) * len(buffer)
        super().give_back(buffer)


class Target(NamedTuple):
    """A topic and a partition, and the size of the value that is sent there."""

    topic: str
    partition: int
    size: int


class Sent(NamedTuple):
    """The requests of one connection."""

    version: int
    acks: int
    is_transactional: bool
    requests: list[list[Target]]


targets = st.builds(
    Target,
    st.sampled_from(TOPICS),
    st.integers(0, PARTITIONS - 1),
    st.sampled_from(SIZES),
)
requests = st.lists(
    st.lists(targets, min_size=1, max_size=3, unique_by=lambda one: one[:2]),
    min_size=1,
    max_size=5,
)
clients = st.lists(
    st.builds(
        Sent,
        st.sampled_from((3, 9, 12, 13)),
        st.sampled_from((0, 1, -1)),
        st.booleans(),
        requests,
    ),
    min_size=2,
    max_size=4,
)


class Admitted(Admission):
    """Admits every transactional batch, in a later turn of the loop."""

    def __init__(self, broker: LogsBroker) -> None:
        transactions = SimpleNamespace(verify=lambda *_, **__: ErrorCode.NONE)
        super().__init__(cast(Any, transactions), broker.tasks, lambda: broker.options)

    def _decide(self, write: TransactionalWrite) -> Any:
        # As by a coordinator on another broker.
        loop = asyncio.get_running_loop()
        later: asyncio.Future[ErrorCode] = loop.create_future()
        loop.call_soon(lambda: later.done() or later.set_result(ErrorCode.NONE))
        return later


class World:
    """A dispatcher and the connections of one endpoint, which share their buffers."""

    def __init__(self, broker: LogsBroker, budget: ReceiveBudget) -> None:
        self.broker = broker
        broker.admission = Admitted(broker)  # type: ignore[attr-defined]
        self.dispatcher = Dispatcher(cast(Any, broker), broker.tasks, ROWS)
        self.household = HandHousehold(lambda connection, body: None, Limits())
        buffers = self.household.buffers = Buffers()
        self.household.budget = budget
        self.household.nothing_received = nothing_received(buffers, budget)
        self.household.unsent.limit_bytes = self.household.unsent.bytes_max = 64 << 20
        self.ids: dict[str, bytes] = {}
        for name in TOPICS:
            config = {"compression.type": "gzip"} if name == "heavy" else {}
            topic = broker.create(name, partitions=PARTITIONS, config=config)
            self.ids[name] = topic.topic_id
        # The values that each partition must have, by connection, in order.
        self.expected: dict[tuple[str, int], dict[int, list[bytes]]] = {}

    def connect(self) -> Wire:
        wire = Wire(lambda connection, body: None, connection=Connection(self.household))
        wire.connection.serve(self.dispatcher)
        return wire

    def frames(self, number: int, client: Sent, rng: random.Random) -> bytes:
        """Return the bytes that a connection sends; note where their values belong."""
        data = b""
        for at, request in enumerate(client.requests):
            topics = [
                TopicProduceData(
                    name="" if client.version >= FIRST_VERSION_WITH_IDS else target.topic,
                    topic_id=self.ids[target.topic]
                    if client.version >= FIRST_VERSION_WITH_IDS
                    else bytes(16),
                    partition_data=[
                        PartitionProduceData(
                            index=target.partition,
                            records=self._batch(number, at, client, target, rng),
                        )
                    ],
                )
                for target in request
            ]
            message = ProduceRequest(
                transactional_id=f"t-{number}" if client.is_transactional else None,
                acks=client.acks,
                timeout_ms=1000,
                topic_data=topics,
            )
            body = headers.encode_request(message, client.version, at, f"client-{number}")
            data += struct.pack(">i", len(body)) + body
        return data

    def _batch(
        self, number: int, at: int, client: Sent, target: Target, rng: random.Random
    ) -> bytes:
        value = f"{number}/{at}/{target.topic}/{target.partition}/".encode()
        value += rng.randbytes(target.size)
        key = target.topic, target.partition
        self.expected.setdefault(key, {}).setdefault(number, []).append(value)
        if not client.is_transactional:
            return bytes(batch(value))
        sequence = len(self.expected[key][number]) - 1
        fields = {"producer_id": number, "producer_epoch": 0, "base_sequence": sequence}
        return bytes(batch(value, transactional=True, **fields))

    def stored(self, topic: str, partition: int) -> list[bytes]:
        log = self.broker.partition(topic, partition).log
        found: list[bytes] = []
        while log.log_start_offset + len(found) < log.log_end_offset:
            end = log.log_end_offset
            read = log.read(log.log_start_offset + len(found), 1 << 30, max_offset=end)
            found += [value or b"" for value in values(read.records)]
        return found


def deliver(
    world: World, wires: list[Wire], data: list[bytes], rng: random.Random
) -> Iterator[None]:
    """Deliver the bytes of all connections, a piece of one after a piece of another."""
    left = [bytes(one) for one in data]
    while any(left):
        number = rng.choice([at for at, one in enumerate(left) if one])
        wire, size = wires[number], rng.choice((1, 3, 7, 60, 1000, 30_000, 90_000, 1 << 20))
        transport: HandTransport = wire.transport
        assert not transport.is_closed
        if transport.is_reading_now:
            wire.receive(left[number][:size])
            left[number] = wire.left + left[number][size:]
            # The next read of any connection overwrites the shared buffer.
            shared = world.household.buffers.shared
            shared[:] = bytes((SCRIBBLE,)) * len(shared)
        yield


async def scene(sent: list[Sent], seed: int) -> None:
    """Play one example."""
    rng = random.Random(seed)
    async with logs_broker() as broker:
        # With little memory, buffers grow in steps.
        world = World(broker, ReceiveBudget(rng.choice((1 << 20, 64 << 20))))
        wires = [world.connect() for _ in sent]
        data = [world.frames(number, client, rng) for number, client in enumerate(sent)]
        async with asyncio.timeout(60):
            for _ in deliver(world, wires, data, rng):
                if rng.random() < 0.2:
                    await asyncio.sleep(0)
            await _until_answered(wires, sent)
        for (topic, partition), by_client in world.expected.items():
            found = world.stored(topic, partition)
            assert sorted(found) == sorted(value for one in by_client.values() for value in one)
            for number, ordered in by_client.items():
                prefix = f"{number}/".encode()
                assert [value for value in found if value.startswith(prefix)] == ordered
        for topic in TOPICS:
            for partition in range(PARTITIONS):
                if (topic, partition) not in world.expected:
                    assert world.stored(topic, partition) == []


async def _until_answered(wires: list[Wire], sent: list[Sent]) -> None:
    """Wait for all responses; requests with acks=0 have no response, and end with their writes."""
    for wire, client in zip(wires, sent, strict=True):
        count = 0 if client.acks == 0 else len(client.requests)
        while len(wire.answers()) < count or wire.connection.pending_count:
            assert not wire.transport.is_closed
            await asyncio.sleep(0)
        for body in wire.answers():
            _, response = headers.decode_response(ProduceResponse, client.version, body)
            codes = {
                partition.error_code
                for topic in response.responses
                for partition in topic.partition_responses
            }
            assert codes == {0}


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    # An example that fails takes seconds, and is printed with its seed.
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)
@given(sent=clients, seed=st.integers(0, 2**32))
def test_records_end_in_their_own_partition(sent: list[Sent], seed: int) -> None:
    """Every value is stored once, in its topic and partition, in the order of its connection."""
    asyncio.run(scene(sent, seed))


@pytest.mark.nightly(
    "tests/robustness/test_shared_buffers.py::test_records_end_in_their_own_partition"
)
@settings(max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sent=clients, seed=st.integers(0, 2**32))
def test_records_end_in_their_own_partition_in_many_runs(sent: list[Sent], seed: int) -> None:
    """The same with other examples in each run."""
    asyncio.run(scene(sent, seed))
