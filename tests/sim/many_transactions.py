"""Read, process, write with clients of transaction.version 1 and 2, on a broker that loses power.

Each worker reads the inputs of one partition, writes each to two topics, and commits its offset,
all in a transaction. Workers crash at any step, restart as another process, and repeat requests
without a response; delayed requests of crashed workers arrive late. The level of
transaction.version changes during the run.

Run `python -m tests.sim.many_transactions SEED`.
"""

import asyncio
import contextlib
import sys
from collections import Counter
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ottla.base.errors import ErrorCode
from ottla.base.rng import SeededRng
from ottla.coordinators.txn.machine import ProducerIdAndEpoch
from ottla.testing.sim.client import SimConnection, connect
from ottla.testing.sim.world import Machine, World
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
    update_features,
)
from ottla.wire.records.records import Record, encode_batch
from tests.sim import brokers
from tests.sim.one_transaction import SETTINGS, Later, check, committed

M = TypeVar("M", bound=Message)

WORKERS = 4
INPUTS = 10
GROUP = "g"
OUTPUTS = ("a", "b")
TIMEOUT_MS = 3000
# The client must start again: it was fenced, or its transaction was aborted by the broker.
_OVER = {
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.TRANSACTION_ABORTABLE,
}


class Over(Exception):
    """Raised if the transaction or the producer can no longer be used."""


class Died(Exception):
    """Raised if the worker crashed."""


def judge(code: int) -> None:
    """Raise Later for temporary errors, Over for errors that end the transaction; else fail."""
    if ErrorCode(code) in _OVER:
        raise Over(ErrorCode(code).name)
    check(code)


class Line:
    """A client's connection to the broker: repeats requests without a response, as clients do."""

    def __init__(self, world: World, machine: Machine, name: str) -> None:
        self._net = world.network.host("client")
        self._clock = machine.clock
        self._name = name
        self._connection: SimConnection | None = None

    async def ask(self, request: Message, version: int, response: type[M]) -> M:
        """Return the response; retries until there is one."""
        while True:
            try:
                if self._connection is None or self._connection.is_lost:
                    self._connection = await connect(self._net, "broker", 9092, self._name)
                return await self._connection.request(request, version, response)
            except ConnectionError:
                await self._clock.sleep(0.05)

    async def wait(self) -> None:
        """Wait before a retry."""
        await self._clock.sleep(0.02)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()


