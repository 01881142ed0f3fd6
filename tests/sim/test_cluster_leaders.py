"""The leaders and the ISRs of several brokers, in simulated time: shutdown, reassignment,
elections.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.replication.ports import IsrAnswer, IsrMember, IsrProposal
from ottla.server.node import Node
from ottla.testing.sim.world import World
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

from .cluster import SESSION_SECONDS, SimCluster

pytestmark = pytest.mark.slow

SEEDS = range(3)
UNCLEAN = "unclean.leader.election.enable"


def run(
    seed: int, scenario: Callable[[SimCluster], Coroutine[Any, Any, None]], **settings: str
) -> None:
    """Run a scenario with three brokers; the seed replays it."""
    print(f"seed {seed}")
    with World(seed) as world:
        names = {name.replace("_", "."): text for name, text in settings.items()}
        cluster = SimCluster(world, 3, names)
        world.run(scenario(cluster))


async def create_t(cluster: SimCluster, **config: str) -> None:
    """Create the topic `t` with one partition on the brokers 3 and 2."""
    configs = [CreatableTopicConfig(name=name, value=value) for name, value in config.items()]
    assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=[3, 2])
    topic = CreatableTopic(
        name="t",
        num_partitions=-1,
        replication_factor=-1,
        assignments=[assignment],
        configs=configs,
    )
    created = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
    await cluster.ask(1, created, 7, CreateTopicsResponse)


def leader_of_t(cluster: SimCluster) -> int:
    """Return the leader of `t-0` as broker 1 knows it."""
    return cluster.nodes[1].broker.image.topics["t"].partitions[0].leader


def note_stop(node: Node) -> list[str]:
    """Return a list that receives, in order, what happens while a broker stops."""
    happened: list[str] = []
    endpoint = node._listeners.endpoints[0]
    stop_accepting = endpoint.stop_accepting

    async def refuse() -> None:
        if "refuses connections" not in happened:
            happened.append("refuses connections")
        await stop_accepting()

    endpoint.stop_accepting = refuse  # type: ignore[method-assign]
    node.broker.replicas.on_ceasing.append(lambda _: happened.append("no longer leads"))
    return happened


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stopping_broker_gives_up_its_leaders_first(seed: int) -> None:
    """Clients find other leaders before the broker refuses connections."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", 6, 3)
        for broker_id in (3, 1):
            happened = note_stop(cluster.nodes[broker_id])
            await cluster.stop(broker_id)
            assert happened[-1] == "refuses connections"
            assert happened.count("no longer leads") >= 2
            await cluster.until(lambda: cluster.agrees("t", count=6))
            left = set(cluster.nodes)
            for item in next(iter(cluster.nodes.values())).broker.image.topics["t"].partitions:
                assert item.leader in left
                assert set(item.isr) <= left

    run(seed, scenario)


def propose(
    cluster: SimCluster, topic: str, *isr: int, number: int = 0
) -> "asyncio.Task[IsrAnswer]":
    """Have the leader of a partition propose an ISR, and return the controller's response."""
    partition = cluster.nodes[cluster.controllers[0]].broker.image.topics[topic].partitions[number]
    leader = cluster.nodes[partition.leader].broker
    replica = leader.replicas.get(topic, number)

    async def ask() -> IsrAnswer:
        return await leader.isr_changes.propose(
            IsrProposal(
                topic=topic,
                topic_id=replica.topic_id,
                partition=number,
                leader_epoch=replica.leader_epoch,
                partition_epoch=partition.partition_epoch,
                new_isr=[IsrMember(item) for item in isr],
            )
        )

    return cluster.machine(partition.leader).run(ask)


