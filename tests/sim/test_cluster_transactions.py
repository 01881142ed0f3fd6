"""A transaction over partitions on three brokers: its coordinator sends markers to all leaders."""

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.coordinators.txn.machine import ProducerIdAndEpoch
from ottla.testing.sim.world import World
from ottla.wire.messages import (
    add_partitions_to_txn,
    create_topics,
    end_txn,
    find_coordinator,
    init_producer_id,
    produce,
)
from ottla.wire.records.records import Record, encode_batch

from .cluster import SimCluster

pytestmark = pytest.mark.slow

SEEDS = range(3)
NAME = "tx"
TOPIC = "t"
# Without replication: every partition has one replica, on its own broker.
SETTINGS = {
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


def run(seed: int, scenario: Callable[[SimCluster], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario with three brokers; the seed replays it."""
    print(f"seed {seed}")
    with World(seed) as world:
        world.run(scenario(SimCluster(world, 3, SETTINGS)))


async def prepare(cluster: SimCluster) -> int:
    """Start the brokers, create a partition on each, and return the coordinator of the id."""
    await cluster.start()
    assignments = [
        create_topics.CreatableReplicaAssignment(partition_index=number, broker_ids=[number + 1])
        for number in range(3)
    ]
    topic = create_topics.CreatableTopic(
        name=TOPIC, num_partitions=-1, replication_factor=-1, assignments=assignments
    )
    created = create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
    response = await cluster.ask(1, created, 7, create_topics.CreateTopicsResponse)
    assert response.topics[0].error_code == ErrorCode.NONE
    question = find_coordinator.FindCoordinatorRequest(key=NAME, key_type=1)
    result = await cluster.ask(2, question, 2, find_coordinator.FindCoordinatorResponse)
    assert result.error_code == ErrorCode.NONE
    await cluster.until(lambda: cluster.agrees("__transaction_state", count=3))
    return int(result.node_id)


async def begin(cluster: SimCluster, coordinator: int) -> ProducerIdAndEpoch:
    """Return a producer whose transaction has a record in each partition."""
    init = init_producer_id.InitProducerIdRequest(
        transactional_id=NAME, transaction_timeout_ms=60_000
    )
    while True:
        response = await cluster.ask(coordinator, init, 4, init_producer_id.InitProducerIdResponse)
        if response.error_code == ErrorCode.NONE:
            break
        assert response.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await cluster.clock.sleep(0.01)
    producer = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
    added = await cluster.ask(
        coordinator,
        add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=NAME,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=[
                add_partitions_to_txn.AddPartitionsToTxnTopic(name=TOPIC, partitions=[0, 1, 2])
            ],
        ),
        3,
        add_partitions_to_txn.AddPartitionsToTxnResponse,
    )
    (topic,) = added.results_by_topic_v3_and_below
    assert {item.partition_error_code for item in topic.results_by_partition} == {0}
    for number in range(3):
        await write(cluster, producer, number)
    return producer


async def write(cluster: SimCluster, producer: ProducerIdAndEpoch, number: int) -> None:
    """Produce a record of the transaction to the leader of a partition."""
    records = encode_batch(
        [Record(None, b"x", (), cluster.clock.time_ms())],
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=0,
        transactional=True,
    )
    item = produce.PartitionProduceData(index=number, records=records)
    request = produce.ProduceRequest(
        transactional_id=NAME,
        acks=-1,
        timeout_ms=10_000,
        topic_data=[produce.TopicProduceData(name=TOPIC, partition_data=[item])],
    )
    response = await cluster.ask(number + 1, request, 9, produce.ProduceResponse)
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE


async def end(
    cluster: SimCluster, coordinator: int, producer: ProducerIdAndEpoch, *, commit: bool
) -> None:
    """Decide the transaction."""
    request = end_txn.EndTxnRequest(
        transactional_id=NAME,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        committed=commit,
    )
    response = await cluster.ask(coordinator, request, 3, end_txn.EndTxnResponse)
    assert response.error_code == ErrorCode.NONE


def open_transactions(cluster: SimCluster) -> list[int]:
    """Return the partitions whose last stable offset is not the end of the log."""
    values = []
    for number in range(3):
        node = cluster.nodes.get(number + 1)
        if node is None:
            values.append(number)
            continue
        replica = node.broker.replicas.get(TOPIC, number)
        if replica.log.last_stable_offset(replica.high_watermark) < replica.high_watermark:
            values.append(number)
    return values


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_transaction_ends_on_every_broker(seed: int, commit: bool) -> None:
    """Every partition gets one marker, and its last stable offset moves."""

    async def scenario(cluster: SimCluster) -> None:
        coordinator = await prepare(cluster)
        producer = await begin(cluster, coordinator)
        assert open_transactions(cluster) == [0, 1, 2]
        await end(cluster, coordinator, producer, commit=commit)
        await cluster.until(lambda: open_transactions(cluster) == [])
        for number in range(3):
            replica = cluster.nodes[number + 1].broker.replicas.get(TOPIC, number)
            # The record and its marker.
            assert replica.log.log_end_offset == 2

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_leader_that_is_down_gets_its_marker_later(seed: int) -> None:
    """The coordinator repeats the marker until the leader responds."""

    async def scenario(cluster: SimCluster) -> None:
        coordinator = await prepare(cluster)
        producer = await begin(cluster, coordinator)
        absent = next(item for item in cluster.ids if item != coordinator)
        cluster.kill(absent)
        await end(cluster, coordinator, producer, commit=True)
        await cluster.until(lambda: open_transactions(cluster) == [absent - 1])
        await cluster.clock.sleep(2)
        await cluster.begin(absent)
        await cluster.until(lambda: open_transactions(cluster) == [])
        assert cluster.is_serving(absent)

    run(seed, scenario)
