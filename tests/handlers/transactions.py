"""A broker for the handlers of transactions: real replicas, groups and transactions, no network."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any

from ottla.cluster import names
from ottla.cluster.options.option_tables import BROKER_OPTIONS
from ottla.coordinators.groups.service import GroupCoordinator
from ottla.coordinators.txn.machine import ProducerIdAndEpoch
from ottla.coordinators.txn.service import Environment, TransactionCoordinator
from ottla.replication.partition import Partition
from ottla.server.handlers import (
    add_partitions_to_txn,
    end_txn,
    fetch,
    init_producer_id,
    produce,
)
from ottla.server.produce.admission import Admission
from ottla.server.produce.markers import ReplicaMarkers
from ottla.server.produce.partition_writer import ReplicaWriter
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.handlers.logs import LogsBroker, batch, through_codec, values

STATE = names.TRANSACTION_STATE_TOPIC
OFFSETS = names.GROUP_OFFSETS_TOPIC


class ProducerIds:
    """Producer ids from 1000 upwards."""

    def __init__(self) -> None:
        self.last = 999

    def next_id(self) -> int:
        self.last += 1
        return self.last


class TransactionsBroker(LogsBroker):
    """Broker 1 with topic `t` of two partitions, and coordinators of groups and transactions."""

    def __init__(self, **settings: str) -> None:
        super().__init__()
        written = {name.replace("_", "."): text for name, text in settings.items()}
        self.options = BROKER_OPTIONS.parse(written)
        self.transaction_version = 2
        writer = ReplicaWriter(self.replicas, self.clock)
        self.producer_ids = ProducerIds()  # type: ignore[assignment]
        self.groups = GroupCoordinator(
            writer=writer,
            clock=self.clock,
            rng=self.rng,
            tasks=self.tasks,
            options=lambda: self.options,
            image=lambda: self.image,
        )
        self.markers = ReplicaMarkers(self.replicas, self.groups, self.clock)
        self.transactions = TransactionCoordinator(
            writer=writer,
            markers=self.markers,
            producer_ids=self.producer_ids,
            clock=self.clock,
            tasks=self.tasks,
            now=Environment(
                options=lambda: self.options,
                image=lambda: self.image,
                version=lambda: self.transaction_version,
            ),
        )
        self.admission = Admission(self.transactions, self.tasks, lambda: self.options)
        self.replicas.on_leading.append(self._leading)
        self.create("t", partitions=2)

    def _leading(self, partition: Partition) -> None:
        if partition.topic == OFFSETS:
            self.groups.load(partition.partition, partition.leader_epoch)
        elif partition.topic == STATE:
            self.transactions.load(partition.partition, partition.leader_epoch)

    async def ask(self, handler: ModuleType, request: Any, version: int) -> Any:
        """Send a request through the codec; return the response through it, or None."""
        response = self.begin(handler, request, version)
        if response is not None and hasattr(response, "__await__"):
            response = await response
        return None if response is None else through_codec(response, version)

    # -- steps of a transaction

    async def init(self, transactional_id: str = "tx", **fields: Any) -> Any:
        """Request a producer id and epoch; return the response."""
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=fields.pop("timeout_ms", 60_000),
            **fields,
        )
        return await self.ask(init_producer_id, request, 5)

    async def producer(self, transactional_id: str = "tx") -> ProducerIdAndEpoch:
        """Return a new producer."""
        response = await self.init(transactional_id)
        assert response.error_code == 0
        return ProducerIdAndEpoch(response.producer_id, response.producer_epoch)

    async def add(
        self, producer: ProducerIdAndEpoch, *numbers: int, transactional_id: str = "tx"
    ) -> int:
        """Add partitions of `t`; return the error code of the first."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name="t", partitions=list(numbers))],
        )
        response = await self.ask(add_partitions_to_txn, request, 3)
        result = response.results_by_topic_v3_and_below[0].results_by_partition[0]
        return int(result.partition_error_code)

    async def send(
        self,
        producer: ProducerIdAndEpoch,
        *texts: bytes,
        sequence: int = 0,
        number: int = 0,
        **fields: Any,
    ) -> int:
        """Write one batch in the transaction; return the error code."""
        request = self.produce_request(producer, *texts, sequence=sequence, number=number)
        request.transactional_id = fields.get("transactional_id", "tx")
        response = await self.ask(produce, request, fields.get("version", 10))
        return int(response.responses[0].partition_responses[0].error_code)

    def produce_request(
        self, producer: ProducerIdAndEpoch, *texts: bytes, sequence: int = 0, number: int = 0
    ) -> ProduceRequest:
        """Return a request with one batch in transaction `tx`."""
        records = self._batch(producer, *texts, sequence=sequence)
        item = PartitionProduceData(index=number, records=records)
        return ProduceRequest(
            transactional_id="tx",
            acks=-1,
            topic_data=[TopicProduceData(name="t", partition_data=[item])],
        )

    async def send_many(self, *producers: ProducerIdAndEpoch, version: int) -> list[int]:
        """Write one batch of each producer to a partition each; return the error codes."""
        items = [
            PartitionProduceData(index=number, records=self._batch(producer, b"v", sequence=0))
            for number, producer in enumerate(producers)
        ]
        request = ProduceRequest(
            transactional_id="tx",
            acks=-1,
            topic_data=[TopicProduceData(name="t", partition_data=items)],
        )
        response = await self.ask(produce, request, version)
        return [int(item.error_code) for item in response.responses[0].partition_responses]

    def _batch(self, producer: ProducerIdAndEpoch, *texts: bytes, sequence: int) -> bytearray:
        return batch(
            *texts,
            # Otherwise each marker, which has the broker's time, would roll the segment.
            timestamp=self.clock.time_ms(),
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=sequence,
            transactional=True,
        )

    async def end(
        self,
        producer: ProducerIdAndEpoch,
        *,
        is_commit: bool = True,
        version: int = 3,
        transactional_id: str = "tx",
    ) -> int:
        """End the transaction; return the error code."""
        request = EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            committed=is_commit,
        )
        return int((await self.ask(end_txn, request, version)).error_code)

    async def read(
        self, number: int = 0, *, offset: int = 0, isolation: int = 1, max_bytes: int = 1 << 20
    ) -> Any:
        """Fetch from `t` without a wait; return the partition of the response."""
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=max_bytes,
            isolation_level=isolation,
            topics=[
                FetchTopic(
                    topic="t",
                    partitions=[
                        FetchPartition(
                            partition=number, fetch_offset=offset, partition_max_bytes=1 << 20
                        )
                    ],
                )
            ],
        )
        response = await self.ask(fetch, request, 11)
        return response.responses[0].partitions[0]

    async def committed_values(self, number: int = 0) -> list[bytes | None]:
        """Return the values that a read-committed consumer gets, without markers."""
        return [text for text in values((await self.read(number)).records) if len(text or b"") != 6]


@asynccontextmanager
async def transactions_broker(
    *, is_loaded: bool = True, **settings: str
) -> AsyncIterator[TransactionsBroker]:
    """Run a broker that coordinates every group and transactional id."""
    broker = TransactionsBroker(**settings)
    if is_loaded:
        broker.create(STATE, partitions=3)
        broker.create(OFFSETS, partitions=3)
    try:
        yield broker
    finally:
        broker.transactions.close()
        broker.groups.close()
        broker.replicas.finish_waiting()
        await broker.tasks.close()
