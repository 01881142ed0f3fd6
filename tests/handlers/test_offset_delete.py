"""OffsetDelete: offsets of topics without a subscribed consumer are deleted."""

from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.server.handlers import join_group, offset_commit, offset_delete, offset_fetch
from ottla.server.handlers import sync_group as sync
from ottla.wire import consumer_protocol, schema
from ottla.wire.messages.join_group import JoinGroupRequestProtocol
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.handlers.groups import GroupsBroker, commit_request, groups_broker, join_request


async def delete(
    broker: GroupsBroker, *partitions: tuple[str, int], group: str = "g"
) -> tuple[str, dict[tuple[str, int], str]]:
    """Delete offsets; return the name of the top-level error and the name of each partition's
    error.
    """
    topics: dict[str, list[OffsetDeleteRequestPartition]] = {}
    for name, index in partitions:
        requested = OffsetDeleteRequestPartition(partition_index=index)
        topics.setdefault(name, []).append(requested)
    request = OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(name=name, partitions=items) for name, items in topics.items()
        ],
    )
    response = await broker.ask(offset_delete, request, 0)
    return ErrorCode(response.error_code).name, {
        (topic.name, item.partition_index): ErrorCode(item.error_code).name
        for topic in response.topics
        for item in topic.partitions
    }


async def offsets(broker: GroupsBroker, group: str = "g") -> list[int]:
    """Return the committed offsets of both partitions of `t`."""
    topics = [OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])]
    response = await broker.ask(offset_fetch, OffsetFetchRequest(group_id=group, topics=topics), 5)
    return [item.committed_offset for item in response.topics[0].partitions]


async def consumer(broker: GroupsBroker, *topics: str) -> None:
    """Create a group `g` of one consumer that subscribes to `topics`."""
    cls = consumer_protocol.ConsumerProtocolSubscription
    subscription = b"\0\0" + schema.encode(cls(topics=list(topics)), 0)
    protocols = [JoinGroupRequestProtocol(name="range", metadata=subscription)]
    joined: Any = await broker.ask(join_group, join_request(protocols=protocols), 3)
    assignment = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")
    request = SyncGroupRequest(
        group_id="g",
        member_id=joined.member_id,
        generation_id=joined.generation_id,
        assignments=[assignment],
    )
    await broker.ask(sync, request, 3)


async def test_one_offset_is_deleted_and_the_others_stay() -> None:
    """Deleting a missing offset succeeds."""
    async with groups_broker() as broker:
        await broker.ask(offset_commit, commit_request((0, 5)), 9)
        answered = await delete(broker, ("t", 1))
        assert answered == ("NONE", {("t", 1): "NONE"})
        assert await offsets(broker) == [5, -1]
        assert await delete(broker, ("t", 0)) == ("NONE", {("t", 0): "NONE"})
        assert await offsets(broker) == [-1, -1]


async def test_unknown_partitions_have_errors_and_others_succeed() -> None:
    """Unknown topics and partitions have errors, and a topic is in the response once."""
    async with groups_broker() as broker:
        await broker.ask(offset_commit, commit_request((0, 5), (1, 6)), 9)
        unknown = "UNKNOWN_TOPIC_OR_PARTITION"
        answered = await delete(broker, ("t", 0), ("t", 9), ("nope", 0))
        assert answered == ("NONE", {("t", 0): "NONE", ("t", 9): unknown, ("nope", 0): unknown})
        assert await delete(broker, ("nope", 1)) == ("NONE", {("nope", 1): unknown})
        assert await delete(broker, ("nope", 1), group="h") == ("GROUP_ID_NOT_FOUND", {})


async def test_offsets_of_subscribed_topics_are_kept() -> None:
    """Offsets of other topics can be deleted while the group is active."""
    async with groups_broker() as broker:
        await broker.ask(offset_commit, commit_request((0, 5)), 9)
        await consumer(broker, "t")
        answered = await delete(broker, ("t", 0), ("__consumer_offsets", 0))
        subscribed = "GROUP_SUBSCRIBED_TO_TOPIC"
        assert answered == ("NONE", {("t", 0): subscribed, ("__consumer_offsets", 0): "NONE"})
        assert await offsets(broker) == [5, -1]


@pytest.mark.parametrize(
    ("group", "code"),
    [
        ("", ErrorCode.INVALID_GROUP_ID),
        ("none", ErrorCode.GROUP_ID_NOT_FOUND),
        ("workers", ErrorCode.NON_EMPTY_GROUP),
    ],
)
async def test_some_groups_reject_the_request(group: str, code: ErrorCode) -> None:
    """The subscriptions of other kinds of groups are unknown, so nothing is deleted."""
    async with groups_broker() as broker:
        await broker.ask(join_group, join_request("workers", protocol_type="connect"), 3)
        assert await delete(broker, ("t", 0), group=group) == (code.name, {})


async def test_loading_coordinator_returns_an_error() -> None:
    """Nothing is deleted from a partition that has not been loaded."""
    async with groups_broker(is_loaded=False) as broker:
        assert await delete(broker, ("t", 0)) == ("NOT_COORDINATOR", {})
