"""Preparations for commands of a transcript.

Transactions that no script can leave open, and nodes in a ZooKeeper.
"""

import asyncio

from ottla.client.admin.answers import check
from ottla.client.brokers import Brokers
from ottla.cluster.zk.live import LiveSession
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.wire.records.records import Record, encode_batch

# The last versions with which the client itself adds partitions to its transaction (KIP-890).
_PRODUCE, _INIT, _ADD = 11, 4, 3
_TIMESTAMP = 1_700_000_000_000


def perform(action: str, bootstrap: str, zookeeper: str) -> None:
    """Do one action: `open-transaction ID TOPIC`, `hanging-transaction ID TOPIC` or `znodes PATH…`.

    The nodes are created without a user.
    """
    kind, *words = action.split()
    if kind == "znodes":
        asyncio.run(_create(zookeeper, words))
        return
    transactional_id, topic = words
    assert kind in ("open-transaction", "hanging-transaction"), action
    with Brokers(bootstrap) as brokers:
        producer = brokers.retry(lambda: _init(brokers, transactional_id))
        if kind == "open-transaction":
            brokers.retry(lambda: _add(brokers, transactional_id, producer, topic))
        brokers.retry(lambda: _write(brokers, transactional_id, producer, topic))


async def _create(zookeeper: str, paths: list[str]) -> None:
    session = await LiveSession.begin(zookeeper)
    for path in paths:
        await session.ensure(path)
    await session.close()


def _init(brokers: Brokers, transactional_id: str) -> tuple[int, int]:
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=60_000
    )
    response = brokers.ask_transaction_coordinator(
        transactional_id, request, InitProducerIdResponse, max_version=_INIT
    )
    check(response.error_code)
    return response.producer_id, response.producer_epoch


def _add(brokers: Brokers, transactional_id: str, producer: tuple[int, int], topic: str) -> None:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0])],
    )
    response = brokers.ask_transaction_coordinator(
        transactional_id, request, AddPartitionsToTxnResponse, max_version=_ADD
    )
    (row,) = response.results_by_topic_v3_and_below
    check(row.results_by_partition[0].partition_error_code)


def _write(brokers: Brokers, transactional_id: str, producer: tuple[int, int], topic: str) -> None:
    data = encode_batch(
        [Record(None, b"half")],
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=0,
        transactional=True,
        timestamp=_TIMESTAMP,
    )
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(
                name=topic, partition_data=[PartitionProduceData(index=0, records=data)]
            )
        ],
    )
    leader = brokers.leaders([(topic, 0)])[topic, 0]
    response = brokers.ask_node(leader, request, ProduceResponse, max_version=_PRODUCE)
    check(response.responses[0].partition_responses[0].error_code)
