"""A transaction over two partitions and a group, and a broker that loses power at any step of it.

Run `python -m tests.sim.one_transaction CHANGE` to lose power at that change of the disk.
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode
from ottla.coordinators.txn.machine import ProducerIdAndEpoch
from ottla.testing.sim.client import SimConnection, connect
from ottla.testing.sim.world import World
from ottla.wire.fields import Message
from ottla.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    create_topics,
    end_txn,
    fetch,
    find_coordinator,
    init_producer_id,
    list_offsets,
    offset_fetch,
    produce,
    txn_offset_commit,
)
from ottla.wire.records.records import Record, decode_batch, encode_batch, iterate_batches
from tests.sim import brokers

M = TypeVar("M", bound=Message)
T = TypeVar("T")

TOPICS = ("a", "b")
GROUP = "g"
NAME = "tx"
TIMEOUT_MS = 2000
SETTINGS = {
    "listeners": "PLAINTEXT://0.0.0.0:9092",
    "allow.insecure.listeners": "true",
    "advertised.listeners": "PLAINTEXT://broker:9092",
    "log.dirs": "/data",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}
_LATER = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.TOPIC_ALREADY_EXISTS,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
}


class Later(Exception):
    """Raised if the broker is not ready; the client retries."""


def check(code: int) -> None:
    """Raise Later for temporary errors, and fail on every other error."""
    error = ErrorCode(code)
    if error in _LATER:
        raise Later(error.name)
    assert error is ErrorCode.NONE, error.name


class Client:
    """Requests of one connection, in the versions of real clients."""

    def __init__(self, connection: SimConnection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    async def ask(self, request: Message, version: int, response: type[M]) -> M:
        """Send a request and return its response."""
        return await self._connection.request(request, version, response)

    async def prepare(self) -> None:
        """Create all topics."""
        for name in TOPICS:
            config = create_topics.CreatableTopicConfig(name="flush.on.ack", value="true")
            topic = create_topics.CreatableTopic(
                name=name, num_partitions=1, replication_factor=1, configs=[config]
            )
            request = create_topics.CreateTopicsRequest(topics=[topic])
            created = await self.ask(request, 5, create_topics.CreateTopicsResponse)
            with contextlib.suppress(Later):
                check(created.topics[0].error_code)
        for kind, key in ((0, GROUP), (1, NAME)):
            question = find_coordinator.FindCoordinatorRequest(key=key, key_type=kind)
            response = await self.ask(question, 2, find_coordinator.FindCoordinatorResponse)
            check(response.error_code)

    async def init(self, timeout_ms: int = TIMEOUT_MS) -> ProducerIdAndEpoch:
        """Return a new producer."""
        request = init_producer_id.InitProducerIdRequest(
            transactional_id=NAME, transaction_timeout_ms=timeout_ms
        )
        response = await self.ask(request, 4, init_producer_id.InitProducerIdResponse)
        check(response.error_code)
        return ProducerIdAndEpoch(response.producer_id, response.producer_epoch)

    async def write(self, producer: ProducerIdAndEpoch, text: str) -> None:
        """Write a record to each topic and an offset, all in one transaction."""
        added = await self.ask(
            add_partitions_to_txn.AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=NAME,
                v3_and_below_producer_id=producer.producer_id,
                v3_and_below_producer_epoch=producer.producer_epoch,
                v3_and_below_topics=[
                    add_partitions_to_txn.AddPartitionsToTxnTopic(name=name, partitions=[0])
                    for name in TOPICS
                ],
            ),
            3,
            add_partitions_to_txn.AddPartitionsToTxnResponse,
        )
        check(added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)
        for name in TOPICS:
            await self._produce(producer, name, text)
        await self._commit_offset(producer, int(text))

    async def _produce(self, producer: ProducerIdAndEpoch, name: str, text: str) -> None:
        records = encode_batch(
            [Record(None, text.encode(), (), self._clock.time_ms())],
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=0,
            transactional=True,
        )
        item = produce.PartitionProduceData(index=0, records=records)
        request = produce.ProduceRequest(
            transactional_id=NAME,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[produce.TopicProduceData(name=name, partition_data=[item])],
        )
        response = await self.ask(request, 9, produce.ProduceResponse)
        check(response.responses[0].partition_responses[0].error_code)

    async def _commit_offset(self, producer: ProducerIdAndEpoch, offset: int) -> None:
        added = await self.ask(
            add_offsets_to_txn.AddOffsetsToTxnRequest(
                transactional_id=NAME,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                group_id=GROUP,
            ),
            3,
            add_offsets_to_txn.AddOffsetsToTxnResponse,
        )
        check(added.error_code)
        item = txn_offset_commit.TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        request = txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=NAME,
            group_id=GROUP,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            topics=[
                txn_offset_commit.TxnOffsetCommitRequestTopic(name=TOPICS[0], partitions=[item])
            ],
        )
        response = await self.ask(request, 3, txn_offset_commit.TxnOffsetCommitResponse)
        check(response.topics[0].partitions[0].error_code)

    async def end(self, producer: ProducerIdAndEpoch, *, is_commit: bool) -> None:
        """Decide the outcome."""
        request = end_txn.EndTxnRequest(
            transactional_id=NAME,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            committed=is_commit,
        )
        check((await self.ask(request, 3, end_txn.EndTxnResponse)).error_code)

    async def is_decided(self) -> bool:
        """Return True if no transaction is open in any partition or group."""
        for name in TOPICS:
            if await self._end_offset(name, 0) != await self._end_offset(name, 1):
                return False
        return True

    async def _end_offset(self, name: str, isolation_level: int) -> int:
        requested = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)
        request = list_offsets.ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation_level,
            topics=[list_offsets.ListOffsetsTopic(name=name, partitions=[requested])],
        )
        response = await self.ask(request, 6, list_offsets.ListOffsetsResponse)
        partition = response.topics[0].partitions[0]
        check(partition.error_code)
        return partition.offset

    async def read(self, name: str) -> list[str]:
        """Return what a read-committed consumer reads from a topic, with the filter of clients."""
        requested = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100_000)
        request = fetch.FetchRequest(
            max_wait_ms=0,
            max_bytes=100_000,
            isolation_level=1,
            topics=[fetch.FetchTopic(topic=name, partitions=[requested])],
        )
        response = await self.ask(request, 11, fetch.FetchResponse)
        check(response.error_code)
        partition = response.responses[0].partitions[0]
        check(partition.error_code)
        starts: dict[int, list[int]] = {}
        for item in partition.aborted_transactions or ():
            starts.setdefault(item.producer_id, []).append(item.first_offset)
        data = partition.records or b""
        assert not isinstance(data, list)
        return committed(bytes(data), starts)

    async def offset(self) -> int:
        """Return the group's offset. Raises Later while a transaction may change it."""
        topic = offset_fetch.OffsetFetchRequestTopic(name=TOPICS[0], partition_indexes=[0])
        request = offset_fetch.OffsetFetchRequest(
            group_id=GROUP, topics=[topic], require_stable=True
        )
        response = await self.ask(request, 7, offset_fetch.OffsetFetchResponse)
        check(response.error_code)
        check(response.topics[0].partitions[0].error_code)
        return response.topics[0].partitions[0].committed_offset


