"""OffsetFetch: one group or several, some topics or all, by name or by id."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.server.handlers import offset_commit, offset_fetch
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.handlers.groups import TOPIC_ID, UNKNOWN_ID, commit_request, groups_broker


def one_group(topics):
    """Return a request of versions 1 to 7."""
    if topics is not None:
        topics = [
            OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
            for name, indexes in topics.items()
        ]
    return OffsetFetchRequest(group_id="g", topics=topics)


def group(name, topics, **ids):
    """Return one group of a request of version 8 or later."""
    if topics is not None:
        topics = [
            OffsetFetchRequestTopics(
                name=topic, topic_id=ids.get(topic, TOPIC_ID), partition_indexes=indexes
            )
            for topic, indexes in topics.items()
        ]
    return OffsetFetchRequestGroup(group_id=name, topics=topics)


def found(topics):
    return {
        (topic.name, item.partition_index): (item.committed_offset, item.error_code)
        for topic in topics
        for item in topic.partitions
    }


@pytest.mark.parametrize("version", range(1, 8))
async def test_offsets_of_one_group(version):
    """Committed offsets are returned, and -1 for missing ones."""
    async with groups_broker() as broker:
        await broker.ask(offset_commit, commit_request((0, 5)), 9)
        response = await broker.ask(offset_fetch, one_group({"t": [0, 1], "u": [0]}), version)
        assert response.error_code == 0
        expected = {("t", 0): (5, 0), ("t", 1): (-1, 0), ("u", 0): (-1, 0)}
        assert found(response.topics) == expected
        metadata = [item.metadata for item in response.topics[0].partitions]
        assert metadata == ["m", ""]


@pytest.mark.parametrize("version", range(2, 8))
async def test_null_topics_are_all_topics(version):
    """The response has every topic that the group has offsets of."""
    async with groups_broker() as broker:
        await broker.ask(offset_commit, commit_request((0, 5), (1, 6)), 9)
        response = await broker.ask(offset_fetch, one_group(None), version)
        assert found(response.topics) == {("t", 0): (5, 0), ("t", 1): (6, 0)}


@pytest.mark.parametrize("version", [8, 9])
async def test_offsets_of_several_groups(version):
    """Each group has its own topics and its own error."""
    async with groups_broker() as broker:
        await broker.ask(offset_commit, commit_request((0, 5)), 9)
        await broker.ask(offset_commit, commit_request((0, 9), group="h"), 9)
        groups = [group("g", {"t": [0]}), group("h", None), group("none", {"t": [0]})]
        response = await broker.ask(offset_fetch, OffsetFetchRequest(groups=groups), version)
        assert [item.group_id for item in response.groups] == ["g", "h", "none"]
        assert [found(item.topics) for item in response.groups] == [
            {("t", 0): (5, 0)},
            {("t", 0): (9, 0)},
            {("t", 0): (-1, 0)},
        ]


async def test_topics_by_id():
    """In version 10 unknown ids have an error each, and offsets of deleted topics are omitted."""
    async with groups_broker() as broker:
        await broker.ask(offset_commit, commit_request((0, 5)), 9)
        groups = [group("g", {"t": [0], "u": [3]}, u=UNKNOWN_ID), group("g", None)]
        response = await broker.ask(offset_fetch, OffsetFetchRequest(groups=groups), 10)
        some, everything = response.groups
        assert {
            topic.topic_id: [
                (item.partition_index, item.committed_offset, item.error_code)
                for item in topic.partitions
            ]
            for topic in some.topics
        } == {TOPIC_ID: [(0, 5, 0)], UNKNOWN_ID: [(3, -1, ErrorCode.UNKNOWN_TOPIC_ID)]}
        assert [topic.topic_id for topic in everything.topics] == [TOPIC_ID]
        broker.image = broker.image.with_topics(deleted=["t"])
        request = OffsetFetchRequest(groups=[group("g", None)])
        response = await broker.ask(offset_fetch, request, 10)
        assert response.groups[0].topics == []


@pytest.mark.parametrize("version", range(1, 11))
async def test_error_of_the_group_has_its_field_in_each_version(version):
    """It is at every partition in version 1, at the top level until 7, and with the group since 8."""
    async with groups_broker(is_loaded=False) as broker:
        code = ErrorCode.NOT_COORDINATOR
        if version < 8:
            response = await broker.ask(offset_fetch, one_group({"t": [0]}), version)
            assert response.error_code == (code if version > 1 else 0)
            assert found(response.topics) == ({("t", 0): (-1, code)} if version == 1 else {})
        else:
            request = OffsetFetchRequest(groups=[group("g", {"t": [0]})])
            response = await broker.ask(offset_fetch, request, version)
            assert response.groups[0].error_code == code
            assert response.groups[0].topics == []
