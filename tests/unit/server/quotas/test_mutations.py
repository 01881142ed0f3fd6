"""The quota of mutations in the handlers that create and delete partitions (KIP-599)."""

import asyncio
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.controller.planning import creation
from ottla.controller.planning.requests import TopicRequest
from ottla.server.context import RequestContext
from ottla.server.handlers import create_partitions, create_topics, delete_topics, metadata
from ottla.server.quotas import mutations
from ottla.server.quotas.clients import RequestUsage
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.handlers.admin import AdminBroker, admin_broker

NONE, THROTTLED = ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED
# A burst of five partitions, and hardly any more for a long time.
SETTINGS = {
    "controller_quota_window_num": "1",
    "controller_quota_window_size_seconds": "5000",
}
RATE = {"controller_mutation_rate": "0.001"}


def limited(broker: AdminBroker, version: int) -> RequestContext:
    """Return the context of a request of a client with the quota."""
    broker.quotas.settings_changed("clients", "c", RATE)
    client = broker.quotas.client("ANONYMOUS", "c")
    assert client is not None
    return broker.context(version, RequestUsage(client, broker.clock.monotonic()))


def throttle_ms(broker: AdminBroker, context: RequestContext) -> int:
    """Return how long the client has to wait after the request."""
    assert context.usage is not None
    return context.usage.settle(broker.clock.monotonic())


async def create(
    broker: AdminBroker, context: RequestContext, **partitions: int
) -> dict[str | None, ErrorCode]:
    """Create topics; return the codes by name."""
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(name=name, num_partitions=count, replication_factor=1)
            for name, count in partitions.items()
        ],
        timeout_ms=1000,
    )
    response = await create_topics.handle(context, request)
    return {item.name: ErrorCode(item.error_code) for item in response.topics}


@pytest.mark.parametrize(("version", "code"), [(5, NONE), (6, THROTTLED)])
async def test_topics_beyond_the_quota(version: int, code: ErrorCode) -> None:
    """The burst that exhausts the quota is served; after it, v6 is rejected and v5 throttled."""
    async with admin_broker(**SETTINGS) as broker:
        first = limited(broker, version)
        # Topics that cannot be created do not count: 9 partitions would be too many.
        codes = await create(broker, first, **{"a": 4, "b": 2, "no such name!": 9})
        assert codes == {
            "a": NONE,
            "b": NONE,
            "no such name!": ErrorCode.INVALID_TOPIC_EXCEPTION,
        }
        second = limited(broker, version)
        assert await create(broker, second, c=1, a=1) == {
            "c": code,
            "a": ErrorCode.TOPIC_ALREADY_EXISTS,
        }
        assert ("c" in broker.image.topics) is (code is NONE)
        assert throttle_ms(broker, second) == pytest.approx(
            2_000_000 if code is NONE else 1_000_000, abs=1000
        )


@pytest.mark.parametrize(("version", "code"), [(4, NONE), (5, THROTTLED)])
async def test_deletions_count_as_well(version: int, code: ErrorCode) -> None:
    """A deletion counts the partitions of the topic; a missing topic counts nothing."""
    async with admin_broker(**SETTINGS) as broker:
        await create(broker, broker.context(7), a=6, b=1)
        for number, (name, expected) in enumerate(
            [("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), ("a", NONE), ("b", code)]
        ):
            context = limited(broker, version)
            request = DeleteTopicsRequest(topic_names=[name], timeout_ms=1000)
            response = await delete_topics.handle(context, request)
            assert response.responses[0].error_code == expected, number
        assert set(broker.image.topics) == (set() if code is NONE else {"b"})


async def test_deletions_by_id_count_as_well() -> None:
    """Version 6 identifies topics by their ids."""
    async with admin_broker(**SETTINGS) as broker:
        await create(broker, broker.context(7), a=6, b=1)
        codes = []
        for name in ("a", "b"):
            state = DeleteTopicState(name=None, topic_id=broker.image.topics[name].topic_id)
            request = DeleteTopicsRequest(topics=[state], timeout_ms=1000)
            response = await delete_topics.handle(limited(broker, 6), request)
            codes.append(response.responses[0].error_code)
        assert codes == [NONE, THROTTLED]


@pytest.mark.parametrize(("version", "code"), [(2, NONE), (3, THROTTLED)])
async def test_added_partitions_count(version: int, code: ErrorCode) -> None:
    """The count is the number of added partitions, also with validate_only, as in Kafka."""
    async with admin_broker(**SETTINGS) as broker:
        await create(broker, broker.context(7), a=10)
        codes = []
        for count in (13, 5, 16, 17):
            request = CreatePartitionsRequest(
                topics=[CreatePartitionsTopic(name="a", count=count, assignments=None)],
                timeout_ms=1000,
            )
            response = await create_partitions.handle(limited(broker, version), request)
            codes.append(response.results[0].error_code)
        assert codes == [NONE, ErrorCode.INVALID_PARTITIONS, NONE, code]


async def test_request_without_a_quota_is_sent_once() -> None:
    """The request is sent to the controller once."""
    async with admin_broker(**SETTINGS) as broker:
        assert await create(broker, broker.context(7), a=100) == {"a": NONE}
        assert await create(broker, broker.context(7), b=100) == {"b": NONE}


async def test_topics_that_are_created_on_first_use_count() -> None:
    """Metadata cannot be rejected: the client is throttled, and the next creation is rejected."""
    async with admin_broker(num_partitions="7", **SETTINGS) as broker:
        context = limited(broker, 12)
        requested = MetadataRequestTopic(name="first-use")
        context.broker.tasks, context.broker.cluster_id = broker.world.tasks, "c"
        context.address_of = lambda _: ("127.0.0.1", 9092)  # type: ignore[method-assign]
        response = metadata.handle(context, MetadataRequest(topics=[requested]))
        assert isinstance(response, asyncio.Future)
        assert (await response).topics[0].error_code == 0
        assert throttle_ms(broker, context) == pytest.approx(2_000_000, abs=1000)
        assert await create(broker, limited(broker, 7), more=1) == {"more": THROTTLED}


async def test_a_limited_creation_is_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller counts a topic when it has passed all checks; no request validates it before."""
    planned: list[str] = []
    place = creation.place_topic

    def noted(request: TopicRequest, *arguments: Any) -> creation.Placement:
        planned.append(request.name)
        return place(request, *arguments)

    monkeypatch.setattr(creation, "place_topic", noted)
    async with admin_broker(**SETTINGS) as broker:
        # The two names collide: the second topic is rejected, and does not count.
        codes = await create(broker, limited(broker, 7), **{"a.b": 4, "a_b": 9, "c": 2, "d": 1})
    assert list(codes.values()) == [NONE, ErrorCode.INVALID_TOPIC_EXCEPTION, NONE, THROTTLED]
    assert planned == ["a.b", "a_b", "c", "d"]


async def test_a_topic_that_is_planned_again_counts_once() -> None:
    """After a conflict in the tree the controller asks again for the same topic."""
    async with admin_broker(**SETTINGS) as broker:
        context = limited(broker, 7)
        admit = mutations.admission(context, strict_since=6)
        assert [admit("a", 6), admit("a", 6)] == [None, None]
        refused = admit("b", 1)
        assert refused is not None
        assert refused.code is THROTTLED
        assert throttle_ms(broker, context) == pytest.approx(1_000_000, abs=1000)
