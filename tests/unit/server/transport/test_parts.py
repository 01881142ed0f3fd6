"""Requests in parts: all elements in some part, and one response for all of them."""

import random
from collections import Counter
from typing import Any

import pytest

from ottla.base.errors import ProtocolError
from ottla.server.transport.costs import COSTS, Split
from ottla.server.transport.parts import LargeResponse, Merger, parts_of
from ottla.wire import schema
from ottla.wire.api_keys import APIS, ApiKey
from ottla.wire.fields import Array, Message, Nested
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

SPLITS = [(key, split) for key, cost in COSTS.items() for split in cost.splits]
LIST_OFFSETS = COSTS[ApiKey.LIST_OFFSETS].splits[0]
OFFSET_FETCH = COSTS[ApiKey.OFFSET_FETCH].splits[0]
DESCRIBE_CONFIGS = COSTS[ApiKey.DESCRIBE_CONFIGS].splits[0]
METADATA = COSTS[ApiKey.METADATA].splits[0]


def whole(response: Any, version: int, large: LargeResponse | None) -> Any:
    """Decode a response that was merged."""
    assert large is not None
    encode = schema.encoder(type(response), version)
    data = b"".join(large.parts(b"", encode))
    return schema.decode(type(response), version, data)[0]


@pytest.mark.parametrize(("key", "split"), SPLITS, ids=lambda one: getattr(one, "name", ""))
def test_the_lists_of_the_table_exist(key: ApiKey, split: Split) -> None:
    """Every list and every field that a row of the table of costs names is one of the messages."""

    def walk(message: type[Any], lists: tuple[str, ...]) -> list[type[Any] | None]:
        at: type[Any] | None = message
        found: list[type[Any] | None] = []
        for name in lists:
            assert at is not None
            field = next(field for field in at.FIELDS if field.name == name)
            assert isinstance(field.type, Array)
            at = field.type.item.struct if isinstance(field.type.item, Nested) else None
            found.append(at)
        return found

    def fields(struct: type[Any] | None) -> set[str]:
        return {field.name for field in struct.FIELDS} if struct is not None else set()

    api = APIS[key]
    asked, answered = walk(api.request, split.request), walk(api.response, split.response)
    for level, names in enumerate(split.names):
        assert set(names) <= fields(asked[level])
        # A response names its elements by at least one of these fields.
        assert set(names) & fields(answered[level])
    assert set(split.key or ()) <= fields(asked[-1])
    for field, name in split.also:
        assert name in fields(walk(api.response, (field,))[0])


def leaves(request: ListOffsetsRequest) -> list[tuple[str, int, int]]:
    return [
        (topic.name, partition.partition_index, partition.timestamp)
        for topic in request.topics
        for partition in topic.partitions
    ]


def list_offsets(rng: random.Random, count: int) -> ListOffsetsRequest:
    request = ListOffsetsRequest(replica_id=-1, isolation_level=1)
    for _ in range(count):
        numbers = [rng.randrange(4) for _ in range(rng.randrange(6))]
        request.topics.append(
            ListOffsetsTopic(
                name=f"topic-{rng.randrange(5)}",
                partitions=[
                    ListOffsetsPartition(partition_index=number, timestamp=rng.randrange(9))
                    for number in numbers
                ],
            )
        )
    return request


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("at_once", [3, 4, 7, 1000])
def test_each_leaf_is_in_one_part(seed: int, at_once: int) -> None:
    """Parts have the fields of the whole, and at most `at_once` leaves; equal ones are together."""
    rng = random.Random(seed)
    request = list_offsets(rng, 30)
    before = leaves(request)
    names = (("name",),)
    split = Split(request=("topics", "partitions"), response=("topics", "partitions"), names=names,
                  at_once=at_once, key=("partition_index",))  # fmt: skip
    parts = [part for part in parts_of(split, request) if part is not None]
    assert all(part.isolation_level == 1 for part in parts)
    found = [leaf for part in parts for leaf in leaves(part)]
    assert Counter(found) == Counter(before)
    assert leaves(request) == before
    for part in parts:
        inside = Counter((name, number) for name, number, _ in leaves(part))
        assert sum(inside.values()) <= at_once
        outside = Counter((name, number) for name, number, _ in before)
        for key, count in inside.items():
            # A handler that refuses partitions that are named twice refuses all of them.
            assert (count > 1) == (outside[key] > 1)


