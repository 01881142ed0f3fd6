"""Clients that continue after power losses, and record what they have read."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.testing.checkers.history import History, ReadRecord
from ottla.testing.sim.client import SimConnection, connect
from ottla.testing.sim.world import World
from ottla.wire.fields import Message
from ottla.wire.messages import (
    alter_replica_log_dirs,
    create_topics,
    delete_topics,
    fetch,
    find_coordinator,
    init_producer_id,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
    produce,
)
from ottla.wire.records import batch
from ottla.wire.records.compression import CODECS
from ottla.wire.records.records import Record, decode_batch, encode_batch, iterate_batches

TOPIC = "t"
RETRIABLE = {
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.OFFSET_NOT_AVAILABLE,
}
# The errors of an idempotent producer when the broker has lost acknowledged records.
FORGOTTEN = {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID}


class Retry(Exception):
    """Raised if the broker is not ready; the client retries."""


def judge(code: int) -> None:
    """Raise Retry for temporary errors, and fail on every other error."""
    error = ErrorCode(code)
    if error in RETRIABLE:
        raise Retry(error.name)
    assert error is ErrorCode.NONE, error.name


@dataclass
class Setting:
    """Data that clients share: the machine, the recorded results, and whether to stop."""

    world: World
    flush_on_ack: bool
    history: History = field(default_factory=History)
    is_over: bool = False

    def __post_init__(self) -> None:
        self.machine = self.world.machine("broker")
        self.net = self.world.network.host("client")
        self.clock = self.machine.clock
        self.rng = self.world.stream("scenario")

    async def connect(self, client_id: str) -> tuple[SimConnection, int]:
        """Return a connection and the broker run to which it belongs; retries until it succeeds."""
        while True:
            try:
                connection = await connect(self.net, "broker", 9092, client_id)
                return connection, self.history.life
            except ConnectionError:
                await self.clock.sleep(0.02)


def new_topic(
    name: str, partitions: int, config: dict[str, str]
) -> create_topics.CreateTopicsRequest:
    """Return the request that creates a topic."""
    configs = [
        create_topics.CreatableTopicConfig(name=key, value=value) for key, value in config.items()
    ]
    topic = create_topics.CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, configs=configs
    )
    return create_topics.CreateTopicsRequest(topics=[topic])


async def list_offset(
    connection: SimConnection, partition: int, timestamp: int, topic: str = TOPIC
) -> int:
    """Return the first (-2) or the next (-1) offset of a partition."""
    requested = list_offsets.ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
    request = list_offsets.ListOffsetsRequest(
        replica_id=-1, topics=[list_offsets.ListOffsetsTopic(name=topic, partitions=[requested])]
    )
    response = await connection.request(request, 6, list_offsets.ListOffsetsResponse)
    result = response.topics[0].partitions[0]
    judge(result.error_code)
    return result.offset


async def fetch_records(
    connection: SimConnection, partition: int, position: int, topic: str = TOPIC
) -> tuple[list[ReadRecord], int]:
    """Return records from an offset on and the next offset; checks the checksum of every batch."""
    requested = fetch.FetchPartition(
        partition=partition, fetch_offset=position, partition_max_bytes=4000
    )
    request = fetch.FetchRequest(
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=100_000,
        topics=[fetch.FetchTopic(topic=topic, partitions=[requested])],
    )
    response = await connection.request(request, 12, fetch.FetchResponse)
    judge(response.error_code)
    result = response.responses[0].partitions[0]
    judge(result.error_code)
    records = []
    data = result.records or b""
    assert not isinstance(data, list)
    for place, header in iterate_batches(data):
        batch.check_crc(data, place, header)
        for record in decode_batch(data, place, header=header):
            if record.offset >= position:
                value = (record.value or b"").split()[0].decode()
                records.append(ReadRecord(record.offset, value, header.leader_epoch))
        position = max(position, header.last_offset + 1)
    return records, position


class Producer:
    """An idempotent producer of one partition with several requests in flight, like librdkafka."""

    def __init__(self, setting: Setting, name: str, partition: int) -> None:
        self._setting = setting
        self._name = f"{name}-{partition}"
        self._partition = partition
        self._rng = setting.world.stream(f"producer {self._name}")
        self._identity: tuple[int, int] | None = None
        self._sequence = 0
        self._count = 0
        self._unanswered: list[tuple[Any, bytes]] = []

    async def run(self) -> None:
        """Produce until the end, and until every request has a response."""
        setting = self._setting
        while not setting.is_over or self._unanswered:
            connection, life = await setting.connect(self._name)
            try:
                while not setting.is_over or self._unanswered:
                    await self._produce(connection, life)
                    await setting.clock.sleep(self._rng.below(20) / 1000)
            except (ConnectionError, Retry):
                await setting.clock.sleep(0.02)
            finally:
                connection.close()

    async def _produce(self, connection: SimConnection, life: int) -> None:
        if self._identity is None:
            await self._identify(connection)
        while len(self._unanswered) < 3 and not self._setting.is_over:
            self._unanswered.append(self._next_batch())
        responses = await asyncio.gather(
            *[self._send(connection, data) for _, data in self._unanswered], return_exceptions=True
        )
        for response in responses:
            if isinstance(response, BaseException):
                raise response
            assert isinstance(response, produce.ProduceResponse)
            answer = response.responses[0].partition_responses[0]
            code = ErrorCode(answer.error_code)
            if code in FORGOTTEN and not self._setting.flush_on_ack:
                # Start again; the outcome of requests without a response stays unknown.
                self._identity = None
                self._unanswered.clear()
                return
            if code is not ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                judge(code)
            attempt, _ = self._unanswered.pop(0)
            attempt.acknowledged(answer.base_offset, life)

    async def _identify(self, connection: SimConnection) -> None:
        request = init_producer_id.InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=60_000
        )
        response = await connection.request(request, 4, init_producer_id.InitProducerIdResponse)
        judge(response.error_code)
        self._identity = response.producer_id, response.producer_epoch
        self._sequence = 0

    def _next_batch(self) -> tuple[Any, bytes]:
        count = 1 + self._rng.below(4)
        values = [f"{self._name}-{self._count + number}" for number in range(count)]
        self._count += count
        assert self._identity is not None
        now = self._setting.clock.time_ms()
        data = encode_batch(
            [
                Record(None, f"{value} {'x' * self._rng.below(300)}".encode(), timestamp=now)
                for value in values
            ],
            compression=CODECS["zstd"] if self._rng.below(3) == 0 else 0,
            producer_id=self._identity[0],
            producer_epoch=self._identity[1],
            base_sequence=self._sequence,
        )
        self._sequence += count
        attempt = self._setting.history.sent(self._name, (TOPIC, self._partition), values)
        return attempt, bytes(data)

    def _send(self, connection: SimConnection, data: bytes) -> "asyncio.Future[Message]":
        item = produce.PartitionProduceData(index=self._partition, records=data)
        topic = produce.TopicProduceData(name=TOPIC, partition_data=[item])
        request = produce.ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])
        return connection.send(request, 9)


class Reader:
    """Reads one partition from the beginning and commits its offset; fails if a committed offset
    decreases.
    """

    def __init__(self, setting: Setting, partition: int) -> None:
        self._setting = setting
        self._partition = partition
        self._position = 0
        self._restarts = 0
        self._last_commit = -1

    async def run(self) -> None:
        """Read until the end of the run and of the partition."""
        setting = self._setting
        is_at_end = False
        while not is_at_end:
            connection, life = await setting.connect(f"reader {self._partition}")
            try:
                await self._find_coordinator(connection)
                await self._check_commit(connection)
                while not is_at_end:
                    was_over = setting.is_over
                    count = await self._read(connection, life)
                    is_at_end = was_over and count == 0
            except (ConnectionError, Retry):
                await setting.clock.sleep(0.02)
            finally:
                connection.close()

    async def _read(self, connection: SimConnection, life: int) -> int:
        name = f"reader {self._partition}.{self._restarts}"
        end = await list_offset(connection, self._partition, -1)
        if end < self._position:
            # Legal only without flush.on.ack; the checker knows which records were read.
            self._restarts += 1
            self._position = 0
            return 1
        records, self._position = await fetch_records(connection, self._partition, self._position)
        self._setting.history.read(name, (TOPIC, self._partition), records, life)
        if records:
            await self._commit(connection)
        return len(records)

    async def _commit(self, connection: SimConnection) -> None:
        position = max(self._position, self._last_commit)
        committed = offset_commit.OffsetCommitRequestPartition(
            partition_index=self._partition, committed_offset=position, committed_metadata=""
        )
        topic = offset_commit.OffsetCommitRequestTopic(name=TOPIC, partitions=[committed])
        request = offset_commit.OffsetCommitRequest(group_id=f"g{self._partition}", topics=[topic])
        response = await connection.request(request, 8, offset_commit.OffsetCommitResponse)
        judge(response.topics[0].partitions[0].error_code)
        self._last_commit = position

    async def _find_coordinator(self, connection: SimConnection) -> None:
        request = find_coordinator.FindCoordinatorRequest(key=f"g{self._partition}")
        response = await connection.request(request, 3, find_coordinator.FindCoordinatorResponse)
        judge(response.error_code)

    async def _check_commit(self, connection: SimConnection) -> None:
        topic = offset_fetch.OffsetFetchRequestTopic(
            name=TOPIC, partition_indexes=[self._partition]
        )
        request = offset_fetch.OffsetFetchRequest(
            group_id=f"g{self._partition}", topics=[topic], require_stable=True
        )
        response = await connection.request(request, 7, offset_fetch.OffsetFetchResponse)
        judge(response.error_code)
        partition = response.topics[0].partitions[0]
        judge(partition.error_code)
        lost = f"committed {self._last_commit}, found {partition.committed_offset}"
        assert partition.committed_offset >= self._last_commit, lost
        self._last_commit = partition.committed_offset


class Recreator:
    """Creates a topic, writes to it, reads it and deletes it, repeatedly with the same name.

    Records of one of these topics must never be read from the next one, whatever a power loss
    restores.
    """

    NAME = "again"

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._rng = setting.world.stream("recreator")
        self._config = {"flush.on.ack": "true"}
        self._topic = b""
        self._deleted: set[bytes] = set()

    async def run(self) -> None:
        """Repeat until the end of the run."""
        turn = 0
        while not self._setting.is_over:
            await self._persist(self._create)
            for number in range(1 + self._rng.below(3)):
                await self._persist(self._write, f"{turn}.{number}")
            await self._persist(self._check, f"{turn}.")
            await self._persist(self._delete)
            turn += 1

    async def _persist(self, step: Callable[..., Coroutine[Any, Any, None]], *rest: str) -> None:
        while True:
            connection, _ = await self._setting.connect("recreator")
            try:
                await step(connection, *rest)
                await self._setting.clock.sleep(self._rng.below(50) / 1000)
                return
            except (ConnectionError, Retry):
                await self._setting.clock.sleep(0.02)
            finally:
                connection.close()

    async def _create(self, connection: SimConnection) -> None:
        request = new_topic(self.NAME, 1, self._config)
        response = await connection.request(request, 7, create_topics.CreateTopicsResponse)
        if response.topics[0].error_code != ErrorCode.TOPIC_ALREADY_EXISTS:
            judge(response.topics[0].error_code)
        topic_id = await self._topic_id(connection)
        if topic_id in self._deleted:
            # The deletion was accepted and is not complete yet.
            raise Retry("the former topic is there")
        self._topic = topic_id

    async def _topic_id(self, connection: SimConnection) -> bytes:
        requested = metadata.MetadataRequestTopic(name=self.NAME)
        request = metadata.MetadataRequest(topics=[requested], allow_auto_topic_creation=False)
        response = await connection.request(request, 12, metadata.MetadataResponse)
        judge(response.topics[0].error_code)
        return response.topics[0].topic_id

    async def _write(self, connection: SimConnection, value: str) -> None:
        data = bytes(encode_batch([Record(None, value.encode(), timestamp=1)]))
        item = produce.PartitionProduceData(index=0, records=data)
        topic = produce.TopicProduceData(name=self.NAME, partition_data=[item])
        request = produce.ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])
        response = await connection.request(request, 9, produce.ProduceResponse)
        judge(response.responses[0].partition_responses[0].error_code)

    async def _check(self, connection: SimConnection, prefix: str) -> None:
        end = await list_offset(connection, 0, -1, self.NAME)
        position, values = 0, []
        while position < end:
            records, position = await fetch_records(connection, 0, position, self.NAME)
            values += [str(record.value) for record in records]
        foreign = [value for value in values if not value.startswith(prefix)]
        assert not foreign, f"{foreign} in the topic of turn {prefix}"
        assert values, f"nothing is left of turn {prefix}"

    async def _delete(self, connection: SimConnection) -> None:
        request = delete_topics.DeleteTopicsRequest(topic_names=[self.NAME], timeout_ms=10_000)
        response = await connection.request(request, 5, delete_topics.DeleteTopicsResponse)
        # An earlier request may have succeeded without a response.
        if response.responses[0].error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            judge(response.responses[0].error_code)
        self._deleted.add(self._topic)


class Mover:
    """Moves partitions between the log directories of the broker, and sometimes cancels a move."""

    def __init__(self, setting: Setting, partitions: int, directories: Sequence[str]) -> None:
        self._setting = setting
        self._rng = setting.world.stream("mover")
        self._partitions = partitions
        self._directories = directories
        self.accepted = 0

    async def run(self) -> None:
        """Send requests until the end of the run; other clients check the effects."""
        while not self._setting.is_over:
            connection, _ = await self._setting.connect("mover")
            try:
                await self._ask(connection)
            except ConnectionError:
                pass
            finally:
                connection.close()
            await self._setting.clock.sleep(self._rng.below(150) / 1000)

    async def _ask(self, connection: SimConnection) -> None:
        partitions = [self._rng.below(self._partitions)]
        topics = [alter_replica_log_dirs.AlterReplicaLogDirTopic(name=TOPIC, partitions=partitions)]
        path = self._directories[self._rng.below(len(self._directories))]
        request = alter_replica_log_dirs.AlterReplicaLogDirsRequest(
            dirs=[alter_replica_log_dirs.AlterReplicaLogDir(path=path, topics=topics)]
        )
        response = await connection.request(
            request, 2, alter_replica_log_dirs.AlterReplicaLogDirsResponse
        )
        code = response.results[0].partitions[0].error_code
        assert code == ErrorCode.REPLICA_NOT_AVAILABLE or code in {*RETRIABLE, ErrorCode.NONE}
        self.accepted += code == ErrorCode.NONE