@dataclass
class Worker:
    """The program of one partition, with all its restarts; `version` is its transaction.version."""

    scenario: "Scenario"
    number: int
    version: int
    rng: SeededRng
    lives: int = 0
    fenced: int = 0
    repeated: int = 0
    _sequences: Counter[str] = field(default_factory=Counter)

    @property
    def transactional_id(self) -> str:
        """Return its transactional id, the same after every restart."""
        return f"tx-{self.number}"

    async def run(self) -> None:
        """Run until all inputs are processed."""
        while True:
            self.lives += 1
            line = Line(self.scenario.world, self.scenario.machine, f"w{self.number}.{self.lives}")
            try:
                await self._live(line)
            except Died:
                continue
            except Over:
                self.fenced += 1
                continue
            finally:
                line.close()
            return

    async def _live(self, line: Line) -> None:
        producer = await self._init(line)
        self._sequences.clear()
        while (input_position := await self.scenario.place(line, self.number)) < INPUTS:
            count = min(self.rng.below(3) + 1, INPUTS - input_position)
            texts = [
                f"{self.number}:{number}"
                for number in range(input_position, input_position + count)
            ]
            producer = await self._transaction(line, producer, texts, input_position + count)

    async def _transaction(
        self, line: Line, producer: ProducerIdAndEpoch, texts: Sequence[str], position: int
    ) -> ProducerIdAndEpoch:
        self._may_die("init", line, producer)
        if self.version < 2:
            await self._add(line, producer)
        for text in texts:
            for topic in OUTPUTS:
                await self._write(line, producer, topic, text)
                self._may_die("write", line, producer)
        await self._commit_offset(line, producer, position)
        self._may_die("offsets", line, producer)
        is_commit = self.rng.below(5) > 0
        producer = await self._end(line, producer, is_commit=is_commit)
        self._may_die("answered", line, producer)
        return producer

    def _may_die(self, step: str, line: Line, producer: ProducerIdAndEpoch) -> None:
        if self.rng.below(40):
            return
        self.scenario.deaths[step] += 1
        if self.rng.below(2):
            # Its last words are under way yet.
            self.scenario.spawn(self._late(line, producer, dict(self._sequences)))
        raise Died

    async def _late(
        self, line: Line, producer: ProducerIdAndEpoch, sequences: dict[str, int]
    ) -> None:
        await self.scenario.machine.clock.sleep(self.rng.below(3000) / 1000)
        late = Line(self.scenario.world, self.scenario.machine, "late")
        request = self._produce_request(producer, "a", f"late {self.number}", sequences.get("a", 0))
        response = await late.ask(request, self._produce_version, produce.ProduceResponse)
        code = ErrorCode(response.responses[0].partition_responses[0].error_code)
        self.scenario.late[code.name] += 1
        late.close()

    # -- requests

    async def _init(self, line: Line) -> ProducerIdAndEpoch:
        request = init_producer_id.InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=TIMEOUT_MS
        )
        while True:
            response = await line.ask(request, 4, init_producer_id.InitProducerIdResponse)
            with contextlib.suppress(Later):
                judge(response.error_code)
                return ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
            await line.wait()

    async def _add(self, line: Line, producer: ProducerIdAndEpoch) -> None:
        topics = [
            add_partitions_to_txn.AddPartitionsToTxnTopic(name=name, partitions=[0, 1])
            for name in OUTPUTS
        ]
        request = add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=topics,
        )
        while True:
            response = await line.ask(request, 3, add_partitions_to_txn.AddPartitionsToTxnResponse)
            results = response.results_by_topic_v3_and_below[0].results_by_partition[0]
            with contextlib.suppress(Later):
                judge(results.partition_error_code)
                return
            await line.wait()

    @property
    def _produce_version(self) -> int:
        return 12 if self.version >= 2 else 11

    def _produce_request(
        self, producer: ProducerIdAndEpoch, topic: str, text: str, sequence: int
    ) -> produce.ProduceRequest:
        records = encode_batch(
            [Record(None, text.encode(), (), self.scenario.machine.clock.time_ms())],
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=sequence,
            transactional=True,
        )
        item = produce.PartitionProduceData(index=self.number % 2, records=records)
        return produce.ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[produce.TopicProduceData(name=topic, partition_data=[item])],
        )

    async def _write(self, line: Line, producer: ProducerIdAndEpoch, topic: str, text: str) -> None:
        request = self._produce_request(producer, topic, text, self._sequences[topic])
        while True:
            response = await line.ask(request, self._produce_version, produce.ProduceResponse)
            with contextlib.suppress(Later):
                judge(response.responses[0].partition_responses[0].error_code)
                self._sequences[topic] += 1
                return
            await line.wait()

    async def _commit_offset(self, line: Line, producer: ProducerIdAndEpoch, position: int) -> None:
        if self.version < 2:
            await self._add_group(line, producer)
        item = txn_offset_commit.TxnOffsetCommitRequestPartition(
            partition_index=self.number, committed_offset=position, committed_metadata=""
        )
        request = txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=GROUP,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            topics=[txn_offset_commit.TxnOffsetCommitRequestTopic(name="in", partitions=[item])],
        )
        version = 5 if self.version >= 2 else 4
        while True:
            response = await line.ask(request, version, txn_offset_commit.TxnOffsetCommitResponse)
            with contextlib.suppress(Later):
                judge(response.topics[0].partitions[0].error_code)
                return
            await line.wait()

    async def _add_group(self, line: Line, producer: ProducerIdAndEpoch) -> None:
        request = add_offsets_to_txn.AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            group_id=GROUP,
        )
        while True:
            response = await line.ask(request, 3, add_offsets_to_txn.AddOffsetsToTxnResponse)
            with contextlib.suppress(Later):
                judge(response.error_code)
                return
            await line.wait()

    async def _end(
        self, line: Line, producer: ProducerIdAndEpoch, *, is_commit: bool
    ) -> ProducerIdAndEpoch:
        request = end_txn.EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            committed=is_commit,
        )
        version = 5 if self.version >= 2 else 4
        if self.version >= 2 and not self.rng.below(3):
            # The request is sent again, and may arrive during the next transaction. With clients of
            # older versions it would end that one: the broker cannot distinguish them. This is the
            # reason for KIP-890.
            self.repeated += 1
            self.scenario.spawn(self._repeat(request, version))
        while True:
            response = await line.ask(request, version, end_txn.EndTxnResponse)
            with contextlib.suppress(Later):
                judge(response.error_code)
                if version < 5:
                    return producer
                following = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
                if following != producer:
                    self._sequences.clear()
                return following
            await line.wait()

    async def _repeat(self, request: end_txn.EndTxnRequest, version: int) -> None:
        again = Line(self.scenario.world, self.scenario.machine, "again")
        await again.ask(request, version, end_txn.EndTxnResponse)
        again.close()


