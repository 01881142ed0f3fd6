"""A controller on an in-memory tree: election, topics, deletion, sessions and fencing."""

import asyncio
import gc
from typing import Any

import pytest

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.cluster.zk.embedded import EmbeddedSession
from ottla.cluster.znodes import PartitionsNode, PartitionStateNode
from ottla.controller import state
from ottla.controller.loop import Controller, Event, _refuse
from ottla.controller.planning import creation
from ottla.controller.planning.requests import (
    Alteration,
    ConfigChange,
    ConfigRequest,
    PartitionsRequest,
    TopicRequest,
)
from ottla.controller.term import ControllerTerm
from ottla.controller.topic_creation import TopicCreation
from tests.unit.controller.conftest import World


def session_of(controller: Controller) -> EmbeddedSession:
    """Return the controller's session, which a test can suspend or expire."""
    assert isinstance(controller.session, EmbeddedSession)
    return controller.session


async def code_of(world: World, name: str) -> ErrorCode | None:
    """Create a topic and return the error code, or None if it succeeded."""
    (result,) = await world.controllers[1].create_topics([TopicRequest(name, 1, 1)])
    return None if result.error is None else result.error.code


async def test_controller_starts_although_a_registered_broker_is_dead(world: World) -> None:
    """All brokers were killed, and the session of another one has not ended yet."""
    await world.start(1)
    await world.start(2)
    # Its session and its registration stay.
    await world.controllers[2].stop()
    world.port(2).is_open.clear()
    await world.kill(1)
    async with asyncio.timeout(5):
        controller = await world.start(1)
    assert controller.is_active
    world.port(2).is_open.set()


# -- one broker -----------------------------------------------------------------------------------


async def test_one_broker_is_a_cluster_with_a_controller(world: World) -> None:
    """After the start the broker's image contains the broker and its controller."""
    controller = await world.start()
    image = world.port(1).image
    assert controller.is_active
    assert (image.controller_id, image.controller_epoch) == (1, 1)
    assert image.brokers[1].epoch == controller.broker_epoch > 0


async def test_a_created_topic_has_leaders_before_the_response(world: World) -> None:
    """The broker receives leaders and metadata before the request completes."""
    controller = await world.start()
    world.port(1).calls.clear()
    (result,) = await controller.create_topics([TopicRequest("t", 2, 1)])
    assert (result.error, result.partitions, result.replication_factor) == (None, 2, 1)
    assert world.port(1).calls == [("leaders", ["t-0@0", "t-1@0"]), ("metadata", ["t"])]
    topic = world.port(1).image.topics["t"]
    assert topic.topic_id == result.topic_id
    assert [partition.leader for partition in topic.partitions] == [1, 1]


async def test_topics_of_one_request_succeed_or_fail_independently(world: World) -> None:
    """An invalid topic does not prevent the creation of the others."""
    controller = await world.start()
    requests = [TopicRequest("a", 1, 1), TopicRequest("b", 0, 1), TopicRequest("c", 1, 1)]
    results = await controller.create_topics(requests)
    assert [result.error is None for result in results] == [True, False, True]
    assert set(world.port(1).image.topics) == {"a", "c"}


async def test_validating_creates_nothing(world: World) -> None:
    """The result is the same as of a creation; the tree and the brokers do not change."""
    controller = await world.start()
    world.port(1).calls.clear()
    (result,) = await controller.create_topics([TopicRequest("t", 3, 1)], validate_only=True)
    assert (result.error, result.partitions) == (None, 3)
    assert world.port(1).calls == []
    assert await code_of(world, "t") is None


async def test_delete_topic_then_create_it_again(world: World) -> None:
    """When the response to a deletion arrives, logs and nodes are gone and the name is free."""
    controller = await world.start()
    await code_of(world, "t")
    former = world.port(1).image.topics["t"].topic_id
    world.port(1).calls.clear()
    (result,) = await controller.delete_topics(["t"])
    assert result.error is None
    assert world.port(1).calls == [("metadata", []), ("delete", [("t", 0)])]
    assert world.port(1).image.topics == {}
    assert await controller.session.children("/brokers/topics") == []
    assert await controller.session.children("/config/topics") == []
    assert await controller.session.children("/admin/delete_topics") == []
    assert await code_of(world, "t") is None
    assert world.port(1).image.topics["t"].topic_id != former


async def test_deleting_an_unknown_topic_fails_only_for_that_topic(world: World) -> None:
    """The other topics of the request are deleted."""
    controller = await world.start()
    await code_of(world, "t")
    results = await controller.delete_topics(["nope", "t"])
    assert results[0].error is not None
    assert results[0].error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert results[1].error is None


