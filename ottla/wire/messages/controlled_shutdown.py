"""ControlledShutdown (API key 7): a broker asks the controller to move its leaders away.

Versions 2-3; what each one added:

    3     flexible

Versions 0 and 1 have no broker epoch, which Apache Kafka sends since 2.2. Apache Kafka 4 has no
ZooKeeper, and so does not have this API.
"""

from ottla.wire.schema import Message, Struct, array, int16, int32, int64, string


class ControlledShutdownRequest(Message, api_key=7, versions=(2, 3), flexible_since=3):
    """Request of ControlledShutdown."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)


class RemainingPartition(Struct):
    """An element of `remaining_partitions`."""

    topic_name: str = string()
    partition_index: int = int32()


class ControlledShutdownResponse(Message, api_key=7, versions=(2, 3), flexible_since=3):
    """Response of ControlledShutdown."""

    error_code: int = int16()
    remaining_partitions: list[RemainingPartition] = array(RemainingPartition)