@pytest.mark.parametrize("seed", SEEDS)
def test_leaders_change_their_isr(seed: int) -> None:
    """Leaders on the controller's broker and on other brokers change their ISR, also while the
    controller changes.
    """

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        for leader in cluster.ids:
            others = [item for item in cluster.ids if item != leader]
            topic = CreatableTopic(
                name=f"t{leader}",
                num_partitions=-1,
                replication_factor=-1,
                assignments=[
                    CreatableReplicaAssignment(partition_index=0, broker_ids=[leader, *others])
                ],
            )
            created = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
            await cluster.ask(1, created, 7, CreateTopicsResponse)
            response = await propose(cluster, f"t{leader}", leader, others[0])
            assert (response.error, response.isr) == (ErrorCode.NONE, (leader, others[0]))
            assert response.partition_epoch == 1
        await cluster.until(lambda: cluster.agrees("t3", count=1))
        # The controller dies with the proposal in its queue, or before it arrives.
        asking = propose(cluster, "t3", 3)
        cluster.kill(1)
        response = await asking
        assert response.error in (ErrorCode.NONE, ErrorCode.FENCED_LEADER_EPOCH)
        if response.error is ErrorCode.NONE:
            assert response.isr == (3,)

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_reassignment_completes_when_the_new_replica_is_in_sync(seed: int) -> None:
    """The old replica is deleted, and the new one leads."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=[1, 2])
        topic = CreatableTopic(
            name="t", num_partitions=-1, replication_factor=-1, assignments=[assignment]
        )
        created = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
        await cluster.ask(1, created, 7, CreateTopicsResponse)
        move = ReassignableTopic(
            name="t", partitions=[ReassignablePartition(partition_index=0, replicas=[3, 2])]
        )
        # Until then the new replica cannot copy the log.
        cluster.isolate(3, ["b1", "b2"])
        moving = asyncio.ensure_future(
            cluster.ask(
                1,
                AlterPartitionReassignmentsRequest(topics=[move]),
                1,
                AlterPartitionReassignmentsResponse,
            )
        )
        adding: list[int] = []
        while adding != [3]:
            await cluster.clock.sleep(0.1)
            listed = await cluster.ask(
                1, ListPartitionReassignmentsRequest(), 0, ListPartitionReassignmentsResponse
            )
            adding = [
                replica
                for listed_topic in listed.topics
                for partition in listed_topic.partitions
                for replica in partition.adding_replicas
            ]
        cluster.heal()
        moved = await moving
        assert moved.responses[0].partitions[0].error_code == ErrorCode.NONE
        await cluster.until(
            lambda: all(
                node.broker.image.topics["t"].partitions[0].replicas == (3, 2)
                for node in cluster.nodes.values()
            )
        )
        await cluster.until(
            lambda: cluster.nodes[1].broker.replicas.directories.get("t", 0) is None
        )
        await cluster.until(lambda: cluster.nodes[3].broker.replicas.get("t", 0).is_leader)

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_preferred_leaders_lead_again(seed: int) -> None:
    """The controller elects preferred leaders without a request when their broker is in sync
    again.
    """

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", 3, 3)
        await cluster.stop(3)
        await cluster.until(lambda: cluster.agrees("t", count=3))
        await cluster.begin(3)
        topic = cluster.nodes[1].broker.image.topics["t"]
        (number,) = [item.partition for item in topic.partitions if item.preferred_leader == 3]
        leader = cluster.nodes[topic.partitions[number].leader].broker

        def is_led_by(broker_id: int) -> bool:
            return all(
                node.broker.image.topics["t"].partitions[number].leader == broker_id
                for node in cluster.nodes.values()
            )

        assert not is_led_by(3)
        known = cluster.nodes[1].broker.image.topics["t"].partitions[number]
        if 3 not in known.isr:
            await propose(cluster, "t", *known.isr, 3, number=number)
        assert leader.node_id != 3
        await cluster.until(lambda: is_led_by(3), seconds=120)

    run(seed, scenario, leader_imbalance_check_interval_seconds="20")


@pytest.mark.parametrize("seed", SEEDS)
def test_an_unclean_election_waits_for_the_end_of_the_session(seed: int) -> None:
    """The last in-sync replica could return until then, with every acknowledged record."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await create_t(cluster, **{UNCLEAN: "true"})
        await cluster.stop(2)
        cluster.kill(3)
        await cluster.until(lambda: leader_of_t(cluster) == -1)
        await cluster.begin(2)
        await cluster.clock.sleep(1)
        assert leader_of_t(cluster) == -1
        await cluster.until(lambda: leader_of_t(cluster) == 2, seconds=SESSION_SECONDS)

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_killed_leader_that_restarts_in_time_leads_again(seed: int) -> None:
    """Another replica is live and may be elected, but the last in-sync replica is registered."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await create_t(cluster, **{UNCLEAN: "true"})
        await cluster.stop(2)
        cluster.kill(3)
        await cluster.until(lambda: leader_of_t(cluster) == -1)
        await cluster.begin(2)
        await cluster.begin(3)
        await cluster.until(lambda: leader_of_t(cluster) != -1)
        assert leader_of_t(cluster) == 3

    run(seed, scenario)


@pytest.mark.parametrize("entity", ["topic", "default", "controller"])
@pytest.mark.parametrize("seed", SEEDS)
def test_unclean_elections_are_held_when_they_are_enabled(seed: int, entity: str) -> None:
    """The option elects a leader at once, if it is set for the topic, for all brokers, or for the
    broker of the controller.
    """

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await create_t(cluster)
        await cluster.stop(2)
        cluster.kill(3, expires=True)
        await cluster.until(lambda: leader_of_t(cluster) == -1)
        await cluster.begin(2)
        await cluster.clock.sleep(2 * SESSION_SECONDS)
        assert leader_of_t(cluster) == -1
        kind, name = {"topic": (2, "t"), "default": (4, ""), "controller": (4, "1")}[entity]
        change = AlterableConfig(name=UNCLEAN, config_operation=0, value="true")
        resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[change])
        request = IncrementalAlterConfigsRequest(resources=[resource])
        response = await cluster.ask(1, request, 1, IncrementalAlterConfigsResponse)
        assert response.responses[0].error_code == ErrorCode.NONE
        await cluster.until(lambda: leader_of_t(cluster) == 2, seconds=1)

    run(seed, scenario)