@dataclass
class Scenario:
    """One run; power is lost `losses` times, at changes of the disk that the seed determines."""

    world: World
    losses: int
    deaths: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    lost: int = 0

    def __post_init__(self) -> None:
        self.machine = self.world.machine("broker")
        self.rng = self.world.stream("scenario")
        self.workers = [
            Worker(self, number, 1 + number % 2, self.world.stream(f"worker {number}"))
            for number in range(WORKERS)
        ]
        self._tasks: list[asyncio.Task[None]] = []

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a concurrent task."""
        self._tasks.append(asyncio.ensure_future(work))

    async def _start(self) -> None:
        self._tasks.append(await brokers.start(self.machine, SETTINGS))

    async def run(self) -> None:
        """Let all workers finish; afterwards no transaction is open."""
        await self._start()
        line = Line(self.world, self.machine, "admin")
        await self._prepare(line)
        keeper = asyncio.ensure_future(self._keep_going())
        async with asyncio.timeout(120):
            await asyncio.gather(*(worker.run() for worker in self.workers))
        keeper.cancel()
        self.machine.files.faults.lose_power_at(10**9)
        if self.machine.is_off.is_set():
            await self._start()
        # The last stable offset advances within ten seconds, even if a worker crashed in a
        # transaction.
        async with asyncio.timeout(10 + TIMEOUT_MS / 1000):
            while not await self._is_decided(line):
                await line.wait()
        self.seen = {name: await self._read(line, name) for name in OUTPUTS}
        self.places = [await self.place(line, number) for number in range(WORKERS)]

    async def _keep_going(self) -> None:
        while True:
            if self.lost < self.losses:
                self.machine.files.faults.lose_power_at(self.rng.below(150) + 1)
            await self.machine.is_off.wait()
            self.lost += 1
            await self.machine.clock.sleep(self.rng.below(2000) / 1000)
            await self._start()
            if not self.machine.is_off.is_set():
                self.spawn(self._switch())

    async def _switch(self) -> None:
        """Finalize another level; running transactions continue as they began."""
        line = Line(self.world, self.machine, "switch")
        level = self.rng.below(3)
        for kind in (1, 2):
            update = update_features.FeatureUpdateKey(
                feature="transaction.version", max_version_level=level, upgrade_type=kind
            )
            request = update_features.UpdateFeaturesRequest(feature_updates=[update])
            await line.ask(request, 2, update_features.UpdateFeaturesResponse)
        line.close()

    async def _prepare(self, line: Line) -> None:
        for name, partitions in (("in", WORKERS), *((name, 2) for name in OUTPUTS)):
            config = create_topics.CreatableTopicConfig(name="flush.on.ack", value="true")
            topic = create_topics.CreatableTopic(
                name=name, num_partitions=partitions, replication_factor=1, configs=[config]
            )
            request = create_topics.CreateTopicsRequest(topics=[topic])
            created = await line.ask(request, 5, create_topics.CreateTopicsResponse)
            assert created.topics[0].error_code in (0, ErrorCode.TOPIC_ALREADY_EXISTS)
        for kind, key in ((0, GROUP), (1, "tx-0")):
            question = find_coordinator.FindCoordinatorRequest(key=key, key_type=kind)
            while (
                await line.ask(question, 2, find_coordinator.FindCoordinatorResponse)
            ).error_code:
                await line.wait()

    async def place(self, line: Line, number: int) -> int:
        """Return the group's offset; waits for transactions that are not decided."""
        topic = offset_fetch.OffsetFetchRequestTopic(name="in", partition_indexes=[number])
        request = offset_fetch.OffsetFetchRequest(
            group_id=GROUP, topics=[topic], require_stable=True
        )
        while True:
            response = await line.ask(request, 7, offset_fetch.OffsetFetchResponse)
            with contextlib.suppress(Later):
                check(response.error_code)
                check(response.topics[0].partitions[0].error_code)
                return max(response.topics[0].partitions[0].committed_offset, 0)
            await line.wait()

    async def _is_decided(self, line: Line) -> bool:
        return all(
            [
                await self._end_offset(line, name, number, 0)
                == await self._end_offset(line, name, number, 1)
                for name in OUTPUTS
                for number in (0, 1)
            ]
        )

    async def _end_offset(self, line: Line, name: str, number: int, isolation_level: int) -> int:
        requested = list_offsets.ListOffsetsPartition(partition_index=number, timestamp=-1)
        request = list_offsets.ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation_level,
            topics=[list_offsets.ListOffsetsTopic(name=name, partitions=[requested])],
        )
        while True:
            response = await line.ask(request, 6, list_offsets.ListOffsetsResponse)
            with contextlib.suppress(Later):
                check(response.topics[0].partitions[0].error_code)
                return response.topics[0].partitions[0].offset
            await line.wait()

    async def _read(self, line: Line, name: str) -> list[str]:
        """Return what a read-committed consumer reads from a topic, with the filter of clients."""
        values = []
        for number in (0, 1):
            requested = fetch.FetchPartition(
                partition=number, fetch_offset=0, partition_max_bytes=1_000_000
            )
            request = fetch.FetchRequest(
                max_wait_ms=0,
                max_bytes=1_000_000,
                isolation_level=1,
                topics=[fetch.FetchTopic(topic=name, partitions=[requested])],
            )
            response = await line.ask(request, 11, fetch.FetchResponse)
            partition = response.responses[0].partitions[0]
            check(partition.error_code)
            starts: dict[int, list[int]] = {}
            for item in partition.aborted_transactions or ():
                starts.setdefault(item.producer_id, []).append(item.first_offset)
            data = partition.records or b""
            assert not isinstance(data, list)
            values += committed(bytes(data), starts)
        return values


def played(seed: int, *, losses: int = 4) -> Scenario:
    """Run the scenario and return it."""
    with World(seed) as world:
        scenario = Scenario(world, losses)
        world.run(scenario.run())
    return scenario


if __name__ == "__main__":
    found = played(int(sys.argv[1]))
    lives = [worker.lives for worker in found.workers]
    sys.stdout.write(f"lost={found.lost} lives={lives} deaths={found.deaths} late={found.late}\n")
    sys.stdout.write(f"places={found.places} seen={found.seen}\n")
