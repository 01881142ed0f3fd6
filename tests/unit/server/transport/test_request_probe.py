"""The dispatcher's counters of requests and errors."""

import pytest

from ottla.server.transport.request_probe import SAMPLED, ApiProbe, errors_of
from ottla.wire.api_keys import APIS, ApiKey
from ottla.wire.messages.api_versions import ApiVersionsResponse
from ottla.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from ottla.wire.messages.heartbeat import HeartbeatResponse
from ottla.wire.messages.list_groups import ListGroupsResponse
from ottla.wire.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)


def probe(key: ApiKey) -> ApiProbe:
    return ApiProbe(key, APIS[key].response, APIS[key].name)


def test_errors_are_counted_at_every_depth() -> None:
    """Error codes of the response and of each partition count; NONE is no error."""
    counted = probe(ApiKey.FETCH)
    partitions = [PartitionData(error_code=code) for code in (0, 3, 3, 6)]
    response = FetchResponse(
        error_code=70, responses=[FetchableTopicResponse(topic="t", partitions=partitions)]
    )
    assert counted.count_errors(response) == 4
    assert counted.errors == {70: 1, 3: 2, 6: 1}


def test_a_response_without_errors_counts_none() -> None:
    """The counter stays 0 with and without nested structures."""
    counted = probe(ApiKey.OFFSET_COMMIT)
    partition = OffsetCommitResponsePartition(partition_index=0)
    topic = OffsetCommitResponseTopic(name="t", partitions=[partition])
    assert counted.count_errors(OffsetCommitResponse(topics=[topic])) == 0
    assert counted.errors == {}
    assert probe(ApiKey.HEARTBEAT).count_errors(HeartbeatResponse(error_code=27)) == 1


@pytest.mark.parametrize("cls", [api.response for api in APIS.values()])
def test_every_response_can_be_searched_for_errors(cls: type) -> None:
    """A response with default values has no error code, or only NONE."""
    errors = errors_of(cls)
    assert errors is None or errors(cls(), {}) == 0


def test_frequent_requests_are_sampled() -> None:
    """One frequent request counts for sixteen; each of the others is measured."""
    frequent, rare = probe(ApiKey.PRODUCE), probe(ApiKey.CREATE_TOPICS)
    frequent.took(1.0, 1.001)
    rare.waited(1.0, 1.001, 1.5)
    assert frequent.total.count == frequent.local.count == SAMPLED
    assert (rare.total.count, rare.total.sum) == (1, 500_000)
    assert (rare.local.sum, rare.remote.sum) == (pytest.approx(1000, abs=1), 499_000)


def test_absent_nested_structures_are_no_errors() -> None:
    """A nullable structure may be null."""
    for response in (ApiVersionsResponse(), ListGroupsResponse()):
        errors = errors_of(type(response))
        assert errors is not None
        assert errors(response, {}) == 0
