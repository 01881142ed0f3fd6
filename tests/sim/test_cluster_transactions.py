"""A transaction over partitions on three brokers: its coordinator sends markers to all leaders."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
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
# The time in ms after which the coordinator dies, from before it has a request to after its
# response.
DEATHS_MS = (0, 1, 2, 3, 4, 6, 8, 12, 20, 40)
# The coordinator has this id, but is not ready.
LATER = frozenset({ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.CONCURRENT_TRANSACTIONS})
NAME = "tx"
TOPIC = "t"
# Without replication: every partition has one replica, on its own broker.
SETTINGS = {
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
# The state of transactions survives the death of a broker.
REPLICATED = {
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}


def run(
    seed: int,
    scenario: Callable[[SimCluster], Coroutine[Any, Any, None]],
    settings: Mapping[str, str] = SETTINGS,
) -> None:
    """Run a scenario with three brokers; the seed replays it."""
    print(f"seed {seed}")
    with World(seed) as world:
        world.run(scenario(SimCluster(world, 3, settings)))


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


async def initialize(cluster: SimCluster, coordinator: int) -> ProducerIdAndEpoch:
    """Return the only producer of the id, without a transaction."""
    init = init_producer_id.InitProducerIdRequest(
        transactional_id=NAME, transaction_timeout_ms=60_000
    )
    while True:
        response = await cluster.ask(coordinator, init, 4, init_producer_id.InitProducerIdResponse)
        if response.error_code == ErrorCode.NONE:
            return ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
        assert response.error_code in LATER
        await cluster.clock.sleep(0.01)


async def add(
    cluster: SimCluster, coordinator: int, producer: ProducerIdAndEpoch, *partitions: int
) -> ErrorCode:
    """Add partitions to the transaction; return the error code of the first one."""
    added = await cluster.ask(
        coordinator,
        add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=NAME,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=[
                add_partitions_to_txn.AddPartitionsToTxnTopic(
                    name=TOPIC, partitions=list(partitions)
                )
            ],
        ),
        3,
        add_partitions_to_txn.AddPartitionsToTxnResponse,
    )
    (topic,) = added.results_by_topic_v3_and_below
    (code,) = {item.partition_error_code for item in topic.results_by_partition}
    return ErrorCode(code)


async def begin(cluster: SimCluster, coordinator: int) -> ProducerIdAndEpoch:
    """Return a producer whose transaction has a record in each partition."""
    producer = await initialize(cluster, coordinator)
    assert await add(cluster, coordinator, producer, 0, 1, 2) == ErrorCode.NONE
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


async def decide(
    cluster: SimCluster, coordinator: int, producer: ProducerIdAndEpoch, *, commit: bool
) -> ErrorCode:
    """Decide the transaction; return the error code."""
    request = end_txn.EndTxnRequest(
        transactional_id=NAME,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        committed=commit,
    )
    response = await cluster.ask(coordinator, request, 3, end_txn.EndTxnResponse)
    return ErrorCode(response.error_code)


async def end(
    cluster: SimCluster, coordinator: int, producer: ProducerIdAndEpoch, *, commit: bool
) -> None:
    """Decide the transaction."""
    assert await decide(cluster, coordinator, producer, commit=commit) == ErrorCode.NONE


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


async def abort_after_death(
    cluster: SimCluster, death_ms: int, *, former: bool | None
) -> tuple[ErrorCode | None, ErrorCode]:
    """Kill the coordinator while it adds partitions, and abort at its successor.

    Returns the response to the addition, None if it was lost, and to the abort. `former` is the
    outcome of the transaction before it, if there is one.
    """
    coordinator = await prepare(cluster)
    others = [item - 1 for item in cluster.ids if item != coordinator]
    producer = await initialize(cluster, coordinator)
    if former is not None:
        assert await add(cluster, coordinator, producer, *others) == ErrorCode.NONE
        await end(cluster, coordinator, producer, commit=former)
        await cluster.until(lambda: not state(cluster, coordinator).startswith("Prepare"))
    addition = asyncio.create_task(add(cluster, coordinator, producer, *others))
    await cluster.clock.sleep(death_ms / 1000)
    cluster.kill(coordinator)
    try:
        added = await addition
    except ConnectionError:
        added = None
    successor = await next_coordinator(cluster, coordinator)
    while (code := await decide(cluster, successor, producer, commit=False)) in LATER:
        await cluster.clock.sleep(0.01)
    # The next producer of the id can begin, whatever became of this transaction.
    producer = await initialize(cluster, successor)
    assert await add(cluster, successor, producer, *others) == ErrorCode.NONE
    await end(cluster, successor, producer, commit=True)
    await cluster.until(lambda: state(cluster, successor) == "CompleteCommit")
    return added, code


def state(cluster: SimCluster, coordinator: int) -> str:
    """Return the name of the id's state at its coordinator."""
    transaction = cluster.nodes[coordinator].broker.transactions.find(NAME)
    return getattr(getattr(transaction, "state", None), "display_name", "")


async def next_coordinator(cluster: SimCluster, former: int) -> int:
    """Return the broker that coordinates the id after the death of its coordinator."""
    question = find_coordinator.FindCoordinatorRequest(key=NAME, key_type=1)
    survivor = next(item for item in cluster.ids if item != former)
    while True:
        result = await cluster.ask(survivor, question, 2, find_coordinator.FindCoordinatorResponse)
        if result.error_code == ErrorCode.NONE and result.node_id != former:
            return int(result.node_id)
        await cluster.clock.sleep(0.05)


@pytest.mark.parametrize("former", [None, True, False], ids=["first", "committed", "aborted"])
def test_an_abort_is_refused_only_if_its_transaction_never_began(former: bool | None) -> None:
    """The addition of partitions may be lost with a coordinator, but not after its response.

    The successor then knows only the transaction before it. It refuses to abort that one unless it
    was aborted, as Apache Kafka does: an abort after a commit that succeeded must not succeed.
    """
    refused = ErrorCode.NONE if former is False else ErrorCode.INVALID_TXN_STATE
    results = set()
    for death_ms in DEATHS_MS:

        async def scenario(cluster: SimCluster, death_ms: int = death_ms) -> None:
            results.add(await abort_after_death(cluster, death_ms, former=former))

        run(death_ms, scenario, REPLICATED)
    assert results == {(None, refused), (None, ErrorCode.NONE), (ErrorCode.NONE, ErrorCode.NONE)}
