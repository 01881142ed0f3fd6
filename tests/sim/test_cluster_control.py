"""Several brokers and their controller, in simulated time: registration, elections, fail-over."""

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.testing.sim.world import World
from ottla.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

from .cluster import SESSION_SECONDS, SimCluster

SEEDS = range(3)


def run(
    seed: int, scenario: Callable[[SimCluster], Coroutine[Any, Any, None]], **settings: str
) -> None:
    """Run a scenario with three brokers; the seed replays it."""
    print(f"seed {seed}")
    with World(seed) as world:
        names = {name.replace("_", "."): text for name, text in settings.items()}
        cluster = SimCluster(world, 3, names)
        world.run(scenario(cluster))


@pytest.mark.parametrize("seed", SEEDS)
def test_brokers_register_and_know_one_another(seed: int) -> None:
    """One is the controller, and each lists all of them with their addresses."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.until(
            lambda: all(len(node.broker.image.brokers) == 3 for node in cluster.nodes.values())
        )
        assert cluster.controllers == [1]
        for broker_id in cluster.ids:
            answer = await cluster.ask(
                broker_id, DescribeClusterRequest(), 0, DescribeClusterResponse
            )
            assert answer.controller_id == 1
            hosts = {item.broker_id: item.host for item in answer.brokers}
            assert hosts == {1: "b1", 2: "b2", 3: "b3"}

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_replicas_are_created_on_every_broker(seed: int) -> None:
    """Each broker has its replicas, and leads its share of them, when the response arrives."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        answer = await cluster.create(1, "t", 6, 3)
        assert answer.topics[0].error_code == ErrorCode.NONE
        assert cluster.agrees("t", count=6)
        for broker_id, node in cluster.nodes.items():
            replicas = [node.broker.replicas.get("t", number) for number in range(6)]
            led = [item for item in replicas if item.is_leader]
            assert len(led) == 2
            assert all(
                node.broker.image.topics["t"].partitions[item.partition].leader == broker_id
                for item in led
            )

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_killed_broker_loses_its_leaders_before_its_session_ends(seed: int) -> None:
    """The connection is reset and a new one refused, so the others lead within half a second."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", 6, 3)
        started = cluster.clock.monotonic()
        cluster.kill(3)
        await cluster.until(
            lambda: (
                cluster.agrees("t", count=6)
                and all(
                    item.leader != 3 and 3 not in item.isr
                    for item in cluster.nodes[1].broker.image.topics["t"].partitions
                )
            )
        )
        assert cluster.clock.monotonic() - started < 0.5

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_silent_broker_loses_its_leaders_when_its_session_ends(seed: int) -> None:
    """Its machine is cut off: nothing is refused, so only the session tells."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", 6, 3)
        started = cluster.clock.monotonic()
        cluster.world.network.partition(["b3"], ["b1", "b2", "clients"])
        session: Any = cluster.nodes[3].broker.controller.session
        session.suspend()
        node = cluster.nodes.pop(3)
        await cluster.until(
            lambda: (
                cluster.agrees("t", count=6)
                and all(
                    item.leader != 3
                    for item in cluster.nodes[1].broker.image.topics["t"].partitions
                )
            )
        )
        assert SESSION_SECONDS <= cluster.clock.monotonic() - started < SESSION_SECONDS + 1
        cluster.nodes[3] = node
        cluster.world.network.heal()
        await cluster.until(lambda: cluster.agrees("t", count=6))

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_another_broker_becomes_controller(seed: int) -> None:
    """The new controller elects leaders for the partitions of the old one, in a later epoch."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", 6, 3)
        cluster.kill(1)
        await cluster.until(lambda: len(cluster.controllers) == 1)
        controller = cluster.controllers[0]
        await cluster.until(
            lambda: (
                cluster.agrees("t", count=6)
                and all(
                    node.broker.image.controller_id == controller
                    and node.broker.image.controller_epoch == 2
                    and all(item.leader != 1 for item in node.broker.image.topics["t"].partitions)
                    for node in cluster.nodes.values()
                )
            )
        )
        answer = await cluster.create(controller, "u", 3, 2)
        assert answer.topics[0].error_code == ErrorCode.NONE
        assert cluster.agrees("u", count=3)

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_broker_restarts_faster_than_its_session_ends(seed: int) -> None:
    """It replaces its registration, and the controller fences what it was before."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", 6, 3)
        epochs = [
            item.leader_epoch for item in cluster.nodes[1].broker.image.topics["t"].partitions
        ]
        former = cluster.nodes[3].broker.controller.broker_epoch
        started = cluster.clock.monotonic()
        cluster.kill(3)
        await cluster.begin(3)
        assert cluster.clock.monotonic() - started < SESSION_SECONDS
        assert cluster.nodes[3].broker.controller.broker_epoch > former
        await cluster.until(
            lambda: (
                cluster.agrees("t", count=6)
                and [
                    item.leader_epoch
                    for item in cluster.nodes[1].broker.image.topics["t"].partitions
                ]
                != epochs
            )
        )

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_only_the_controller_creates_topics(seed: int) -> None:
    """Another broker answers NOT_CONTROLLER, and its clients know whom to ask."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        answer = await cluster.create(2, "t", 1, 1)
        assert answer.topics[0].error_code == ErrorCode.NOT_CONTROLLER
        assert (await cluster.create(1, "t", 1, 1)).topics[0].error_code == ErrorCode.NONE

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_metadata_creates_a_topic_through_the_controller(seed: int) -> None:
    """A broker that is not the controller has it create the topic, and then knows it."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
        answer = await cluster.ask(3, request, 12, MetadataResponse)
        (topic,) = answer.topics
        assert topic.error_code == ErrorCode.NONE
        assert len(topic.partitions) == 4
        again = await cluster.ask(2, request, 12, MetadataResponse)
        assert again.topics[0].topic_id == topic.topic_id

    run(seed, scenario, num_partitions="4")


@pytest.mark.parametrize("seed", SEEDS)
def test_find_coordinator_creates_its_topic_through_the_controller(seed: int) -> None:
    """Every broker names the same coordinator."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g", "h", "i"])
        answers = [
            await cluster.ask(broker_id, request, 4, FindCoordinatorResponse)
            for broker_id in (3, 2, 1)
        ]
        found = [
            [(item.error_code, item.node_id, item.host) for item in answer.coordinators]
            for answer in answers
        ]
        assert found[0] == found[1] == found[2]
        assert all(code == ErrorCode.NONE for code, _, _ in found[0])

    run(seed, scenario, offsets_topic_replication_factor="2")
