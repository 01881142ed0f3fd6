"""DescribeLogDirs (key 35), versions 1-5: log directories, and the logs in them (KIP-113).

v2: flexible. v3: error of the whole request. v4: total and usable bytes of the device (KIP-827).
v5: cordoned directories (KIP-1066).

Null topics mean all. A log that is being moved to another directory is listed in both: its copy
there is the future log, and its lag is the number of bytes still to be copied. A directory that has
failed is listed with KAFKA_STORAGE_ERROR and no logs.

A log that was set aside is listed if all topics are requested: the topic is then the name of its
folder, `orders-3.<id>-stray`, and the lag is unknown (-1). Apache Kafka does not list such logs.

Not done: no directory is ever cordoned.
"""

from collections.abc import Container, Mapping

from ottla.base.errors import ErrorCode
from ottla.server.context import RequestContext
from ottla.storage.directories.log_directory import LogDirectory
from ottla.storage.files.checkpoints import TopicPartition
from ottla.storage.log.log import Log
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

API = ApiKey.DESCRIBE_LOG_DIRS
MIN_VERSION = 1
MAX_VERSION = 5

_UNKNOWN_LAG = -1


def handle(context: RequestContext, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """Return the logs, directory by directory."""
    requested = None
    if request.topics is not None:
        requested = {
            (topic.topic, number) for topic in request.topics for number in topic.partitions
        }
    directories = context.broker.replicas.directories
    results = [
        _described(directory, directories.logs(), requested)
        for directory in directories.directories()
    ]
    return DescribeLogDirsResponse(results=results)


def _described(
    directory: LogDirectory,
    current: Mapping[TopicPartition, Log],
    requested: Container[TopicPartition] | None,
) -> DescribeLogDirsResult:
    result = DescribeLogDirsResult(log_dir=directory.path)
    if directory.failure is not None:
        result.error_code = int(ErrorCode.KAFKA_STORAGE_ERROR)
        return result
    try:
        result.total_bytes, result.usable_bytes = directory.space()
    except OSError:
        result.error_code = int(ErrorCode.KAFKA_STORAGE_ERROR)
        return result
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for key in sorted(directory.logs | directory.futures):
        if requested is None or key in requested:
            topics.setdefault(key[0], []).append(_partition(directory, key, current.get(key)))
    for stray in directory.strays.listed() if requested is None else ():
        topics[stray.name] = [
            DescribeLogDirsPartition(
                partition_index=stray.key[1],
                partition_size=stray.size_bytes,
                offset_lag=_UNKNOWN_LAG,
            )
        ]
    result.topics = [
        DescribeLogDirsTopic(name=name, partitions=partitions)
        for name, partitions in topics.items()
    ]
    return result


def _partition(
    directory: LogDirectory, key: TopicPartition, current: Log | None
) -> DescribeLogDirsPartition:
    future = directory.futures.get(key)
    log = directory.logs[key] if future is None else future
    if current is None:
        lag = _UNKNOWN_LAG
    elif future is None:
        lag = max(log.high_watermark - log.log_end_offset, 0)
    else:
        lag = current.log_end_offset - log.log_end_offset
    return DescribeLogDirsPartition(
        partition_index=log.partition,
        partition_size=log.size_bytes,
        offset_lag=lag,
        is_future_key=future is not None,
    )
