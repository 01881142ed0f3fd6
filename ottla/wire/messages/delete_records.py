"""DeleteRecords (API key 21): advance the log start offset of partitions.

Versions 0-2; what each one added:

    2     flexible

Offset -1 means the high watermark.
"""

from ottla.wire.schema import Message, Struct, array, int16, int32, int64, string


class DeleteRecordsPartition(Struct):
    """An element of `partitions`."""

    partition_index: int = int32()
    offset: int = int64()


class DeleteRecordsTopic(Struct):
    """An element of `topics`."""

    name: str = string()
    partitions: list[DeleteRecordsPartition] = array(DeleteRecordsPartition)


class DeleteRecordsRequest(Message, api_key=21, versions=(0, 2), flexible_since=2):
    """Request of DeleteRecords."""

    topics: list[DeleteRecordsTopic] = array(DeleteRecordsTopic)
    timeout_ms: int = int32()


class DeleteRecordsPartitionResult(Struct):
    """An element of `partitions`."""

    partition_index: int = int32()
    low_watermark: int = int64()
    error_code: int = int16()


class DeleteRecordsTopicResult(Struct):
    """An element of `topics`."""

    name: str = string()
    partitions: list[DeleteRecordsPartitionResult] = array(DeleteRecordsPartitionResult)


class DeleteRecordsResponse(Message, api_key=21, versions=(0, 2), flexible_since=2):
    """Response of DeleteRecords."""

    throttle_time_ms: int = int32()
    topics: list[DeleteRecordsTopicResult] = array(DeleteRecordsTopicResult)
