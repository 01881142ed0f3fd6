"""ConsumerGroupHeartbeat: requests of members and their responses."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.server.handlers import consumer_group_heartbeat
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from tests.handlers.groups import TOPIC_ID, groups_broker

FULL = {"member_id": "m", "rebalance_timeout_ms": 1000, "topic_partitions": []}


@pytest.fixture
async def broker():
    """Return a broker that coordinates groups."""
    async with groups_broker() as running:
        yield running


async def ask(broker, version=1, **fields):
    """Send one heartbeat of group g."""
    request = ConsumerGroupHeartbeatRequest(**({"group_id": "g"} | fields))
    return await broker.ask(consumer_group_heartbeat, request, version)


async def test_joining_member_gets_its_assignment(broker):
    """The first member gets epoch 2, every partition, and the heartbeat interval."""
    response = await ask(broker, **FULL, subscribed_topic_names=["t"])
    assert (response.error_code, response.member_id, response.member_epoch) == (0, "m", 2)
    assert response.heartbeat_interval_ms == 5000
    (topic,) = response.assignment.topic_partitions
    assert (topic.topic_id, topic.partitions) == (TOPIC_ID, [0, 1])


async def test_heartbeat_without_changes_has_no_assignment(broker):
    """The assignment is repeated only for a member that sends its full state."""
    await ask(broker, **FULL, subscribed_topic_names=["t"])
    assert (await ask(broker, member_id="m", member_epoch=2)).assignment is None
    owned = [TopicPartitions(topic_id=TOPIC_ID, partitions=[0, 1])]
    again = {**FULL, "member_epoch": 2, "topic_partitions": owned}
    response = await ask(broker, **again, subscribed_topic_names=["t"])
    assert len(response.assignment.topic_partitions) == 1


async def test_version_0_leaves_the_member_id_to_the_coordinator(broker):
    """A member of version 0 joins without an id and gets one."""
    fields = {**FULL, "member_id": "", "subscribed_topic_names": ["t"]}
    response = await ask(broker, version=0, **fields)
    assert len(response.member_id) == 22


async def test_leaving_member_is_removed(broker):
    """Epoch -1 is returned, and the member is unknown afterwards."""
    await ask(broker, **FULL, subscribed_topic_names=["t"])
    assert (await ask(broker, member_id="m", member_epoch=-1)).member_epoch == -1
    response = await ask(broker, member_id="m", member_epoch=2)
    assert response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert response.error_message == "Member m is not a member of group g."


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        ({"member_id": ""}, "INVALID_REQUEST", "MemberId can't be empty."),
        ({"group_id": " "}, "INVALID_REQUEST", "GroupId can't be empty."),
        ({"instance_id": ""}, "INVALID_REQUEST", "InstanceId can't be empty."),
        ({"rack_id": ""}, "INVALID_REQUEST", "RackId can't be empty."),
        (
            {"rebalance_timeout_ms": -1},
            "INVALID_REQUEST",
            "RebalanceTimeoutMs must be provided in first request.",
        ),
        (
            {"topic_partitions": None},
            "INVALID_REQUEST",
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (
            {"subscribed_topic_names": None},
            "INVALID_REQUEST",
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining.",
        ),
        ({"member_epoch": -2}, "INVALID_REQUEST", "InstanceId can't be null."),
        ({"member_epoch": -3}, "INVALID_REQUEST", "MemberEpoch is invalid."),
        (
            {"server_assignor": "mine"},
            "UNSUPPORTED_ASSIGNOR",
            "ServerAssignor mine is not supported. Supported assignors: uniform, range.",
        ),
        ({"member_epoch": 5}, "GROUP_ID_NOT_FOUND", "Consumer group g not found."),
        ({"member_epoch": -1}, "GROUP_ID_NOT_FOUND", "Group g not found."),
        (
            {"subscribed_topic_regex": "("},
            "INVALID_REGULAR_EXPRESSION",
            "SubscribedTopicRegex `(` is not a valid regular expression: missing closing ).",
        ),
    ],
)
async def test_rejected_requests_have_a_code_and_a_reason(broker, fields, code, message):
    """Invalid requests are rejected with Kafka's messages."""
    response = await ask(broker, **{**FULL, "subscribed_topic_names": ["t"], **fields})
    assert response.error_code == ErrorCode[code]
    assert response.error_message == message


async def test_wrong_epochs_fence_the_member(broker):
    """A larger epoch is fenced, and so is a smaller one that is not the previous epoch."""
    await ask(broker, **FULL, subscribed_topic_names=["t"])
    for epoch, kind in ((9, "greater"), (1, "smaller")):
        response = await ask(broker, member_id="m", member_epoch=epoch)
        assert response.error_code == ErrorCode.FENCED_MEMBER_EPOCH
        assert response.error_message == (
            f"The consumer group member has a {kind} member epoch ({epoch}) than the one known by "
            "the group coordinator (2). The member must abandon all its partitions and rejoin."
        )


async def test_protocol_can_be_disabled(broker):
    """Every heartbeat is rejected if group.coordinator.rebalance.protocols excludes the protocol."""
    broker.configure(**{"group.coordinator.rebalance.protocols": "classic"})
    response = await ask(broker, **FULL, subscribed_topic_names=["t"])
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_protocol_is_off_without_its_feature(broker):
    """If group.version is not finalized, the protocol cannot be used."""
    broker.features.level = lambda name: 0 if name == "group.version" else 1
    response = await ask(broker, **FULL, subscribed_topic_names=["t"])
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_too_many_names(broker):
    """More topics than can be compared in one go are refused."""
    names = [f"t{number}" for number in range(15_001)]
    response = await ask(broker, **FULL, subscribed_topic_names=names)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert "15001 topics" in response.error_message
