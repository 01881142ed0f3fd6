"""The active controller of a KRaft cluster: DescribeQuorum (API key 55, KIP-595), version 0.

Ottla's brokers do not serve this API, and no other part of Ottla sends it: its message is declared
here. Only the fields of the leader are of interest; voters and observers are read and dropped.
"""

from ottla.base.errors import ApiError
from ottla.client.admin.answers import check
from ottla.client.errors import Unsupported
from ottla.console.model.connections import ClusterConnection
from ottla.wire.schema import Message, Struct, array, int16, int32, int64, string

_LOG = "__cluster_metadata"


class _PartitionRequest(Struct):
    partition_index: int = int32()


class _TopicRequest(Struct):
    topic_name: str = string()
    partitions: list[_PartitionRequest] = array(_PartitionRequest)


class DescribeQuorumRequest(Message, api_key=55, versions=(0, 0), flexible_since=0):
    """Request of DescribeQuorum."""

    topics: list[_TopicRequest] = array(_TopicRequest)


class _Replica(Struct):
    replica_id: int = int32()
    log_end_offset: int = int64()


class _Partition(Struct):
    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()
    high_watermark: int = int64()
    current_voters: list[_Replica] = array(_Replica)
    observers: list[_Replica] = array(_Replica)


class _Topic(Struct):
    topic_name: str = string()
    partitions: list[_Partition] = array(_Partition)


class DescribeQuorumResponse(Message, api_key=55, versions=(0, 0), flexible_since=0):
    """Response of DescribeQuorum."""

    error_code: int = int16()
    topics: list[_Topic] = array(_Topic)


def read_quorum_leader(connection: ClusterConnection) -> tuple[int, int] | None:
    """Return the node id and epoch of the active controller; None if the cluster is not KRaft.

    KRaft's metadata names any broker as the controller, because brokers forward its requests.
    """
    request = DescribeQuorumRequest(
        topics=[_TopicRequest(topic_name=_LOG, partitions=[_PartitionRequest(partition_index=0)])]
    )
    try:
        with connection.brokers() as brokers:
            response = brokers.ask(request, DescribeQuorumResponse)
            check(response.error_code, None)
            row = response.topics[0].partitions[0]
            check(row.error_code, None)
    except (Unsupported, ApiError, IndexError):
        return None
    return row.leader_id, row.leader_epoch