async def test_deletion_can_be_turned_off(world: World) -> None:
    """If delete.topic.enable is false, the deletion of a topic fails with TOPIC_DELETION_DISABLED."""
    world.settings["delete.topic.enable"] = "false"
    controller = await world.start()
    await code_of(world, "t")
    (result,) = await controller.delete_topics(["t"])
    assert result.error is not None
    assert result.error.code is ErrorCode.TOPIC_DELETION_DISABLED
    assert "t" in world.port(1).image.topics


async def test_a_name_is_in_use_until_its_deletion_is_complete(world: World) -> None:
    """While logs of the old topic exist, creating the topic fails immediately."""
    controller = await world.start()
    await code_of(world, "t")
    world.port(1).undeletable = {("t", 0)}
    (result,) = await controller.delete_topics(["t"])
    assert result.error is None
    assert world.port(1).image.topic("t") is None
    assert await code_of(world, "t") is ErrorCode.TOPIC_ALREADY_EXISTS


async def test_partitions_can_be_added(world: World) -> None:
    """New partitions have leaders before the response; the old partitions are unchanged."""
    controller = await world.start()
    await code_of(world, "t")
    world.port(1).calls.clear()
    results = await controller.create_partitions(
        [PartitionsRequest("t", 3), PartitionsRequest("nope", 3)]
    )
    assert results[0].error is None
    assert results[1].error is not None
    assert results[1].error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert world.port(1).calls == [("leaders", ["t-1@0", "t-2@0"]), ("metadata", ["t"])]


async def test_ensuring_a_topic_creates_it_once(world: World) -> None:
    """Several clients can request the same missing topic at the same time."""
    controller = await world.start()
    await asyncio.gather(*(controller.ensure_topic("t", 2) for _ in range(5)))
    created = [call for call in world.port(1).calls if call[0] == "leaders"]
    assert created == [("leaders", ["t-0@0", "t-1@0"])]


async def test_ensuring_an_internal_topic_uses_the_brokers_options(world: World) -> None:
    """__consumer_offsets has 50 partitions and is compacted."""
    controller = await world.start()
    await controller.ensure_topic("__consumer_offsets")
    assert len(world.port(1).image.topics["__consumer_offsets"].partitions) == 50
    data, _ = await controller.session.get("/config/topics/__consumer_offsets")
    assert b'"cleanup.policy":"compact"' in data


async def test_ensuring_an_invalid_topic_raises_the_reason(world: World) -> None:
    """An invalid name raises INVALID_TOPIC_EXCEPTION."""
    controller = await world.start()
    with pytest.raises(ApiError) as caught:
        await controller.ensure_topic("not allowed")
    assert caught.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


# -- timeouts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("timeout_ms", [0, -1])
async def test_a_request_without_timeout_does_nothing(world: World, timeout_ms: int) -> None:
    """A request whose timeout is not positive fails with REQUEST_TIMED_OUT, as in Kafka 4."""
    controller = await world.start()
    with pytest.raises(ApiError) as caught:
        await controller.create_topics([TopicRequest("t", 1, 1)], timeout_ms=timeout_ms)
    assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT
    assert controller.image.topics == {}


async def test_a_topic_is_created_even_if_a_slow_broker_makes_the_request_time_out(
    world: World,
) -> None:
    """The creation continues after the timeout: the topic exists when the broker has responded."""
    controller = await world.start()
    world.port(1).is_open.clear()
    with pytest.raises(ApiError) as caught:
        await controller.create_topics([TopicRequest("t", 1, 1)], timeout_ms=1)
    assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT
    world.port(1).is_open.set()
    await controller.ensure_topic("t")
    assert "t" in world.port(1).image.topics


# -- restarts -------------------------------------------------------------------------------------


async def test_a_restarted_broker_leads_again_under_the_next_epoch(world: World) -> None:
    """Partition states survive in the tree; each life of the broker has its own leader epoch."""
    controller = await world.start()
    await controller.create_topics([TopicRequest("t", 2, 1)])
    await world.kill(1)
    world.port(1).calls.clear()
    again = await world.start()
    assert world.port(1).calls[0] == ("leaders", ["t-0@1", "t-1@1"])
    assert again.image.controller_epoch == 2
    assert [item.leader for item in again.image.topics["t"].partitions] == [1, 1]


