"""Responses that have an error in all parts, as clients of Kafka expect it.

Not done: other APIs without an error code of their own (DescribeGroups, DescribeConfigs, ACLs).
"""

from collections.abc import Callable
from typing import Any

from ottla.base.errors import ApiError, ErrorCode, ProtocolError
from ottla.security.acls import AclOperation
from ottla.server.authorization import groups, records
from ottla.server.authorization.by_topic import ByTopic
from ottla.server.context import RequestContext
from ottla.server.transport.dispatch import ApiRoute
from ottla.wire.api_keys import APIS, ApiKey
from ottla.wire.messages import (
    add_partitions_to_txn,
    create_topics,
    delete_topics,
    fetch,
    find_coordinator,
    offset_fetch,
)

# Refused requests of these APIs have the same rows.
_BY_TOPIC = {
    ApiKey.PRODUCE: records.PRODUCE,
    ApiKey.LIST_OFFSETS: records.check_list_offsets,
    ApiKey.OFFSET_COMMIT: groups.COMMIT,
    ApiKey.TXN_OFFSET_COMMIT: records.OFFSETS_IN_TRANSACTION,
    ApiKey.DELETE_RECORDS: records.check_delete_records,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: records.EPOCHS,
    ApiKey.FETCH: ByTopic(
        operation=AclOperation.READ,
        response=fetch.FetchResponse,
        topic=fetch.FetchableTopicResponse,
        partition=fetch.PartitionData,
        topics=("topics", "responses"),
        number=("partition", "partition_index"),
        name="topic",
        values={"high_watermark": -1, "records": b""},
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
    rows = [
        offset_fetch.OffsetFetchResponseGroup(group_id=group.group_id, error_code=code)
        for group in request.groups
    ]
    return offset_fetch.OffsetFetchResponse(error_code=code, groups=rows)


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
