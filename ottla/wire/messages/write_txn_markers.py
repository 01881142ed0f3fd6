"""WriteTxnMarkers (API key 27): write commit and abort markers into partitions; from broker to
broker.

Versions 1-2; what each one added:

    1     flexible
    2     transaction version of each marker (KIP-1228)
"""

from ottla.wire.schema import Message, Struct, array, boolean, int8, int16, int32, int64, string


class WritableTxnMarkerTopic(Struct):
    """An element of `topics`."""

    name: str = string()
    partition_indexes: list[int] = array(int32)


class WritableTxnMarker(Struct):
    """An element of `markers`."""

    producer_id: int = int64()
    producer_epoch: int = int16()
    transaction_result: bool = boolean()
    topics: list[WritableTxnMarkerTopic] = array(WritableTxnMarkerTopic)
    coordinator_epoch: int = int32()
    transaction_version: int = int8(since=2, ignorable=True)


class WriteTxnMarkersRequest(Message, api_key=27, versions=(1, 2), flexible_since=1):
    """Request of WriteTxnMarkers."""

    markers: list[WritableTxnMarker] = array(WritableTxnMarker)


class WritableTxnMarkerPartitionResult(Struct):
    """An element of `partitions`."""

    partition_index: int = int32()
    error_code: int = int16()


class WritableTxnMarkerTopicResult(Struct):
    """An element of `topics`."""

    name: str = string()
    partitions: list[WritableTxnMarkerPartitionResult] = array(WritableTxnMarkerPartitionResult)


class WritableTxnMarkerResult(Struct):
    """An element of `markers`."""

    producer_id: int = int64()
    topics: list[WritableTxnMarkerTopicResult] = array(WritableTxnMarkerTopicResult)


class WriteTxnMarkersResponse(Message, api_key=27, versions=(1, 2), flexible_since=1):
    """Response of WriteTxnMarkers."""

    markers: list[WritableTxnMarkerResult] = array(WritableTxnMarkerResult)
