"""Several brokers and their controller, in simulated time: registration, fail-over, topics."""

import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.rng import SeededRng
from ottla.cluster.image import ReplicaAssignment
from ottla.cluster.zk.port import SessionLost
from ottla.cluster.znodes import TopicNode, TopicsNode
from ottla.controller.planning.notices import Fence, MetadataUpdate
from ottla.controller.planning.requests import TopicRequest
from ottla.controller.state import StaleController, load_topics
from ottla.server.brokers.channels import Channels
from ottla.server.brokers.process_watch import Registration
from ottla.server.brokers.remote import RemoteBroker, UpdatesUnderWay
from ottla.server.current import Contacts
from ottla.testing.sim.world import World
from ottla.wire.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ottla.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

from .cluster import HOST, PORT, SESSION_SECONDS, SimCluster

pytestmark = pytest.mark.slow

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
    """One broker is the controller, and the metadata of each broker lists all brokers with their
    addresses.
    """

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.until(
            lambda: all(len(node.broker.image.brokers) == 3 for node in cluster.nodes.values())
        )
        assert cluster.controllers == [1]
        for broker_id in cluster.ids:
            response = await cluster.ask(
                broker_id, DescribeClusterRequest(), 0, DescribeClusterResponse
            )
            assert response.controller_id == 1
            hosts = {item.broker_id: item.host for item in response.brokers}
            assert hosts == {1: "b1", 2: "b2", 3: "b3"}

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_replicas_are_created_on_every_broker(seed: int) -> None:
    """Each broker has its replicas, and leads its share of them, when the response arrives."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        response = await cluster.create(1, "t", 6, 3)
        assert response.topics[0].error_code == ErrorCode.NONE
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
    """The controller's connection to it is reset and a new one is refused, so other brokers lead
    within half a second.
    """

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
    """A machine that is cut off refuses no connection, so the controller waits for the end of the
    session.
    """

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", 6, 3)
        started = cluster.clock.monotonic()
        cluster.isolate(3)
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
        cluster.heal()
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
        response = await cluster.create(controller, "u", 3, 2)
        assert response.topics[0].error_code == ErrorCode.NONE
        assert cluster.agrees("u", count=3)

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_broker_restarts_faster_than_its_session_ends(seed: int) -> None:
    """The new process replaces the registration, and the controller fences the former process."""

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
def test_a_broker_that_returns_answers_when_it_knows_the_cluster(seed: int) -> None:
    """It accepts connections before the controller informs it, but never says that there is no
    broker, or that a topic does not exist: librdkafka would remove all brokers, and the topic.
    """

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", 3, 3)
        cluster.kill(3, expires=True)
        await cluster.until(lambda: 3 not in cluster.nodes[1].broker.image.brokers)
        starting = cluster.begin(3)
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=False
        )
        answers: list[MetadataResponse] = []
        while not answers or not starting.done():
            with contextlib.suppress(OSError):
                answers.append(await cluster.ask(3, request, 9, MetadataResponse))
            await cluster.clock.sleep(0.001)
        for answer in answers:
            assert [broker.node_id for broker in answer.brokers] == [1, 2, 3]
            assert [len(topic.partitions) for topic in answer.topics] == [3]
            assert answer.controller_id in (1, 2)

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_only_the_controller_creates_topics(seed: int) -> None:
    """Another broker returns NOT_CONTROLLER, and its metadata names the controller."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        response = await cluster.create(2, "t", 1, 1)
        assert response.topics[0].error_code == ErrorCode.NOT_CONTROLLER
        assert (await cluster.create(1, "t", 1, 1)).topics[0].error_code == ErrorCode.NONE

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_metadata_creates_a_topic_through_the_controller(seed: int) -> None:
    """A broker that is not the controller has it create the topic, and then knows it."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
        response = await cluster.ask(3, request, 12, MetadataResponse)
        (topic,) = response.topics
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
        responses = [
            await cluster.ask(broker_id, request, 4, FindCoordinatorResponse)
            for broker_id in (3, 2, 1)
        ]
        values = [
            [(item.error_code, item.node_id, item.host) for item in response.coordinators]
            for response in responses
        ]
        assert values[0] == values[1] == values[2]
        assert all(code == ErrorCode.NONE for code, _, _ in values[0])

    run(seed, scenario, offsets_topic_replication_factor="2")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_controller_that_was_replaced_is_fenced(seed: int) -> None:
    """The old controller is cut off from the tree only: brokers reject its notices, and the tree
    rejects its writes.
    """

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", 3, 3)
        old = cluster.nodes[1].broker.controller
        term = old._role.term
        assert term is not None
        session: Any = old.session
        # The listeners learn of it later, as if the old controller were paused during that time.
        session._session._listeners.clear()
        cluster.coordination.expire("b1")
        await cluster.until(lambda: cluster.nodes[2].broker.image.controller_epoch == 2)
        fence = Fence(1, 1, cluster.nodes[2].broker.controller.broker_epoch)
        net, secret = cluster.machine(1).net, cluster.nodes[1].broker.secret
        channels = Channels(net, SeededRng(seed), 1, secret)
        channel = channels.open("b2", PORT, purpose="controller")
        registration = Registration(1, 0, channel.host, channel.port)
        contacts, under_way = Contacts(lambda: None), UpdatesUnderWay()
        port = RemoteBroker(net, cluster.clock, channel, registration, contacts, under_way)
        with pytest.raises(ApiError) as refused:
            await port.update_metadata(fence, MetadataUpdate({}, (), ()))
        assert refused.value.code is ErrorCode.STALE_CONTROLLER_EPOCH
        port.close()
        with pytest.raises((SessionLost, StaleController)):
            await term.topics.create_topics([TopicRequest("u", 1, 1)], False)
        assert cluster.nodes[2].broker.image.topic("u") is None

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_topic_is_deleted_while_a_broker_is_absent(seed: int) -> None:
    """The name is free at once; the broker that returns does not serve its log of the old topic."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", 2, 3)
        cluster.kill(3, expires=True)
        await cluster.until(lambda: len(cluster.nodes[1].broker.image.brokers) == 2)
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=10_000)
        response = await cluster.ask(1, request, 6, DeleteTopicsResponse)
        assert response.responses[0].error_code == ErrorCode.NONE
        assert all("t" not in node.broker.image.topics for node in cluster.nodes.values())
        again = await cluster.create(1, "t", 1, 1)
        assert again.topics[0].error_code == ErrorCode.NONE
        await cluster.begin(3)
        await cluster.until(
            lambda: cluster.nodes[3].broker.replicas.directories.get("t", 0) is None
        )

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_any_broker_changes_settings(seed: int) -> None:
    """Any broker can change settings without the controller, and every broker applies them."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", 3, 3)
        for value, broker_id in (("1000", 2), ("2000", 1), ("3000", 3)):
            change = AlterableConfig(name="retention.ms", config_operation=0, value=value)
            resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=[change])
            response = await cluster.ask(
                broker_id,
                IncrementalAlterConfigsRequest(resources=[resource]),
                1,
                IncrementalAlterConfigsResponse,
            )
            assert response.responses[0].error_code == ErrorCode.NONE
            await cluster.until(
                lambda value=value: all(  # type: ignore[misc]
                    node.broker.replicas.get("t", 0).log.config.retention_ms == int(value)
                    for node in cluster.nodes.values()
                )
            )

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_killed_controller_is_replaced_before_its_session_ends(seed: int) -> None:
    """The other brokers notice that its process has ended, and one takes the role in a later
    epoch.
    """

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", 6, 3)
        before = cluster.nodes[2].broker.image.topics["t"].partitions
        started = cluster.clock.monotonic()
        cluster.kill(1)
        await cluster.until(
            lambda: (
                len(cluster.controllers) == 1
                and cluster.agrees("t", count=6)
                and all(
                    item.leader != 1
                    for node in cluster.nodes.values()
                    for item in node.broker.image.topics["t"].partitions
                )
            )
        )
        assert cluster.clock.monotonic() - started < 0.5
        # Leaders that are alive stay, also those on the new controller, and so do their followers.
        for known, item in zip(
            before, cluster.nodes[2].broker.image.topics["t"].partitions, strict=True
        ):
            assert item.leader == known.leader or known.leader == 1
            assert set(item.isr) == {2, 3}
        # The end of its session changes nothing.
        controllers = cluster.controllers
        await cluster.clock.sleep(2 * SESSION_SECONDS)
        assert cluster.controllers == controllers

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_dead_controller_is_not_named_to_clients(seed: int) -> None:
    """Metadata waits for the successor, and DescribeCluster names no controller until then."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", 1, 3)
        await cluster.until(lambda: cluster.nodes[3].broker.image.controller_id == 1)
        cluster.kill(1)
        started = cluster.clock.monotonic()
        await cluster.until(lambda: cluster.nodes[3].broker.current.controller_id == -1)
        described = await cluster.ask(3, DescribeClusterRequest(), 0, DescribeClusterResponse)
        response = await cluster.ask(3, MetadataRequest(topics=[]), 12, MetadataResponse)
        assert cluster.clock.monotonic() - started < 0.5
        await cluster.until(lambda: cluster.controllers)
        assert [response.controller_id] == cluster.controllers
        assert described.controller_id in (-1, response.controller_id)

    run(seed, scenario)


