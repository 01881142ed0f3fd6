"""AlterReplicaLogDirs (key 34), versions 1-2: move replicas between log directories (KIP-113).

v2: flexible.

A replica that does not exist yet is refused, and is put into that directory when it is created. The
response is sent when the moves have begun; DescribeLogDirs shows their progress.

Not done: nothing.
"""

from ottla.base.slices import Slices
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

API = ApiKey.ALTER_REPLICA_LOG_DIRS
MIN_VERSION = 1
MAX_VERSION = 2
PROPERTIES = ApiProperties(is_administrative=True)


async def handle(
    context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    """Return a result for each partition; if a partition is named twice, the last directory counts."""
    directories = {
        (topic.name, partition): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for partition in topic.partitions
    }
    slices = Slices(context.broker.clock)
    topics: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for (topic, partition), path in directories.items():
        code = context.broker.replicas.move_log(topic, partition, path)
        result = AlterReplicaLogDirPartitionResult(partition_index=partition, error_code=int(code))
        topics.setdefault(topic, []).append(result)
        # Each move creates a directory, and may remove one.
        await slices.pause()
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=name, partitions=partitions)
            for name, partitions in topics.items()
        ]
    )
