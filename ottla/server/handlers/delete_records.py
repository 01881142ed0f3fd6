"""DeleteRecords (key 21), versions 0-2: delete the records before an offset (KIP-107).

v0, v1: the same. v2: flexible. Offset -1 means the high watermark.

Not done: nothing; there are no followers yet whose log start offset has to be awaited.
"""

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.names import is_internal
from ottla.server.context import RequestContext
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

_NO_LOW_WATERMARK = -1


def handle(context: RequestContext, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    """Advance the log start offset of each partition; the next retention removes older segments."""
    requested: dict[str, dict[int, DeleteRecordsPartition]] = {}
    for topic in request.topics:
        for item in topic.partitions:
            # As in Kafka, the last entry of a partition counts, and there is one result for it.
            requested.setdefault(topic.name, {})[item.partition_index] = item
    topics = [
        DeleteRecordsTopicResult(
            name=name, partitions=[_delete(context, name, item) for item in items.values()]
        )
        for name, items in requested.items()
    ]
    return DeleteRecordsResponse(topics=topics)


def _delete(
    context: RequestContext, topic: str, item: DeleteRecordsPartition
) -> DeleteRecordsPartitionResult:
    try:
        partition = context.broker.replicas.get(topic, item.partition_index)
        if is_internal(topic):
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        if "delete" not in partition.log.config.cleanup_policy:
            raise ApiError(ErrorCode.POLICY_VIOLATION)
        low_watermark = partition.delete_records(item.offset)
    except ApiError as error:
        return DeleteRecordsPartitionResult(
            partition_index=item.partition_index,
            low_watermark=_NO_LOW_WATERMARK,
            error_code=int(error.code),
        )
    return DeleteRecordsPartitionResult(
        partition_index=item.partition_index, low_watermark=low_watermark
    )
