"""ConsumerGroupHeartbeat: what a member may ask, and what it is told."""

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
    """A coordinator of groups."""
    async with groups_broker() as running:
        yield running


async def ask(broker, version=1, **fields):
    """Send one heartbeat of group g."""
    request = ConsumerGroupHeartbeatRequest(**({"group_id": "g"} | fields))
    return await broker.ask(consumer_group_heartbeat, request, version)


async def test_member_that_joins_is_given_what_it_reads(broker):
    """The first member gets epoch 2, every partition, and the interval of its heartbeats."""
    answer = await ask(broker, **FULL, subscribed_topic_names=["t"])
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "m", 2)
    assert answer.heartbeat_interval_ms == 5000
    (topic,) = answer.assignment.topic_partitions
    assert (topic.topic_id, topic.partitions) == (TOPIC_ID, [0, 1])


async def test_heartbeat_without_news_has_no_assignment(broker):
    """Nothing is repeated to a member that knows it, unless it says everything itself."""
    await ask(broker, **FULL, subscribed_topic_names=["t"])
    assert (await ask(broker, member_id="m", member_epoch=2)).assignment is None
    owned = [TopicPartitions(topic_id=TOPIC_ID, partitions=[0, 1])]
    again = {**FULL, "member_epoch": 2, "topic_partitions": owned}
    answer = await ask(broker, **again, subscribed_topic_names=["t"])
    assert len(answer.assignment.topic_partitions) == 1


async def test_version_0_leaves_the_member_id_to_the_coordinator(broker):
    """A member of version 0 joins without an id and is told one."""
    fields = {**FULL, "member_id": "", "subscribed_topic_names": ["t"]}
    answer = await ask(broker, version=0, **fields)
    assert len(answer.member_id) == 22


async def test_leaving_member_is_gone(broker):
    """Epoch -1 is answered with itself, and the member is unknown from then on."""
    await ask(broker, **FULL, subscribed_topic_names=["t"])
    assert (await ask(broker, member_id="m", member_epoch=-1)).member_epoch == -1
    answer = await ask(broker, member_id="m", member_epoch=2)
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert answer.error_message == "Member m is not a member of group g."


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
async def test_refusals_have_a_code_and_a_reason(broker, fields, code, message):
    """Requests that no group can answer are refused in Kafka's words."""
    answer = await ask(broker, **{**FULL, "subscribed_topic_names": ["t"], **fields})
    assert answer.error_code == ErrorCode[code]
    assert answer.error_message == message


async def test_wrong_epochs_fence_the_member(broker):
    """A greater epoch is fenced, and a smaller one that is not the one before."""
    await ask(broker, **FULL, subscribed_topic_names=["t"])
    for epoch, kind in ((9, "greater"), (1, "smaller")):
        answer = await ask(broker, member_id="m", member_epoch=epoch)
        assert answer.error_code == ErrorCode.FENCED_MEMBER_EPOCH
        assert answer.error_message == (
            f"The consumer group member has a {kind} member epoch ({epoch}) than the one known by "
            "the group coordinator (2). The member must abandon all its partitions and rejoin."
        )


async def test_protocol_can_be_switched_off(broker):
    """Without the protocol in group.coordinator.rebalance.protocols every heartbeat is refused."""
    broker.configure(**{"group.coordinator.rebalance.protocols": "classic"})
    answer = await ask(broker, **FULL, subscribed_topic_names=["t"])
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_protocol_is_off_without_its_feature(broker):
    """Where group.version is not finalized nobody may use the protocol."""
    broker.features.level = lambda name: 0 if name == "group.version" else 1
    answer = await ask(broker, **FULL, subscribed_topic_names=["t"])
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
