"""OffsetCommit: by name and by id, and unknown topics."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.server.handlers import offset_commit, offset_fetch
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.wire.messages.offset_fetch import OffsetFetchRequest
from tests.handlers.groups import TOPIC_ID, UNKNOWN_ID, commit_request, groups_broker


def codes(response: OffsetCommitResponse) -> dict[int, str]:
    """Return the errors by partition; every topic must be in the response once."""
    names = [(topic.name, topic.topic_id) for topic in response.topics]
    assert len(set(names)) == len(names)
    return {
        item.partition_index: ErrorCode(item.error_code).name
        for topic in response.topics
        for item in topic.partitions
    }


@pytest.mark.parametrize("version", range(2, 10))
async def test_offsets_are_stored_by_topic_name(version):
    """Versions up to 9 use topic names."""
    async with groups_broker() as broker:
        response = await broker.ask(offset_commit, commit_request((0, 5), (1, 6)), version)
        assert codes(response) == {0: "NONE", 1: "NONE"}
        assert response.topics[0].name == "t"
        request = OffsetFetchRequest(group_id="g", topics=None)
        actual = await broker.ask(offset_fetch, request, 7)
        assert [item.committed_offset for item in actual.topics[0].partitions] == [5, 6]


async def test_offsets_are_stored_by_topic_id():
    """Version 10 has only topic ids, in the request and in the response."""
    async with groups_broker() as broker:
        response = await broker.ask(offset_commit, commit_request((0, 5)), 10)
        assert codes(response) == {0: "NONE"}
        assert (response.topics[0].topic_id, response.topics[0].name) == (TOPIC_ID, "")
        response = await broker.ask(offset_commit, commit_request((0, 5), topic_id=UNKNOWN_ID), 10)
        assert codes(response) == {0: "UNKNOWN_TOPIC_ID"}


async def test_only_the_unknown_partition_is_rejected():
    """The other offsets are stored; the topic is in the response once."""
    async with groups_broker() as broker:
        response = await broker.ask(offset_commit, commit_request((0, 5), (2, 6)), 9)
        assert codes(response) == {0: "NONE", 2: "UNKNOWN_TOPIC_OR_PARTITION"}
        response = await broker.ask(offset_commit, commit_request((0, 5), name="none"), 9)
        assert codes(response) == {0: "UNKNOWN_TOPIC_OR_PARTITION"}


async def test_error_of_the_group_is_at_every_partition():
    """The response has no top-level error code."""
    async with groups_broker() as broker:
        member, generation = await broker.stable()
        request = commit_request(
            (0, 5), (1, 6), (2, 7), member_id=member, generation_id_or_member_epoch=generation + 1
        )
        response = await broker.ask(offset_commit, request, 9)
        illegal = "ILLEGAL_GENERATION"
        assert codes(response) == {0: illegal, 1: illegal, 2: "UNKNOWN_TOPIC_OR_PARTITION"}


async def test_commit_without_topics_is_answered():
    """A request without topics still checks the member, and its response is empty."""
    async with groups_broker() as broker:
        response = await broker.ask(offset_commit, OffsetCommitRequest(group_id="g"), 9)
        assert response.topics == []


async def test_commit_is_answered_when_it_is_stored():
    """The handler's future completes when the record is committed."""
    async with groups_broker() as broker:
        broker.log.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
        response = await broker.ask(offset_commit, commit_request((0, 5)), 9)
        assert codes(response) == {0: "COORDINATOR_NOT_AVAILABLE"}


async def test_last_offset_of_a_partition_counts():
    """A partition that is named twice has two results and one record."""
    async with groups_broker() as broker:
        response = await broker.ask(offset_commit, commit_request((0, 5), (0, 7)), 9)
        assert [item.error_code for item in response.topics[0].partitions] == [0, 0]
        actual = await broker.ask(offset_fetch, OffsetFetchRequest(group_id="g", topics=None), 7)
        assert [item.committed_offset for item in actual.topics[0].partitions] == [7]