async def test_an_interrupted_deletion_is_resumed(world: World) -> None:
    """The deletion request stays in the tree until the last node is removed."""
    controller = await world.start()
    await code_of(world, "t")
    world.port(1).is_open.clear()
    with pytest.raises(ApiError):
        await controller.delete_topics(["t"], timeout_ms=1)
    await world.kill(1)
    world.port(1).is_open.set()
    world.port(1).calls.clear()
    again = await world.start()
    await world.until(lambda: ("delete", [("t", 0)]) in world.port(1).calls)
    await again.ensure_topic("t")
    assert await again.session.children("/admin/delete_topics") == []


async def test_an_interrupted_removal_is_finished(world: World) -> None:
    """A deletion request for a topic that no longer exists is removed."""
    controller = await world.start()
    await controller.session.create("/admin/delete_topics/t")
    await world.kill(1)
    again = await world.start()
    assert await again.session.children("/admin/delete_topics") == []


async def test_a_partition_without_state_gets_its_leader_at_startup(world: World) -> None:
    """A topic that another tool has created without partition states gets leaders."""
    controller = await world.start()
    session = world.tree.session()
    await world.kill(1)
    await session.create(
        "/brokers/topics/t", b'{"version":2,"partitions":{"0":[1]},"adding_replicas":{}}'
    )
    await session.create("/brokers/topics/t/partitions")
    controller = await world.start()
    assert controller.image.topics["t"].partitions[0].leader == 1
    data, _ = await session.get("/brokers/topics/t/partitions/0/state")
    assert b'"leader":1' in data


# -- several brokers ------------------------------------------------------------------------------


async def test_a_second_broker_with_the_same_id_does_not_start(world: World) -> None:
    """The error contains the node id and says how to solve the conflict."""
    await world.start()
    with pytest.raises(ConfigError, match=r"node\.id 1 is registered already"):
        await world.controller().start()


async def test_the_first_broker_is_the_controller(world: World) -> None:
    """A broker that joins later receives the whole image from the controller."""
    first = await world.start(1)
    await code_of(world, "t")
    second = await world.start(2)
    await world.until(lambda: "t" in world.port(2).image.topics)
    assert (first.is_active, second.is_active) == (True, False)
    assert second.controller_id == 1
    assert set(world.port(1).image.brokers) == {1, 2}


async def test_a_broker_that_is_not_the_controller_rejects_requests(world: World) -> None:
    """The error code is NOT_CONTROLLER, so that the client asks the controller."""
    await world.start(1)
    second = await world.start(2)
    with pytest.raises(ApiError) as caught:
        await second.create_topics([TopicRequest("t", 1, 1)])
    assert caught.value.code is ErrorCode.NOT_CONTROLLER


async def test_another_broker_becomes_controller_when_the_controller_dies(world: World) -> None:
    """The controller epoch grows, and partitions of the dead broker get another leader."""
    first = await world.start(1)
    second = await world.start(2)
    await world.until(lambda: 2 in first.image.brokers)
    await first.create_topics([TopicRequest("t", assignments=((0, (1, 2)),))])
    await world.kill(1)
    await world.until(lambda: second.is_active and second.image.controller_epoch == 2)
    partition = second.image.topics["t"].partitions[0]
    assert (partition.leader, partition.isr, partition.leader_epoch) == (2, (2,), 1)


async def test_partitions_of_a_dead_broker_get_another_leader_until_it_returns(
    world: World,
) -> None:
    """The rest of the ISR leads; a partition whose last in-sync replica died waits for its broker."""
    first = await world.start(1)
    await world.start(2)
    await world.until(lambda: 2 in first.image.brokers)
    assignments = ((0, (2, 1)), (1, (2,)))
    await first.create_topics([TopicRequest("t", assignments=assignments[:1])])
    await first.create_topics([TopicRequest("alone", assignments=((0, (2,)),))])
    await world.kill(2)
    await world.until(lambda: 2 not in first.image.brokers)
    assert first.image.topics["t"].partitions[0].leader == 1
    assert first.image.topics["alone"].partitions[0].leader == -1
    await world.start(2)
    await world.until(lambda: first.image.topics["alone"].partitions[0].leader == 2)


async def test_the_name_of_a_deleted_topic_is_free_although_a_broker_is_down(world: World) -> None:
    """The broker that returns receives the new topic only; its log has the id of no topic."""
    first = await world.start(1)
    await world.start(2)
    await world.until(lambda: 2 in first.image.brokers)
    await first.create_topics([TopicRequest("t", assignments=((0, (1, 2)),))])
    await world.kill(2)
    await world.until(lambda: 2 not in first.image.brokers)
    former = first.image.topics["t"].topic_id
    (result,) = await first.delete_topics(["t"])
    assert result.error is None
    assert await first.session.children("/brokers/topics") == []
    assert await first.session.children("/admin/delete_topics") == []
    await first.ensure_topic("t")
    assert first.image.topics["t"].topic_id != former
    world.port(2).calls.clear()
    await world.start(2)
    await world.until(lambda: 2 in first.image.brokers and bool(world.port(2).calls))
    assert ("delete", [("t", 0)]) not in world.port(2).calls


