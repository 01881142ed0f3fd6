"""The versions of APIs that a broker serves, next to the versions of Apache Kafka's client.

`ottla broker apis` and `kafka-broker-api-versions` show them.
"""

from collections.abc import Mapping
from typing import NamedTuple


class ApiRange(NamedTuple):
    """The versions that Apache Kafka's client has, both included; brokers alone use some APIs."""

    name: str
    oldest: int
    latest: int
    is_of_clients: bool = True


# org.apache.kafka.common.protocol.ApiKeys of 4.3.0. Versions of removed APIs end at -1.
KNOWN: Mapping[int, ApiRange] = {
    0: ApiRange("Produce", 3, 13),
    1: ApiRange("Fetch", 4, 18),
    2: ApiRange("ListOffsets", 1, 11),
    3: ApiRange("Metadata", 0, 13),
    4: ApiRange("LeaderAndIsr", 0, -1, is_of_clients=False),
    5: ApiRange("StopReplica", 0, -1, is_of_clients=False),
    6: ApiRange("UpdateMetadata", 0, -1, is_of_clients=False),
    7: ApiRange("ControlledShutdown", 0, -1, is_of_clients=False),
    8: ApiRange("OffsetCommit", 2, 10),
    9: ApiRange("OffsetFetch", 1, 10),
    10: ApiRange("FindCoordinator", 0, 6),
    11: ApiRange("JoinGroup", 0, 9),
    12: ApiRange("Heartbeat", 0, 4),
    13: ApiRange("LeaveGroup", 0, 5),
    14: ApiRange("SyncGroup", 0, 5),
    15: ApiRange("DescribeGroups", 0, 6),
    16: ApiRange("ListGroups", 0, 5),
    17: ApiRange("SaslHandshake", 0, 1),
    18: ApiRange("ApiVersions", 0, 4),
    19: ApiRange("CreateTopics", 2, 7),
    20: ApiRange("DeleteTopics", 1, 6),
    21: ApiRange("DeleteRecords", 0, 2),
    22: ApiRange("InitProducerId", 0, 6),
    23: ApiRange("OffsetForLeaderEpoch", 2, 4),
    24: ApiRange("AddPartitionsToTxn", 0, 5),
    25: ApiRange("AddOffsetsToTxn", 0, 4),
    26: ApiRange("EndTxn", 0, 5),
    27: ApiRange("WriteTxnMarkers", 1, 2),
    28: ApiRange("TxnOffsetCommit", 0, 5),
    29: ApiRange("DescribeAcls", 1, 3),
    30: ApiRange("CreateAcls", 1, 3),
    31: ApiRange("DeleteAcls", 1, 3),
    32: ApiRange("DescribeConfigs", 1, 4),
    33: ApiRange("AlterConfigs", 0, 2),
    34: ApiRange("AlterReplicaLogDirs", 1, 2),
    35: ApiRange("DescribeLogDirs", 1, 5),
    36: ApiRange("SaslAuthenticate", 0, 2),
    37: ApiRange("CreatePartitions", 0, 3),
    38: ApiRange("CreateDelegationToken", 1, 3),
    39: ApiRange("RenewDelegationToken", 1, 2),
    40: ApiRange("ExpireDelegationToken", 1, 2),
    41: ApiRange("DescribeDelegationToken", 1, 3),
    42: ApiRange("DeleteGroups", 0, 2),
    43: ApiRange("ElectLeaders", 0, 2),
    44: ApiRange("IncrementalAlterConfigs", 0, 1),
    45: ApiRange("AlterPartitionReassignments", 0, 1),
    46: ApiRange("ListPartitionReassignments", 0, 0),
    47: ApiRange("OffsetDelete", 0, 0),
    48: ApiRange("DescribeClientQuotas", 0, 1),
    49: ApiRange("AlterClientQuotas", 0, 1),
    50: ApiRange("DescribeUserScramCredentials", 0, 0),
    51: ApiRange("AlterUserScramCredentials", 0, 0),
    52: ApiRange("Vote", 0, 2, is_of_clients=False),
    53: ApiRange("BeginQuorumEpoch", 0, 1, is_of_clients=False),
    54: ApiRange("EndQuorumEpoch", 0, 1, is_of_clients=False),
    55: ApiRange("DescribeQuorum", 0, 2),
    56: ApiRange("AlterPartition", 2, 3, is_of_clients=False),
    57: ApiRange("UpdateFeatures", 0, 2),
    58: ApiRange("Envelope", 0, 0, is_of_clients=False),
    59: ApiRange("FetchSnapshot", 0, 1, is_of_clients=False),
    60: ApiRange("DescribeCluster", 0, 2),
    61: ApiRange("DescribeProducers", 0, 0),
    62: ApiRange("BrokerRegistration", 0, 4, is_of_clients=False),
    63: ApiRange("BrokerHeartbeat", 0, 2, is_of_clients=False),
    64: ApiRange("UnregisterBroker", 0, 0),
    65: ApiRange("DescribeTransactions", 0, 0),
    66: ApiRange("ListTransactions", 0, 2),
    67: ApiRange("AllocateProducerIds", 0, 0, is_of_clients=False),
    68: ApiRange("ConsumerGroupHeartbeat", 0, 1),
    69: ApiRange("ConsumerGroupDescribe", 0, 1),
    70: ApiRange("ControllerRegistration", 0, 0, is_of_clients=False),
    71: ApiRange("GetTelemetrySubscriptions", 0, 0),
    72: ApiRange("PushTelemetry", 0, 0),
    73: ApiRange("AssignReplicasToDirs", 0, 0, is_of_clients=False),
    74: ApiRange("ListConfigResources", 0, 1),
    75: ApiRange("DescribeTopicPartitions", 0, 0),
    76: ApiRange("ShareGroupHeartbeat", 1, 1),
    77: ApiRange("ShareGroupDescribe", 1, 1),
    78: ApiRange("ShareFetch", 1, 2),
    79: ApiRange("ShareAcknowledge", 1, 2),
    80: ApiRange("AddRaftVoter", 0, 1),
    81: ApiRange("RemoveRaftVoter", 0, 0),
    82: ApiRange("UpdateRaftVoter", 0, 0, is_of_clients=False),
    83: ApiRange("InitializeShareGroupState", 0, 0),
    84: ApiRange("ReadShareGroupState", 0, 0),
    85: ApiRange("WriteShareGroupState", 0, 1),
    86: ApiRange("DeleteShareGroupState", 0, 0),
    87: ApiRange("ReadShareGroupStateSummary", 0, 1),
    88: ApiRange("StreamsGroupHeartbeat", 0, 0),
    89: ApiRange("StreamsGroupDescribe", 0, 0),
    90: ApiRange("DescribeShareGroupOffsets", 0, 1),
    91: ApiRange("AlterShareGroupOffsets", 0, 0),
    92: ApiRange("DeleteShareGroupOffsets", 0, 0),
}


class Api(NamedTuple):
    """An API of a broker; `versions` is None if the broker does not serve it.

    `usable` is the highest version that the broker and Apache Kafka's client share, None if they
    have no version in common. Then `problem` is the reason, unless the client does not know the
    API.
    """

    key: int
    name: str
    versions: tuple[int, int] | None
    usable: int | None = None
    problem: str = ""


def apis_of(offered: Mapping[int, tuple[int, int]]) -> list[Api]:
    """Return the APIs that a broker serves, and those that a client misses, by key."""
    expected = {key for key, api in KNOWN.items() if api.is_of_clients}
    return [_api(key, offered.get(key)) for key in sorted({*offered, *expected})]


def _api(key: int, versions: tuple[int, int] | None) -> Api:
    known = KNOWN.get(key)
    name = "UNKNOWN" if known is None else known.name
    if known is None or versions is None:
        return Api(key, name, versions)
    low, high = versions
    if known.latest < low:
        return Api(key, name, versions, problem="node too new")
    if high < known.oldest:
        return Api(key, name, versions, problem="node too old")
    return Api(key, name, versions, min(high, known.latest))
