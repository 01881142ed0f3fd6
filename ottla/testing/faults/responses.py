"""Responses that have an error in all parts, as clients of Kafka expect it.

Not done: other APIs without an error code of their own (DescribeGroups, DescribeConfigs, ACLs).
"""

from collections.abc import Callable
from typing import Any

from ottla.base.errors import ApiError, ErrorCode, ProtocolError
from ottla.security.acls import AclOperation
from ottla.server.authorization.by_topic import ByTopic
from ottla.server.context import RequestContext
from ottla.server.transport.dispatch import ApiRoute
from ottla.wire.api_keys import APIS, ApiKey
from ottla.wire.messages import (
    add_partitions_to_txn,
    create_topics,
    delete_records,
    delete_topics,
    fetch,
    find_coordinator,
    list_offsets,
    offset_commit,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    txn_offset_commit,
)

# Only their rows are used, not the operation.
_ANY = AclOperation.DESCRIBE
_BY_TOPIC = {
    ApiKey.PRODUCE: ByTopic(
        operation=_ANY,
        response=produce.ProduceResponse,
        topic=produce.TopicProduceResponse,
        partition=produce.PartitionProduceResponse,
        topics=("topic_data", "responses"),
        partitions=("partition_data", "partition_responses"),
        number=("index", "index"),
        values={"base_offset": -1},
    ),
    ApiKey.FETCH: ByTopic(
        operation=_ANY,
        response=fetch.FetchResponse,
        topic=fetch.FetchableTopicResponse,
        partition=fetch.PartitionData,
        topics=("topics", "responses"),
        number=("partition", "partition_index"),
        name="topic",
        values={"high_watermark": -1, "records": b""},
    ),
    ApiKey.LIST_OFFSETS: ByTopic(
        operation=_ANY,
        response=list_offsets.ListOffsetsResponse,
        topic=list_offsets.ListOffsetsTopicResponse,
        partition=list_offsets.ListOffsetsPartitionResponse,
    ),
    ApiKey.OFFSET_COMMIT: ByTopic(
        operation=_ANY,
        response=offset_commit.OffsetCommitResponse,
        topic=offset_commit.OffsetCommitResponseTopic,
        partition=offset_commit.OffsetCommitResponsePartition,
    ),
    ApiKey.TXN_OFFSET_COMMIT: ByTopic(
        operation=_ANY,
        response=txn_offset_commit.TxnOffsetCommitResponse,
        topic=txn_offset_commit.TxnOffsetCommitResponseTopic,
        partition=txn_offset_commit.TxnOffsetCommitResponsePartition,
    ),
    ApiKey.DELETE_RECORDS: ByTopic(
        operation=_ANY,
        response=delete_records.DeleteRecordsResponse,
        topic=delete_records.DeleteRecordsTopicResult,
        partition=delete_records.DeleteRecordsPartitionResult,
        values={"low_watermark": -1},
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: ByTopic(
        operation=_ANY,
        response=offset_for_leader_epoch.OffsetForLeaderEpochResponse,
        topic=offset_for_leader_epoch.OffsetForLeaderTopicResult,
        partition=offset_for_leader_epoch.EpochEndOffset,
        number=("partition", "partition"),
        name="topic",
    ),
}


def _find_coordinator(request: Any, code: int) -> Any:
    return find_coordinator.FindCoordinatorResponse(
        error_code=code,
        node_id=-1,
        port=-1,
        coordinators=[
            find_coordinator.Coordinator(key=key, node_id=-1, port=-1, error_code=code)
            for key in request.coordinator_keys
        ],
    )


def _offset_fetch(request: Any, code: int) -> Any:
    groups = [
        offset_fetch.OffsetFetchResponseGroup(group_id=group.group_id, error_code=code)
        for group in request.groups
    ]
    return offset_fetch.OffsetFetchResponse(error_code=code, groups=groups)


def _create_topics(request: Any, code: int) -> Any:
    return create_topics.CreateTopicsResponse(
        topics=[
            create_topics.CreatableTopicResult(name=topic.name, error_code=code)
            for topic in request.topics
        ]
    )


def _delete_topics(request: Any, code: int) -> Any:
    row = delete_topics.DeletableTopicResult
    return delete_topics.DeleteTopicsResponse(
        responses=[
            *(
                row(name=item.name, topic_id=item.topic_id, error_code=code)
                for item in request.topics
            ),
            *(row(name=name, error_code=code) for name in request.topic_names),
        ]
    )


def _add_partitions(request: Any, code: int) -> Any:
    rows = add_partitions_to_txn
    return rows.AddPartitionsToTxnResponse(
        error_code=code,
        results_by_topic_v3_and_below=[
            rows.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    rows.AddPartitionsToTxnPartitionResult(
                        partition_index=number, partition_error_code=code
                    )
                    for number in topic.partitions
                ],
            )
            for topic in request.v3_and_below_topics
        ],
    )


_OTHERS: dict[ApiKey, Callable[[Any, int], Any]] = {
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.OFFSET_FETCH: _offset_fetch,
    ApiKey.CREATE_TOPICS: _create_topics,
    ApiKey.DELETE_TOPICS: _delete_topics,
    ApiKey.ADD_PARTITIONS_TO_TXN: _add_partitions,
}


def refuse_without_error(api: ApiKey) -> None:
    """Raise ValueError if the responses of an API cannot have an error that a test chooses."""
    if api is ApiKey.METADATA or api in _BY_TOPIC or api in _OTHERS:
        return
    if not any(field.name == "error_code" for field in APIS[int(api)].response.FIELDS):
        raise ValueError(
            f"responses to {api.name} have no error code: use cut_connections or latency"
        )


def error_response(route: ApiRoute, context: RequestContext, request: Any, code: ErrorCode) -> Any:
    """Return the response to a request that fails with this error in all parts.

    Raises ProtocolError if the client expects no response: only a closed connection shows it.
    """
    api = ApiKey(context.api_key)
    if api is ApiKey.PRODUCE and request.acks == 0:
        raise ProtocolError("a fault of the test")
    if api in _BY_TOPIC:
        return _BY_TOPIC[api].all_refused(request, code)
    if api in _OTHERS:
        return _OTHERS[api](request, int(code))
    return route.failure(ApiError(code))


def with_error_in_topics(response: Any, code: ErrorCode, topic: str | None) -> Any:
    """Return a Metadata response whose topics, or one topic, have this error."""
    # Other responses share the rows.
    response.topics = [
        type(row)(name=row.name, topic_id=row.topic_id, error_code=int(code))
        if topic in (None, row.name)
        else row
        for row in response.topics
    ]
    return response