# -- sessions and fences --------------------------------------------------------------------------


async def test_a_suspended_controller_does_not_act(world: World) -> None:
    """Another broker may be the controller; when the session resumes, the tree is read again."""
    controller = await world.start()
    await code_of(world, "t")
    session_of(controller).suspend()
    await asyncio.sleep(0)
    assert not controller.is_active
    with pytest.raises(ApiError) as caught:
        await controller.create_topics([TopicRequest("u", 1, 1)])
    assert caught.value.code is ErrorCode.NOT_CONTROLLER
    session_of(controller).resume()
    await world.until(lambda: controller.is_active)
    assert await code_of(world, "u") is None
    assert set(world.port(1).image.topics) == {"t", "u"}
    # Another term, which fences notices of the former one that are still under way.
    assert controller.image.controller_epoch == 2


async def test_an_expired_session_causes_a_new_registration(world: World) -> None:
    """Broker epoch, controller epoch and leader epochs grow."""
    controller = await world.start()
    await code_of(world, "t")
    former = controller.broker_epoch
    renewed = []

    async def note(session: object) -> None:
        renewed.append(session)

    controller.on_new_session.append(note)
    session_of(controller).expire()
    await world.until(lambda: controller.is_active and controller.image.controller_epoch == 2)
    assert renewed == [controller.session]
    assert controller.broker_epoch > former
    assert controller.image.topics["t"].partitions[0].leader_epoch == 1
    assert await code_of(world, "u") is None


async def test_a_replaced_controller_writes_nothing(world: World) -> None:
    """The write fails because the controller epoch has changed, and the controller resigns."""
    controller = await world.start()
    await code_of(world, "before")
    session = world.tree.session()
    data, stat = await session.get("/controller_epoch")
    await session.set("/controller_epoch", b"%d" % (int(data) + 1), stat.version)
    with pytest.raises(ApiError) as caught:
        await controller.create_topics([TopicRequest("t", 1, 1)])
    assert caught.value.code is ErrorCode.NOT_CONTROLLER
    assert await session.children("/brokers/topics") == ["before"]


async def test_a_tree_that_another_client_changed_is_read_again(world: World) -> None:
    """A topic that another client created is detected and not overwritten."""
    await world.start()
    await world.tree.session().create("/brokers/topics/t", b'{"version":2,"partitions":{"0":[1]}}')
    assert await code_of(world, "t") is ErrorCode.TOPIC_ALREADY_EXISTS


async def test_leftover_settings_of_a_deleted_topic_do_not_apply(world: World) -> None:
    """A new topic has only the settings of its creation."""
    controller = await world.start()
    leftover = b'{"version":1,"config":{"retention.ms":"1"}}'
    await controller.session.create("/config/topics/t", leftover)
    assert await code_of(world, "t") is None
    data, _ = await controller.session.get("/config/topics/t")
    assert data == b'{"version":1,"config":{}}'


async def test_stopping_fails_the_waiting_requests(world: World) -> None:
    """Waiting requests fail with NOT_CONTROLLER."""
    controller = await world.start()
    world.port(1).undeletable = {("t", 0)}
    await code_of(world, "t")
    waiting = asyncio.ensure_future(controller.delete_topics(["t"]))
    await world.until(lambda: "delete" in world.port(1).names())
    await world.kill(1)
    with pytest.raises(ApiError) as caught:
        await waiting
    assert caught.value.code is ErrorCode.NOT_CONTROLLER


# -- settings -------------------------------------------------------------------------------------


def change(entity: str, value: str, entity_type: str = "topics") -> ConfigRequest:
    """Return a request to set retention."""
    name = "retention.ms" if entity_type == "topics" else "log.retention.ms"
    return ConfigRequest(entity_type, entity, (ConfigChange(name, Alteration.SET, value),))


async def test_an_altered_setting_is_stored_and_announced(world: World) -> None:
    """The node contains the settings, and a notification node is created for the brokers."""
    controller = await world.start()
    await code_of(world, "t")
    (result,) = await controller.alter_configs([change("t", "5")])
    assert result.error is None
    data, _ = await controller.session.get("/config/topics/t")
    assert data == b'{"version":1,"config":{"retention.ms":"5"}}'
    (name,) = await controller.session.children("/config/changes")
    data, _ = await controller.session.get(f"/config/changes/{name}")
    assert data == b'{"version":2,"entity_path":"topics/t"}'


