"""DeleteTopics: deletion by name and by id, and rejected topics."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.base.uuids import ZERO_UUID
from ottla.controller.planning.requests import TopicRequest
from ottla.server.handlers import delete_topics
from ottla.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from tests.handlers.admin import AdminBroker, admin_broker

UNKNOWN_ID = b"u" * 16


async def make(broker: AdminBroker, *names: str) -> None:
    """Create topics of one partition."""
    await broker.controller.create_topics([TopicRequest(name, 1, 1) for name in names])


async def delete(
    broker: AdminBroker, *named: str | bytes, version: int = 6, timeout_ms: int = 10_000
) -> list[DeletableTopicResult]:
    """Delete topics by their name or id."""
    request = DeleteTopicsRequest(timeout_ms=timeout_ms)
    if version < 6:
        request.topic_names = [str(item) for item in named]
    else:
        request.topics = [
            DeleteTopicState(topic_id=item)
            if isinstance(item, bytes)
            else DeleteTopicState(name=item)
            for item in named
        ]
    return (await delete_topics.handle(broker.context(version), request)).responses


@pytest.mark.parametrize("version", [1, 5, 6])
async def test_topics_are_deleted_by_name(version: int) -> None:
    """The broker does not know the topic when the response is sent."""
    async with admin_broker() as broker:
        await make(broker, "a", "b")
        topic_id = broker.image.topics["a"].topic_id
        (result,) = await delete(broker, "a", version=version)
        assert (result.name, result.error_code, result.error_message) == ("a", 0, None)
        assert result.topic_id == topic_id
        assert set(broker.image.topics) == {"b"}


async def test_topics_are_deleted_by_id() -> None:
    """The response has the name, too."""
    async with admin_broker() as broker:
        await make(broker, "a")
        topic_id = broker.image.topics["a"].topic_id
        (result,) = await delete(broker, topic_id)
        assert (result.name, result.topic_id, result.error_code) == ("a", topic_id, 0)
        assert broker.image.topics == {}


async def test_unknown_topics_have_their_own_errors() -> None:
    """Unknown names and ids have different codes; the other topics are deleted."""
    async with admin_broker() as broker:
        await make(broker, "a")
        results = await delete(broker, "nope", UNKNOWN_ID, "a")
        assert [item.error_code for item in results] == [
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_ID,
            0,
        ]
        assert results[1].name is None


@pytest.mark.parametrize(
    "state",
    [DeleteTopicState(name="a", topic_id=UNKNOWN_ID), DeleteTopicState(name=None)],
    ids=["both", "neither"],
)
async def test_topic_needs_either_name_or_id(state: DeleteTopicState) -> None:
    """A name with an id, or neither, is an error."""
    async with admin_broker() as broker:
        await make(broker, "a")
        request = DeleteTopicsRequest(topics=[state], timeout_ms=10_000)
        response = await delete_topics.handle(broker.context(6), request)
        assert [item.error_code for item in response.responses] == [ErrorCode.INVALID_REQUEST]
        assert "a" in broker.image.topics


async def test_repeated_topic_is_not_deleted() -> None:
    """A topic is rejected if it is repeated by name, or once by name and once by id."""
    async with admin_broker() as broker:
        await make(broker, "a", "b")
        topic_id = broker.image.topics["b"].topic_id
        results = await delete(broker, "a", "a", "b", topic_id, UNKNOWN_ID, UNKNOWN_ID)
        assert {item.error_code for item in results} == {ErrorCode.INVALID_REQUEST}
        # One result for each way in which a topic was repeated.
        assert [(item.name, item.topic_id) for item in results] == [
            ("a", ZERO_UUID),
            ("b", topic_id),
            (None, UNKNOWN_ID),
        ]
        assert set(broker.image.topics) == {"a", "b"}


@pytest.mark.parametrize(
    ("version", "code"),
    [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)],
)
async def test_deletion_can_be_disabled(version: int, code: ErrorCode) -> None:
    """Clients before version 3 do not know the error code."""
    async with admin_broker(delete_topic_enable="false") as broker:
        await make(broker, "a")
        (result,) = await delete(broker, "a", version=version)
        assert result.error_code == code
        assert "a" in broker.image.topics


async def test_disabled_deletion_looks_up_no_topics() -> None:
    """The response repeats the request, whether the topic exists or not."""
    async with admin_broker(delete_topic_enable="false") as broker:
        await make(broker, "a")
        results = await delete(broker, "a", UNKNOWN_ID)
        assert {item.error_code for item in results} == {ErrorCode.TOPIC_DELETION_DISABLED}
        assert [(item.name, item.topic_id) for item in results] == [
            ("a", ZERO_UUID),
            (None, UNKNOWN_ID),
        ]


async def test_request_without_timeout_deletes_nothing() -> None:
    """The error is REQUEST_TIMED_OUT at once, as in Kafka 4."""
    async with admin_broker() as broker:
        await make(broker, "a")
        (result,) = await delete(broker, "a", timeout_ms=0)
        assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert "a" in broker.image.topics


async def test_the_zero_id_is_no_id() -> None:
    """A name with the zero id counts as a name only."""
    async with admin_broker() as broker:
        await make(broker, "a")
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name="a", topic_id=ZERO_UUID)], timeout_ms=10_000
        )
        response = await delete_topics.handle(broker.context(6), request)
        assert response.responses[0].error_code == 0
