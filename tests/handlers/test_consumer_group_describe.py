"""ConsumerGroupDescribe: groups of the consumer protocol and their members."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.server import operations
from ottla.server.handlers import consumer_group_describe, consumer_group_heartbeat
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.handlers.groups import TOPIC_ID, groups_broker


@pytest.fixture
async def broker():
    """Return a coordinator with a group of one member."""
    async with groups_broker() as running:
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            instance_id="i",
            rack_id="r",
            rebalance_timeout_ms=1000,
            topic_partitions=[],
            subscribed_topic_names=["t"],
        )
        await running.ask(consumer_group_heartbeat, request, 1)
        yield running


async def describe(broker, *group_ids, version=1, **fields):
    """Return the described groups."""
    request = ConsumerGroupDescribeRequest(group_ids=list(group_ids), **fields)
    return (await broker.ask(consumer_group_describe, request, version)).groups


async def test_group_is_described_with_its_members(broker):
    """The description has epochs, state and assignor, and each member's current and target
    assignment.
    """
    (group,) = await describe(broker, "g")
    assert (group.error_code, group.group_id, group.group_state) == (0, "g", "Stable")
    assert (group.group_epoch, group.assignment_epoch, group.assignor_name) == (2, 2, "uniform")
    (member,) = group.members
    assert (member.member_id, member.instance_id, member.rack_id) == ("m", "i", "r")
    assert (member.client_id, member.client_host) == ("client", "/127.0.0.9")
    assert (member.member_epoch, member.member_type) == (2, 1)
    assert (member.subscribed_topic_names, member.subscribed_topic_regex) == (["t"], "")
    for assignment in (member.assignment, member.target_assignment):
        (topic,) = assignment.topic_partitions
        assert (topic.topic_id, topic.topic_name, topic.partitions) == (TOPIC_ID, "t", [0, 1])


@pytest.mark.parametrize("level", [0, 1])
async def test_group_that_is_named_twice_has_two_rows(broker, level):
    """Also if the protocol is disabled."""
    broker.features.level = lambda name: level
    groups = await describe(broker, "g", "none", "g")
    assert [group.group_id for group in groups] == ["g", "none", "g"]


async def test_version_0_has_no_member_type(broker):
    """Fields that the version lacks are omitted."""
    (group,) = await describe(broker, "g", version=0)
    assert group.members[0].member_type == -1


async def test_operations_are_returned_on_request(broker):
    """Authorized operations are returned on request only, and never with an error."""
    plain, *_ = await describe(broker, "g")
    description, unknown = await describe(broker, "g", "x", include_authorized_operations=True)
    assert plain.authorized_operations == -0x80000000
    assert description.authorized_operations == operations.ON_GROUP
    assert unknown.authorized_operations == -0x80000000


async def test_other_groups_are_not_found(broker):
    """Unknown groups, classic ones and the empty name have errors of their own."""
    await broker.stable("classic")
    unknown, classic, nameless = await describe(broker, "x", "classic", "")
    assert unknown.error_code == classic.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert unknown.error_message == "Group x not found."
    assert classic.error_message == "Group classic is not a consumer group."
    assert nameless.error_code == ErrorCode.INVALID_GROUP_ID


async def test_protocol_can_be_disabled(broker):
    """Without the protocol in group.coordinator.rebalance.protocols nothing is described."""
    broker.configure(**{"group.coordinator.rebalance.protocols": "classic"})
    (group,) = await describe(broker, "g")
    assert group.error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_protocol_is_off_without_its_feature(broker):
    """If group.version is not finalized, the protocol cannot be used."""
    broker.features.level = lambda name: 0 if name == "group.version" else 1
    (group,) = await describe(broker, "g")
    assert group.error_code == ErrorCode.UNSUPPORTED_VERSION