@pytest.mark.parametrize("validate_only", [True, False])
async def test_a_change_without_effect_is_not_announced(world: World, validate_only: bool) -> None:
    """A request with validate_only or with the current value creates no notification."""
    controller = await world.start()
    await controller.create_topics([TopicRequest("t", 1, 1, config={"retention.ms": "5"})])
    value = "6" if validate_only else "5"
    await controller.alter_configs([change("t", value)], validate_only=validate_only)
    assert await controller.session.children("/config/changes") == []


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (change("nope", "5"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (change("a b", "5"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (change("t", "x"), ErrorCode.INVALID_CONFIG),
        (change("1", "x", "brokers"), ErrorCode.INVALID_REQUEST),
    ],
)
async def test_a_rejected_change_has_kafkas_code(
    world: World, request_: ConfigRequest, code: ErrorCode
) -> None:
    """The error code depends on the type of the entity."""
    controller = await world.start()
    await code_of(world, "t")
    (result,) = await controller.alter_configs([request_])
    assert result.error is not None
    assert result.error.code is code


async def test_broker_settings_are_stored_per_broker_and_as_cluster_default(world: World) -> None:
    """The cluster-wide default is the entity `<default>` of the brokers."""
    controller = await world.start()
    requests = [change("1", "5", "brokers"), change("<default>", "6", "brokers")]
    results = await controller.alter_configs(requests)
    assert [result.error for result in results] == [None, None]
    assert b'"5"' in (await controller.session.get("/config/brokers/1"))[0]
    assert b'"6"' in (await controller.session.get("/config/brokers/<default>"))[0]


async def test_a_topic_that_needs_several_writes_has_all_its_states(world: World) -> None:
    """Every partition has its state in the tree, both after the creation and after the extension."""
    controller = await world.start(1)
    count = creation.PARTITIONS_AT_ONCE + 1
    (result,) = await controller.create_topics([TopicRequest("t", count, 1)])
    assert result.error is None
    (extended,) = await controller.create_partitions([PartitionsRequest("t", 2 * count + 1)])
    assert extended.error is None
    session = session_of(controller)
    states = [PartitionStateNode.path("t", number) for number in (0, count - 1, count, 2 * count)]
    assert all([await session.exists(path) for path in states])
    assert len(await session.children(PartitionsNode.path("t"))) == 2 * count + 1


async def test_a_controller_restarts_after_a_bug(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request fails, and the tree is read again in the same term."""
    monkeypatch.setattr("ottla.base.tasks.RESTART_SECONDS", 0.001)
    controller = await world.start()

    async def fail(*_: object) -> None:
        raise LookupError("a bug")

    with monkeypatch.context() as patch, pytest.raises(ApiError) as caught:
        patch.setattr(TopicCreation, "create_topics", fail)
        await code_of(world, "t")
    assert caught.value.code is ErrorCode.NOT_CONTROLLER
    await world.until(lambda: controller.is_active)
    assert await code_of(world, "t") is None
    assert world.tasks.failures == {"controller": 1}


async def test_a_request_waits_for_a_controller_that_has_announced_itself(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other brokers name it already; NOT_CONTROLLER would be an error for clients like librdkafka's
    admin client, which do not send the request again.
    """
    await world.start(1)
    second = await world.start(2)
    await world.until(lambda: world.port(2).image.controller_id == 1)
    complete = asyncio.Event()
    load = state.load_failed_directories

    async def held(*arguments: Any) -> Any:
        await complete.wait()
        return await load(*arguments)

    monkeypatch.setattr(state, "load_failed_directories", held)
    await world.kill(1)
    await world.until(lambda: world.port(2).image.controller_id == 2)
    assert second.is_active
    created = asyncio.create_task(second.create_topics([TopicRequest("t", 1, 1)]))
    await asyncio.sleep(0)
    assert not created.done()
    complete.set()
    (result,) = await created
    assert result.error is None
    assert "t" in second.image.topics


async def test_a_refused_request_without_a_caller_leaves_no_error() -> None:
    """A power loss in the simulation ends the caller before it has the response."""
    failures: list[Any] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: failures.append(context))
    event = Event(ControllerTerm.settle, loop.create_future())
    _refuse(event)
    assert event.reply is not None
    assert isinstance(event.reply.exception(), ApiError)
    event = Event(ControllerTerm.settle, loop.create_future())
    _refuse(event)
    del event
    gc.collect()
    assert failures == []
