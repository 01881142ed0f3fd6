"""ListOffsets (key 2), versions 1-11: offsets by time, and the ends of a partition.

v1: one offset. v2: isolation level (KIP-98). v4: leader epochs (KIP-320). v5: OFFSET_NOT_AVAILABLE
(KIP-207). v6: flexible. v7: max timestamp -3 (KIP-734). v8: earliest local -4 (KIP-405). v9: latest
tiered -5 (KIP-1005). v10: timeout. v11: earliest pending upload -6 (KIP-1023).

Not done: tiered storage. As in Kafka without it, -4 is the earliest offset, -5 and -6 find nothing.
"""

from collections.abc import Callable
from typing import NamedTuple

from ottla.base.errors import ApiError, ErrorCode, StorageError
from ottla.replication import leading
from ottla.replication.partition import Partition
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.wire.schema import first_version

API = ApiKey.LIST_OFFSETS
MIN_VERSION = 1
MAX_VERSION = 11

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

_CONSUMER = -1
_FIRST_VERSION_OF = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_FIRST_VERSION_WITH_LEADER_EPOCH = first_version(ListOffsetsPartitionResponse, "leader_epoch")
_FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE = 5


class FoundOffset(NamedTuple):
    """An offset and its timestamp and epoch; -1 for each if nothing was found."""

    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


NOTHING = FoundOffset()


def handle(context: RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Return a result for each partition; a duplicate partition is INVALID_REQUEST."""
    partitions_by_topic: dict[str, dict[int, ListOffsetsPartition | None]] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            of_topic = partitions_by_topic.setdefault(topic.name, {})
            of_topic[partition.partition_index] = (
                None if partition.partition_index in of_topic else partition
            )
    topics = [
        ListOffsetsTopicResponse(
            name=name,
            partitions=[
                _twice(index) if partition is None else _answer(context, request, name, partition)
                for index, partition in of_topic.items()
            ],
        )
        for name, of_topic in partitions_by_topic.items()
    ]
    return ListOffsetsResponse(topics=topics)


def _twice(index: int) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=index, error_code=int(ErrorCode.INVALID_REQUEST)
    )


def _answer(
    context: RequestContext,
    request: ListOffsetsRequest,
    topic: str,
    requested: ListOffsetsPartition,
) -> ListOffsetsPartitionResponse:
    try:
        if requested.timestamp < 0 and context.api_version < _FIRST_VERSION_OF.get(
            requested.timestamp, 99
        ):
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        partition = context.broker.replicas.get(topic, requested.partition_index)
        partition.check_leader(requested.current_leader_epoch)
        result = _find(partition, request, requested.timestamp, context.api_version)
    except ApiError as error:
        return ListOffsetsPartitionResponse(
            partition_index=requested.partition_index, error_code=int(error.code)
        )
    except StorageError:
        return ListOffsetsPartitionResponse(
            partition_index=requested.partition_index, error_code=int(ErrorCode.KAFKA_STORAGE_ERROR)
        )
    response = ListOffsetsPartitionResponse(
        partition_index=requested.partition_index, timestamp=result.timestamp, offset=result.offset
    )
    if context.api_version >= _FIRST_VERSION_WITH_LEADER_EPOCH:
        response.leader_epoch = result.leader_epoch
    return response


def _find(
    partition: Partition, request: ListOffsetsRequest, timestamp: int, version: int
) -> FoundOffset:
    find_offset = _NAMED.get(timestamp)
    if request.replica_id == _CONSUMER:
        if timestamp == LATEST or find_offset is None:
            _check_end_known(partition, version)
        end_offset = leading.readable_end(partition, request.isolation_level)
    else:
        # Brokers, and tools with a replica id, read uncommitted records, too.
        end_offset = partition.log.log_end_offset
    if find_offset is not None:
        return find_offset(partition, end_offset)
    return _below(partition.log.offset_for_timestamp(timestamp), end_offset)


def _check_end_known(partition: Partition, version: int) -> None:
    """Raise if the new leader does not know yet how much of its log is committed (KIP-207)."""
    if not partition.is_end_known:
        if version >= _FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE:
            raise ApiError(ErrorCode.OFFSET_NOT_AVAILABLE)
        raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE)


def _below(result: tuple[int, int, int] | None, end_offset: int) -> FoundOffset:
    """Return nothing if the offset is one that a consumer cannot read yet."""
    if result is None:
        return NOTHING
    timestamp, offset, leader_epoch = result
    return FoundOffset(timestamp, offset, leader_epoch) if offset < end_offset else NOTHING


def _latest(partition: Partition, end_offset: int) -> FoundOffset:
    return FoundOffset(offset=end_offset, leader_epoch=partition.leader_epoch)


def _earliest(partition: Partition, end_offset: int) -> FoundOffset:
    offset = partition.log.log_start_offset
    return FoundOffset(offset=offset, leader_epoch=partition.log.epochs.epoch_of(offset))


def _of_max_timestamp(partition: Partition, end_offset: int) -> FoundOffset:
    return _below(partition.log.offset_of_max_timestamp(), end_offset)


def _nothing(partition: Partition, end_offset: int) -> FoundOffset:
    return NOTHING


_NAMED: dict[int, Callable[[Partition, int], FoundOffset]] = {
    LATEST: _latest,
    EARLIEST: _earliest,
    MAX_TIMESTAMP: _of_max_timestamp,
    EARLIEST_LOCAL: _earliest,
    LATEST_TIERED: _nothing,
    EARLIEST_PENDING_UPLOAD: _nothing,
}
