"""The table of costs has a row for every API that is served, and bounds for everything."""

import pytest

from ottla.server.transport.apis import ROWS
from ottla.server.transport.costs import COSTS, UNLIMITED
from ottla.wire import schema
from ottla.wire.api_keys import APIS, ApiKey
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

KEYS = [ApiKey(int(row.handler.API)) for row in ROWS]
# Clients may send old versions of some of these, and administrators others.
AMONG_BROKERS = {
    ApiKey(int(row.handler.API))
    for row in ROWS
    if row.needs_proof and not row.proof_since and not row.is_for_administrators
}


def test_every_served_api_has_a_row() -> None:
    """An API that is added must declare its cost."""
    assert set(COSTS) == set(KEYS)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_bounds(key: ApiKey) -> None:
    """Only brokers that have proven to be brokers have no bound."""
    cost = COSTS[key]
    if key in AMONG_BROKERS:
        assert cost.large_bytes == UNLIMITED
        return
    # Such a request, and one that is decoded in the lane, takes a few milliseconds.
    assert cost.large_bytes <= 64 * 1024
    assert cost.objects_max <= 90_000
    assert cost.response_bytes_max <= 256 * 1024 * 1024
    assert cost.seconds_max <= 30
    if key is not ApiKey.PRODUCE:
        assert cost.request_bytes_max <= 16 * 1024 * 1024
    assert all(split.at_once <= 500 for split in cost.splits)


def test_only_a_list_of_elements_can_be_large() -> None:
    """APIs without a split have few objects, or a handler that divides the work itself."""
    whole = {key for key, cost in COSTS.items() if not cost.splits and cost.objects_max > 10_000}
    assert whole - AMONG_BROKERS == {
        ApiKey.FETCH,
        ApiKey.OFFSET_COMMIT,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.OFFSET_DELETE,
        ApiKey.JOIN_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.LEAVE_GROUP,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        ApiKey.DESCRIBE_LOG_DIRS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    }


NAMES = [f"a-topic-with-a-long-name-{number}" for number in range(10_000)]
# What Apache's admin client and consumers send for ten thousand topics.
USUAL = [
    DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=2, resource_name=name) for name in NAMES]
    ),
    MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in NAMES]),
    CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in NAMES]
    ),
    OffsetCommitRequest(
        group_id="group",
        topics=[
            OffsetCommitRequestTopic(
                name=name, partitions=[OffsetCommitRequestPartition(partition_index=0)]
            )
            for name in NAMES
        ],
    ),
]


@pytest.mark.parametrize("message", USUAL, ids=lambda message: type(message).__name__)
def test_ten_thousand_topics_are_within_the_bounds(message: object) -> None:
    """Usual clients never meet them."""
    key = next(key for key, api in APIS.items() if api.request is type(message))
    version = APIS[key].min_version if key == ApiKey.OFFSET_COMMIT else APIS[key].max_version
    data = schema.encode(message, version)  # type: ignore[arg-type]
    cost = COSTS[ApiKey(int(key))]
    assert len(data) <= cost.request_bytes_max
    schema.decoder(type(message), version)(data, budget=cost.objects_max)  # type: ignore[type-var]