def test_metadata_names_no_controller_if_none_takes_the_role() -> None:
    """No broker can become controller without the ensemble; the metadata response waits one second
    at most.
    """

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.until(lambda: cluster.nodes[3].broker.image.controller_id == 1)
        cluster.world.network.partition(["b2", "b3"], [HOST])
        cluster.coordination.changed()
        cluster.kill(1)
        for waits in (1.0, 0.0):
            started = cluster.clock.monotonic()
            response = await cluster.ask(3, MetadataRequest(topics=[]), 12, MetadataResponse)
            assert response.controller_id == -1
            assert cluster.clock.monotonic() - started == pytest.approx(waits, abs=0.1)
        cluster.heal()
        await cluster.until(lambda: len(cluster.controllers) == 1)
        response = await cluster.ask(3, MetadataRequest(topics=[]), 12, MetadataResponse)
        assert [response.controller_id] == cluster.controllers

    run(0, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_two_brokers_that_refuse_each_other_do_not_replace_each_other_repeatedly(seed: int) -> None:
    """A controller that lost the role although it lives does not take it back at once."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", 3, 3)
        listeners = cluster.world.network.listeners
        address = ("b1", PORT)
        hidden = listeners.pop(address)
        for other in ("b2", "b3"):
            cluster.world.network.reset("b1", other)
        await cluster.until(lambda: cluster.nodes[2].broker.image.controller_epoch == 2)
        await cluster.clock.sleep(30)
        assert cluster.nodes[2].broker.image.controller_epoch == 2
        assert len(cluster.controllers) == 1
        # The broker is reachable again, in the same registration.
        listeners[address] = hidden
        await cluster.until(
            lambda: (
                len(cluster.nodes) == 3
                and all(
                    len(node.broker.image.brokers) == 3 and node.broker.image.controller_epoch == 2
                    for node in cluster.nodes.values()
                )
            )
        )

    run(seed, scenario)


def test_a_new_controller_reads_many_partitions_at_a_time() -> None:
    """A round trip for each partition would delay every fail-over by minutes in a large cluster."""

    async def scenario(cluster: SimCluster) -> None:
        session = cluster.coordination.access("b1").session()
        assignment = {number: ReplicaAssignment((1, 2)) for number in range(1000)}
        await session.ensure(TopicsNode.PATH)
        await session.create(TopicNode.path("t"), TopicNode.encode(bytes(16), assignment))
        began = cluster.clock.monotonic()
        stored = await load_topics(session, {})
        assert len(stored.topics["t"].partitions) == 1000
        # One after the other took two seconds.
        assert cluster.clock.monotonic() - began < 0.5

    run(0, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_only_the_controller_deletes_topics(seed: int) -> None:
    """Another broker does not report a topic as unknown, because its metadata may not contain it
    yet.
    """

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", 1, 1)
        for name in ("t", "unknown"):
            request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=1000)
            response = await cluster.ask(2, request, 6, DeleteTopicsResponse)
            assert response.responses[0].error_code == ErrorCode.NOT_CONTROLLER

    run(seed, scenario)
