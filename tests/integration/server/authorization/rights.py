"""Requests of a principal for each API, and the least of its rights that allows them.

    API [VERSION]: RIGHT ERROR {request}

A request has the notation of `tests.compat.recorded`, and the newest version by default. RIGHT is
`describe`, or `full` (every operation on the resources), or `proof` if only a broker of the cluster
is served. The response to a refused request has the ERROR somewhere, here without its end
`_AUTHORIZATION_FAILED`. If ERROR is `-`, the response hides the name `seen` instead.
"""

import re
from typing import Any, NamedTuple

from ottla.wire.api_keys import APIS, Api, ApiKey
from tests.compat.recorded import notation

_API_OF = {api.name: api for api in APIS.values()}
_LINE = re.compile(r"(\w+)(?: (\d+))?: (describe|full|proof) (\w+|-) (\{.*\})")

OPEN = frozenset(
    {
        ApiKey.API_VERSIONS,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        ApiKey.PUSH_TELEMETRY,
    }
)
"""APIs that everyone may use; their handlers check what concerns the sender."""

_TEXT = """
Produce 11: full TOPIC {acks: -1, timeout_ms: 1000, topic_data: [{name: "seen", partition_data: [{index: 0, records: [{values: ["a"]}]}]}]}
Produce 11: full TRANSACTIONAL_ID {transactional_id: "seen", acks: -1, timeout_ms: 1000, topic_data: [{name: "seen", partition_data: [{index: 0, records: [{values: ["a"], transactional: true, producer_id: 99, producer_epoch: 0, base_sequence: 0}]}]}]}
Fetch 11: full TOPIC {max_wait_ms: 0, min_bytes: 0, topics: [{topic: "seen", partitions: [{partition: 0, fetch_offset: 0, partition_max_bytes: 1000}]}]}
Fetch 11: proof CLUSTER {replica_id: 2, max_wait_ms: 0, min_bytes: 0, topics: [{topic: "seen", partitions: [{partition: 0, fetch_offset: 0, partition_max_bytes: 1000}]}]}
ListOffsets: describe TOPIC {replica_id: -1, topics: [{name: "seen", partitions: [{partition_index: 0, timestamp: -1}]}]}
ListOffsets: describe TOPIC {replica_id: 2, topics: [{name: "seen", partitions: [{partition_index: 0, timestamp: -2}]}]}
ListOffsets: describe TOPIC {replica_id: -1, topics: [{name: "none", partitions: [{partition_index: 0, timestamp: -1}]}]}
Metadata: describe TOPIC {topics: [{name: "seen"}], allow_auto_topic_creation: false}
Metadata: describe TOPIC {topics: [{name: "none"}], allow_auto_topic_creation: false}
Metadata: describe - {topics: null}
DescribeTopicPartitions: describe TOPIC {topics: [{name: "seen"}]}
DescribeTopicPartitions: describe - {topics: []}
LeaderAndIsr: proof CLUSTER {controller_id: 2, controller_epoch: 99, broker_epoch: -1}
StopReplica: proof CLUSTER {controller_id: 2, controller_epoch: 99, broker_epoch: -1}
UpdateMetadata: proof CLUSTER {controller_id: 2, controller_epoch: 99, broker_epoch: -1}
ControlledShutdown: proof CLUSTER {broker_id: 2}
AlterPartition: proof CLUSTER {broker_id: 2}
AllocateProducerIds: proof CLUSTER {broker_id: 2}
OffsetCommit 9: full GROUP {group_id: "seen", topics: [{name: "seen", partitions: [{partition_index: 0, committed_offset: 0}]}]}
OffsetFetch 9: describe GROUP {groups: [{group_id: "seen", topics: [{name: "seen", partition_indexes: [0]}]}]}
OffsetFetch 9: describe GROUP {groups: [{group_id: "seen", topics: null}]}
OffsetDelete: full GROUP {group_id: "seen", topics: [{name: "seen", partitions: [{partition_index: 7}]}]}
FindCoordinator: describe GROUP {key_type: 0, coordinator_keys: ["seen"]}
FindCoordinator: describe TRANSACTIONAL_ID {key_type: 1, coordinator_keys: ["seen"]}
FindCoordinator 3: describe GROUP {key_type: 0, key: "seen"}
JoinGroup: full GROUP {group_id: "seen", session_timeout_ms: 10000, rebalance_timeout_ms: 10000, member_id: "none", protocol_type: "consumer", protocols: [{name: "range", metadata: x""}]}
Heartbeat: full GROUP {group_id: "seen", generation_id: 1, member_id: "none"}
LeaveGroup: full GROUP {group_id: "seen", members: [{member_id: "none"}]}
SyncGroup: full GROUP {group_id: "seen", generation_id: 1, member_id: "none"}
DescribeGroups: describe GROUP {groups: ["seen"]}
ListGroups: describe - {}
DeleteGroups: full GROUP {groups_names: ["none"]}
ConsumerGroupHeartbeat: full GROUP {group_id: "seen", member_id: "none", member_epoch: 5, subscribed_topic_names: ["seen"]}
ConsumerGroupDescribe: describe GROUP {group_ids: ["seen"]}
CreateTopics: full TOPIC {topics: [{name: "none", num_partitions: 1, replication_factor: 1}], timeout_ms: 1000, validate_only: true}
DeleteTopics: full TOPIC {topics: [{name: "none"}], timeout_ms: 1000}
CreatePartitions: full TOPIC {topics: [{name: "seen", count: 9}], timeout_ms: 1000, validate_only: true}
DeleteRecords: full TOPIC {topics: [{name: "seen", partitions: [{partition_index: 0, offset: 0}]}], timeout_ms: 1000}
InitProducerId: full TRANSACTIONAL_ID {transactional_id: "seen", transaction_timeout_ms: 60000}
OffsetForLeaderEpoch: describe TOPIC {replica_id: -1, topics: [{topic: "seen", partitions: [{partition: 0, leader_epoch: 0}]}]}
AddPartitionsToTxn 3: full TRANSACTIONAL_ID {v3_and_below_transactional_id: "seen", v3_and_below_producer_id: 99, v3_and_below_producer_epoch: 0, v3_and_below_topics: [{name: "seen", partitions: [0]}]}
AddPartitionsToTxn: proof CLUSTER {transactions: [{transactional_id: "seen", producer_id: 99, producer_epoch: 0, verify_only: true, topics: [{name: "seen", partitions: [0]}]}]}
AddOffsetsToTxn: full TRANSACTIONAL_ID {transactional_id: "seen", producer_id: 99, producer_epoch: 0, group_id: "seen"}
EndTxn: full TRANSACTIONAL_ID {transactional_id: "seen", producer_id: 99, producer_epoch: 0, committed: true}
WriteTxnMarkers: full CLUSTER {markers: [{producer_id: 99, producer_epoch: 0, topics: [{name: "none", partition_indexes: [0]}], coordinator_epoch: 0}]}
TxnOffsetCommit: full TRANSACTIONAL_ID {transactional_id: "seen", group_id: "seen", producer_id: 99, producer_epoch: 0, topics: [{name: "seen", partitions: [{partition_index: 0, committed_offset: 0}]}]}
DescribeProducers: full TOPIC {topics: [{name: "seen", partition_indexes: [0]}]}
DescribeTransactions: describe TRANSACTIONAL_ID {transactional_ids: ["seen"]}
ListTransactions: describe - {}
DescribeAcls: describe CLUSTER {resource_type_filter: 1, resource_name_filter: null, pattern_type_filter: 1, principal_filter: null, host_filter: null, operation: 1, permission_type: 1}
CreateAcls: full CLUSTER {creations: [{resource_type: 2, resource_name: "none", resource_pattern_type: 3, principal: "User:zoe", host: "*", operation: 3, permission_type: 3}]}
DeleteAcls: full CLUSTER {filters: [{resource_type_filter: 2, resource_name_filter: "none", pattern_type_filter: 3, principal_filter: null, host_filter: null, operation: 1, permission_type: 1}]}
DescribeConfigs: full TOPIC {resources: [{resource_type: 2, resource_name: "seen", configuration_keys: null}]}
DescribeConfigs: full CLUSTER {resources: [{resource_type: 4, resource_name: "1", configuration_keys: null}]}
DescribeConfigs: full CLUSTER {resources: [{resource_type: 8, resource_name: "1", configuration_keys: null}]}
DescribeConfigs: full CLUSTER {resources: [{resource_type: 16, resource_name: "none", configuration_keys: null}]}
DescribeConfigs: full GROUP {resources: [{resource_type: 32, resource_name: "seen", configuration_keys: null}]}
AlterConfigs: full TOPIC {resources: [{resource_type: 2, resource_name: "seen", configs: []}], validate_only: true}
AlterConfigs: full CLUSTER {resources: [{resource_type: 4, resource_name: "", configs: []}], validate_only: true}
IncrementalAlterConfigs: full TOPIC {resources: [{resource_type: 2, resource_name: "seen", configs: []}], validate_only: true}
IncrementalAlterConfigs: full CLUSTER {resources: [{resource_type: 4, resource_name: "", configs: []}], validate_only: true}
IncrementalAlterConfigs: full CLUSTER {resources: [{resource_type: 8, resource_name: "1", configs: []}], validate_only: true}
IncrementalAlterConfigs: full CLUSTER {resources: [{resource_type: 16, resource_name: "none", configs: []}], validate_only: true}
IncrementalAlterConfigs: full GROUP {resources: [{resource_type: 32, resource_name: "seen", configs: []}], validate_only: true}
ListConfigResources: full CLUSTER {resource_types: [2]}
AlterReplicaLogDirs: full CLUSTER {dirs: [{path: "/none", topics: [{name: "seen", partitions: [0]}]}]}
DescribeLogDirs 4: describe CLUSTER {topics: null}
ElectLeaders: full CLUSTER {election_type: 0, topic_partitions: [{topic: "seen", partitions: [0]}], timeout_ms: 1000}
AlterPartitionReassignments: full CLUSTER {timeout_ms: 1000, topics: [{name: "none", partitions: [{partition_index: 0, replicas: [1]}]}]}
ListPartitionReassignments: describe CLUSTER {timeout_ms: 1000, topics: null}
DescribeClientQuotas: full CLUSTER {components: [], strict: false}
AlterClientQuotas: full CLUSTER {entries: [{entity: [{entity_type: "user", entity_name: "zoe"}], ops: [{key: "producer_byte_rate", value: 1000.0}]}], validate_only: true}
AlterClientQuotas: full CLUSTER {entries: [{entity: [{entity_type: "user", entity_name: "zoe"}], ops: [{key: "SCRAM-SHA-512", remove: true}]}]}
DescribeUserScramCredentials: describe CLUSTER {users: null}
AlterUserScramCredentials: full CLUSTER {deletions: [{name: "none", mechanism: 1}]}
UpdateFeatures: full CLUSTER {feature_updates: [], timeout_ms: 1000, validate_only: true}
CreateDelegationToken: full DELEGATION_TOKEN {owner_principal_type: "User", owner_principal_name: "zoe", max_lifetime_ms: 1000}
DescribeDelegationToken: describe - {owners: null}
"""


class Case(NamedTuple):
    """A request, the least right that allows it, and the error without it; "" if it hides."""

    api: Api
    version: int | None
    right: str
    error: str
    request: dict[str, Any]


def _case(line: str) -> Case:
    found = _LINE.fullmatch(line)
    assert found is not None, line
    name, version, right, error, request = found.groups()
    code = "" if error == "-" else f"{error}_AUTHORIZATION_FAILED"
    number = None if version is None else int(version)
    return Case(_API_OF[name], number, right, code, notation.parse(request))


CASES = [_case(line) for line in _TEXT.strip().splitlines()]