def committed(data: bytes, starts: dict[int, list[int]]) -> list[str]:
    """Filter aborted records: from their first offset to the producer's next marker."""
    aborting: set[int] = set()
    values = []
    for position, header in iterate_batches(data):
        producer_id = header.producer_id
        if header.is_control:
            aborting.discard(producer_id)
            continue
        if any(first <= header.base_offset for first in starts.get(producer_id, ())):
            first = min(starts[producer_id])
            starts[producer_id].remove(first)
            aborting.add(producer_id)
        if producer_id not in aborting:
            values += [(record.value or b"").decode() for record in decode_batch(data, position)]
    return values


@dataclass
class Scenario:
    """One run; `change` counts from the beginning of the first transaction."""

    world: World
    change: int
    is_commit: bool
    second_change: int = 0
    is_answered: bool = False
    losses: int = 0
    seen: list[tuple[list[str], list[str], int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.machine = self.world.machine("broker")
        self.net = self.world.network.host("client")
        self._starts: list[asyncio.Task[None]] = []

    async def _start(self) -> None:
        self._starts.append(await brokers.start(self.machine, SETTINGS))

    @contextlib.asynccontextmanager
    async def _client(self) -> AsyncIterator[Client]:
        connection = await connect(self.net, "broker", 9092, "client")
        try:
            yield Client(connection, self.machine.clock)
        finally:
            connection.close()

    async def run(self) -> None:
        """Run all steps; afterwards `seen` has the contents before and after another transaction."""
        await self._start()
        async with self._client() as client:
            await self._persist(client.prepare)
            producer = await self._persist(client.init)
            self.machine.files.faults.lose_power_at(self.change)
            with contextlib.suppress(ConnectionError):
                await self._first(client, producer)
        while self.machine.is_off.is_set():
            self.losses += 1
            if self.losses == 1 and self.second_change:
                self.machine.files.faults.lose_power_at(self.second_change)
            await self._start()
            # The second power loss happens while the broker recovers from the first one.
            await self.machine.clock.sleep(3.0)
        self.machine.files.faults.lose_power_at(10**9)
        await self._judge()

    async def _first(self, client: Client, producer: ProducerIdAndEpoch) -> None:
        await self._persist(lambda: client.write(producer, "1"))
        await self._persist(lambda: client.end(producer, is_commit=self.is_commit))
        self.is_answered = True
        while not await client.is_decided():
            await self.machine.clock.sleep(0.01)

    async def _judge(self) -> None:
        async with self._client() as client:
            # The last stable offset advances within ten seconds (scenario 19).
            async with asyncio.timeout(10):
                while not await client.is_decided():
                    await self.machine.clock.sleep(0.1)
            await self._note(client)
            producer = await self._persist(client.init)
            await self._persist(lambda: client.write(producer, "2"))
            await self._persist(lambda: client.end(producer, is_commit=True))
            while not await client.is_decided():
                await self.machine.clock.sleep(0.01)
            await self._note(client)

    async def _note(self, client: Client) -> None:
        offset = await self._persist(client.offset)
        self.seen.append((await client.read("a"), await client.read("b"), offset))

    async def _persist(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Retry some work until it succeeds."""
        async with asyncio.timeout(30):
            while True:
                try:
                    return await work()
                except Later:
                    await self.machine.clock.sleep(0.02)


def played(change: int, *, is_commit: bool, second_change: int = 0) -> Scenario:
    """Run the scenario and return it."""
    with World(change) as world:
        scenario = Scenario(world, change, is_commit, second_change)
        world.run(scenario.run())
    return scenario


if __name__ == "__main__":
    found = played(int(sys.argv[1]), is_commit=True)
    sys.stdout.write(f"losses={found.losses} answered={found.is_answered} seen={found.seen}\n")
