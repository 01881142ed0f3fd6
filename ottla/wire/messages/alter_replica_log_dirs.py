"""AlterReplicaLogDirs (API key 34): move replicas between the log directories of a broker
(KIP-113).

Versions 1-2; what each one added:

    2     flexible
"""

from ottla.wire.schema import Message, Struct, array, int16, int32, string


class AlterReplicaLogDirTopic(Struct):
    """An element of `topics`."""

    name: str = string()
    partitions: list[int] = array(int32)


class AlterReplicaLogDir(Struct):
    """An element of `dirs`."""

    path: str = string()
    topics: list[AlterReplicaLogDirTopic] = array(AlterReplicaLogDirTopic)


class AlterReplicaLogDirsRequest(Message, api_key=34, versions=(1, 2), flexible_since=2):
    """Request of AlterReplicaLogDirs."""

    dirs: list[AlterReplicaLogDir] = array(AlterReplicaLogDir)


class AlterReplicaLogDirPartitionResult(Struct):
    """An element of `partitions`."""

    partition_index: int = int32()
    error_code: int = int16()


class AlterReplicaLogDirTopicResult(Struct):
    """An element of `results`."""

    topic_name: str = string()
    partitions: list[AlterReplicaLogDirPartitionResult] = array(AlterReplicaLogDirPartitionResult)


class AlterReplicaLogDirsResponse(Message, api_key=34, versions=(1, 2), flexible_since=2):
    """Response of AlterReplicaLogDirs."""

    throttle_time_ms: int = int32()
    results: list[AlterReplicaLogDirTopicResult] = array(AlterReplicaLogDirTopicResult)