@pytest.mark.parametrize("seed", range(20))
def test_plain_parts_keep_the_order(seed: int) -> None:
    """Without a key the leaves are divided as they come."""
    rng = random.Random(seed)
    request = list_offsets(rng, 20)
    split = Split(request=("topics", "partitions"), response=("topics", "partitions"), at_once=4,
                  names=(("name",),))  # fmt: skip
    parts = [part for part in parts_of(split, request) if part is not None]
    assert [leaf for part in parts for leaf in leaves(part)] == leaves(request)
    assert all(len(leaves(part)) <= 4 for part in parts)


def test_topics_without_partitions_are_in_a_part() -> None:
    """They have a row in the response, and count."""
    request = ElectLeadersRequest(
        topic_partitions=[TopicPartitions(topic="a"), TopicPartitions(topic="b", partitions=[1])]
    )
    split = COSTS[ApiKey.ELECT_LEADERS].splits[0]
    parts = [part for part in parts_of(split, request) if part is not None]
    assert [(one.topic, one.partitions) for part in parts for one in part.topic_partitions] == [
        ("a", []),
        ("b", [1]),
    ]


def test_repeated_elements_are_answered_once() -> None:
    """The handler sees two of them, so that it knows; other topics have their own."""
    request = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id=group,
                topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[7] * 5000)] * 2,
            )
            for group in ("a", "b")
        ]
    )
    parts = [part for part in parts_of(OFFSET_FETCH, request) if part is not None]
    assert sum(
        len(topic.partition_indexes)
        for part in parts
        for group in part.groups
        for topic in group.topics
    ) == 4  # fmt: skip


@pytest.mark.parametrize("topics", [None, []])
def test_elements_without_lists(topics: Any) -> None:
    """A group whose topics are null asks for all, and stays so."""
    groups = [OffsetFetchRequestGroup(group_id=f"g{number}", topics=topics) for number in range(9)]
    request = OffsetFetchRequest(groups=groups)
    parts = [part for part in parts_of(OFFSET_FETCH, request) if part is not None]
    found = [group for part in parts for group in part.groups]
    assert [group.group_id for group in found] == [f"g{number}" for number in range(9)]
    assert all(group.topics == topics for group in found)


def test_rows_of_several_parts_are_merged_by_their_names() -> None:
    """Groups and topics appear once; the first error of a group counts."""
    merger = Merger(OFFSET_FETCH, OffsetFetchResponse, 9, 10**6)
    for first, error in ((0, 0), (10, 16), (20, 0)):
        topics = [
            OffsetFetchResponseTopics(
                name=name,
                partitions=[
                    OffsetFetchResponsePartitions(partition_index=number, committed_offset=number)
                    for number in range(first, first + 10)
                ],
            )
            for name in ("t", "u")
        ]
        row = OffsetFetchResponseGroup(group_id="g", topics=topics, error_code=error)
        merger.add(OffsetFetchResponse(groups=[row]))
    found = whole(OffsetFetchResponse(), 9, merger.response())
    (group,) = found.groups
    assert (group.group_id, group.error_code) == ("g", 16)
    assert [topic.name for topic in group.topics] == ["t", "u"]
    for topic in group.topics:
        assert [row.partition_index for row in topic.partitions] == list(range(30))


