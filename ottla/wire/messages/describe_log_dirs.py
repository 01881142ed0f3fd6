"""DescribeLogDirs (API key 35): log directories and the size and lag of the replicas in them
(KIP-113).

Versions 1-5; what each one added:

    2     flexible
    3     error code for the whole response
    4     total and usable bytes (KIP-827)
    5     cordoned directories
"""

from ottla.wire.schema import Message, Struct, array, boolean, int16, int32, int64, string


class DescribableLogDirTopic(Struct):
    """An element of `topics`."""

    topic: str = string()
    partitions: list[int] = array(int32)


class DescribeLogDirsRequest(Message, api_key=35, versions=(1, 5), flexible_since=2):
    """Request of DescribeLogDirs."""

    topics: list[DescribableLogDirTopic] | None = array(DescribableLogDirTopic, nullable_since=0)


class DescribeLogDirsPartition(Struct):
    """An element of `partitions`."""

    partition_index: int = int32()
    partition_size: int = int64()
    offset_lag: int = int64()
    is_future_key: bool = boolean()


class DescribeLogDirsTopic(Struct):
    """An element of `topics`."""

    name: str = string()
    partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition)


class DescribeLogDirsResult(Struct):
    """An element of `results`."""

    error_code: int = int16()
    log_dir: str = string()
    topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic)
    total_bytes: int = int64(since=4, default=-1, ignorable=True)
    usable_bytes: int = int64(since=4, default=-1, ignorable=True)
    is_cordoned: bool = boolean(since=5, ignorable=True)


class DescribeLogDirsResponse(Message, api_key=35, versions=(1, 5), flexible_since=2):
    """Response of DescribeLogDirs."""

    throttle_time_ms: int = int32()
    error_code: int = int16(since=3, ignorable=True)
    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult)
