"""DeleteRecords (key 21), versions 0-2: delete the records before an offset (KIP-107).

v0, v1: the same. v2: flexible. Offset -1 means the high watermark. A topic that is only compacted
is POLICY_VIOLATION; one with an empty cleanup.policy, which keeps everything, is not.

The response waits until the logs of all live replicas start at the offset, as Kafka's
DelayedDeleteRecords.

Not done: nothing.
"""

import asyncio
from functools import partial
from typing import TypeAlias

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.names import is_internal
from ottla.replication import leading
from ottla.replication.partition import Partition
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext
from ottla.server.quotas.steps import counted
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

API = ApiKey.DELETE_RECORDS
MIN_VERSION = 0
MAX_VERSION = 2
PROPERTIES = ApiProperties(is_administrative=True)

_NO_LOW_WATERMARK = -1
# A result, or its future while followers do the same.
_ResultOrFuture: TypeAlias = (
    "DeleteRecordsPartitionResult | asyncio.Future[DeleteRecordsPartitionResult]"
)


def handle(
    context: RequestContext, request: DeleteRecordsRequest
) -> "DeleteRecordsResponse | asyncio.Future[DeleteRecordsResponse]":
    """Advance the log start offset of each partition; the next retention removes older segments.

    Returns a future if followers have to do the same.
    """
    requested: dict[str, dict[int, DeleteRecordsPartition]] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            # As in Kafka, the last entry of a partition counts, and there is one result for it.
            requested.setdefault(topic.name, {})[partition.partition_index] = partition
    seconds = request.timeout_ms / 1000
    rows = {
        name: [_delete(context, name, partition, seconds) for partition in partitions.values()]
        for name, partitions in requested.items()
    }
    if any(
        not isinstance(row, DeleteRecordsPartitionResult)
        for of_topic in rows.values()
        for row in of_topic
    ):
        work = counted(_answer_later(rows), context.usage, context.broker.clock)
        return context.broker.tasks.spawn(work, "delete records")
    return _answer(
        {
            name: [row for row in of_topic if isinstance(row, DeleteRecordsPartitionResult)]
            for name, of_topic in rows.items()
        }
    )


async def _answer_later(
    rows: dict[str, list[_ResultOrFuture]],
) -> DeleteRecordsResponse:
    return _answer(
        {
            name: [
                row if isinstance(row, DeleteRecordsPartitionResult) else await row
                for row in of_topic
            ]
            for name, of_topic in rows.items()
        }
    )


def _answer(rows: dict[str, list[DeleteRecordsPartitionResult]]) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(name=name, partitions=of_topic)
            for name, of_topic in rows.items()
        ]
    )


def _delete(
    context: RequestContext, topic: str, requested: DeleteRecordsPartition, seconds: float
) -> _ResultOrFuture:
    number = requested.partition_index
    try:
        partition = context.broker.replicas.get(topic, number)
        if is_internal(topic):
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        if partition.log.config.cleanup_policy == {"compact"}:
            raise ApiError(ErrorCode.POLICY_VIOLATION)
        target = leading.delete_records(partition, requested.offset)
    except ApiError as error:
        return _refused(number, error.code)
    check = partial(_deleted, context, partition, target)
    row = check()
    if row is not None:
        return row
    return partition.wait(check, lambda: _refused(number, ErrorCode.REQUEST_TIMED_OUT), seconds)


def _deleted(
    context: RequestContext, partition: Partition, target: int
) -> DeleteRecordsPartitionResult | None:
    """Return the result if all live replicas have deleted, or if this broker leads no longer."""
    brokers = context.broker.current.image.brokers
    try:
        low_watermark = leading.low_watermark(partition, brokers.__contains__)
    except ApiError as error:
        return _refused(partition.partition, error.code)
    if low_watermark < target:
        return None
    return DeleteRecordsPartitionResult(
        partition_index=partition.partition, low_watermark=low_watermark
    )


def _refused(number: int, code: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=number, low_watermark=_NO_LOW_WATERMARK, error_code=int(code)
    )