def test_other_lists_of_the_response() -> None:
    """The brokers in Metadata, which each part has, appear once."""
    merger = Merger(METADATA, MetadataResponse, 9, 10**6)
    for number in range(3):
        merger.add(
            MetadataResponse(
                brokers=[MetadataResponseBroker(node_id=1, host="h"), MetadataResponseBroker(
                    node_id=number + 2, host="h")],
                topics=[MetadataResponseTopic(name=f"t{number}")],
                controller_id=5,
            )
        )  # fmt: skip
    found = whole(MetadataResponse(), 9, merger.response())
    assert [broker.node_id for broker in found.brokers] == [1, 2, 3, 4]
    assert [topic.name for topic in found.topics] == ["t0", "t1", "t2"]
    assert found.controller_id == 5


def resource(name: str, *keys: str) -> DescribeConfigsResource:
    return DescribeConfigsResource(
        resource_type=2, resource_name=name, configuration_keys=list(keys) or None
    )


def described(request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Return a row for each resource."""
    return DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(
                resource_type=one.resource_type,
                resource_name=one.resource_name,
                configs=[DescribeConfigsResourceResult(name="k", value="v")],
            )
            for one in request.resources
        ]
    )


def test_few_repetitions_reach_the_handler() -> None:
    """Two of a thousand equal elements; elements that differ in another field are not equal."""
    request = DescribeConfigsRequest(
        resources=[
            *[resource("a")] * 1000,
            *[resource("a", "x"), resource("a", "y")] * 3,
            resource("b"),
        ]
    )
    parts = [part for part in parts_of(DESCRIBE_CONFIGS, request) if part is not None]
    counts = Counter(
        (one.resource_name, *(one.configuration_keys or ()))
        for part in parts
        for one in part.resources
    )
    assert counts == {("a",): 2, ("a", "x"): 2, ("a", "y"): 2, ("b",): 1}


def test_a_response_that_grows_too_large() -> None:
    """Its request fails before all of it is in memory."""
    merger = Merger(DESCRIBE_CONFIGS, DescribeConfigsResponse, 4, 1000)
    with pytest.raises(ProtocolError, match="more than 1000 bytes"):
        for number in range(1000):
            part = DescribeConfigsRequest(resources=[resource(f"t{number}")])
            merger.add(described(part))
    assert merger.size_bytes < 1100


def test_no_response() -> None:
    """Produce with acks=0 has no response."""
    assert Merger(LIST_OFFSETS, ListOffsetsResponse, 9, 1000).response() is None


def answer(request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Respond to each partition, topic by topic, as handlers do."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=one.partition_index, offset=one.timestamp
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_merged_response_has_all_rows(seed: int) -> None:
    """Nothing is lost and nothing is added, whatever the parts."""
    rng = random.Random(seed)
    request = list_offsets(rng, 40)
    split = Split(request=("topics", "partitions"), response=("topics", "partitions"),
                  names=(("name",),), at_once=rng.randrange(3, 9), key=("partition_index",))  # fmt: skip
    merger = Merger(split, ListOffsetsResponse, 7, 10**6)
    for part in parts_of(split, request):
        if part is not None:
            merger.add(answer(part))
    found = whole(ListOffsetsResponse(), 7, merger.response())
    rows = [(topic.name, one.partition_index, one.offset) for topic in found.topics
            for one in topic.partitions]  # fmt: skip
    assert Counter(rows) == Counter(leaves(request))
    assert len({topic.name for topic in found.topics}) == len(found.topics)


def test_which_split_applies() -> None:
    """A request that has nothing in the lists is handled as a whole."""
    assert not METADATA.applies_to(MetadataRequest(topics=None))
    assert not METADATA.applies_to(MetadataRequest(topics=[]))
    assert METADATA.applies_to(MetadataRequest(topics=[MetadataRequestTopic(name="a")]))


def test_messages_of_the_table() -> None:
    """Every split belongs to messages."""
    assert all(issubclass(APIS[key].request, Message) for key, _ in SPLITS)
