"""The table of APIs: key, name, versions, request and response class.

The versions are those that the codec reads and writes: Apache Kafka 4.3's, and 3.9's of the four
APIs that exist only with ZooKeeper. `ottla.server.transport.apis` decides which ones a broker
advertises. `stem` names the API's file in `wire/messages/`, `server/handlers/` and
`tests/handlers/`.
"""

from enum import IntEnum
from typing import NamedTuple

from ottla.wire.fields import NEVER, Message
from ottla.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    allocate_producer_ids,
    alter_client_quotas,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    controlled_shutdown,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    end_txn,
    fetch,
    find_coordinator,
    get_telemetry_subscriptions,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leader_and_isr,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    push_telemetry,
    sasl_authenticate,
    sasl_handshake,
    stop_replica,
    sync_group,
    txn_offset_commit,
    update_features,
    update_metadata,
    write_txn_markers,
)


class ApiKey(IntEnum):
    """The number of each API in a request header."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75


class Api(NamedTuple):
    """One API; both version bounds are included, `flexible_since` is `NEVER` for some."""

    key: ApiKey
    name: str
    stem: str
    request: type[Message]
    response: type[Message]
    min_version: int
    max_version: int
    flexible_since: int

    @property
    def is_ever_flexible(self) -> bool:
        """True if any version has compact lengths and tagged fields."""
        return self.flexible_since != NEVER


_ROWS: tuple[tuple[ApiKey, type[Message], type[Message]], ...] = (
    (ApiKey.PRODUCE, produce.ProduceRequest, produce.ProduceResponse),
    (ApiKey.FETCH, fetch.FetchRequest, fetch.FetchResponse),
    (ApiKey.LIST_OFFSETS, list_offsets.ListOffsetsRequest, list_offsets.ListOffsetsResponse),
    (ApiKey.METADATA, metadata.MetadataRequest, metadata.MetadataResponse),
    (
        ApiKey.LEADER_AND_ISR,
        leader_and_isr.LeaderAndIsrRequest,
        leader_and_isr.LeaderAndIsrResponse,
    ),
    (ApiKey.STOP_REPLICA, stop_replica.StopReplicaRequest, stop_replica.StopReplicaResponse),
    (
        ApiKey.UPDATE_METADATA,
        update_metadata.UpdateMetadataRequest,
        update_metadata.UpdateMetadataResponse,
    ),
    (
        ApiKey.CONTROLLED_SHUTDOWN,
        controlled_shutdown.ControlledShutdownRequest,
        controlled_shutdown.ControlledShutdownResponse,
    ),
    (ApiKey.OFFSET_COMMIT, offset_commit.OffsetCommitRequest, offset_commit.OffsetCommitResponse),
    (ApiKey.OFFSET_FETCH, offset_fetch.OffsetFetchRequest, offset_fetch.OffsetFetchResponse),
    (
        ApiKey.FIND_COORDINATOR,
        find_coordinator.FindCoordinatorRequest,
        find_coordinator.FindCoordinatorResponse,
    ),
    (ApiKey.JOIN_GROUP, join_group.JoinGroupRequest, join_group.JoinGroupResponse),
    (ApiKey.HEARTBEAT, heartbeat.HeartbeatRequest, heartbeat.HeartbeatResponse),
    (ApiKey.LEAVE_GROUP, leave_group.LeaveGroupRequest, leave_group.LeaveGroupResponse),
    (ApiKey.SYNC_GROUP, sync_group.SyncGroupRequest, sync_group.SyncGroupResponse),
    (
        ApiKey.DESCRIBE_GROUPS,
        describe_groups.DescribeGroupsRequest,
        describe_groups.DescribeGroupsResponse,
    ),
    (ApiKey.LIST_GROUPS, list_groups.ListGroupsRequest, list_groups.ListGroupsResponse),
    (
        ApiKey.SASL_HANDSHAKE,
        sasl_handshake.SaslHandshakeRequest,
        sasl_handshake.SaslHandshakeResponse,
    ),
    (ApiKey.API_VERSIONS, api_versions.ApiVersionsRequest, api_versions.ApiVersionsResponse),
    (ApiKey.CREATE_TOPICS, create_topics.CreateTopicsRequest, create_topics.CreateTopicsResponse),
    (ApiKey.DELETE_TOPICS, delete_topics.DeleteTopicsRequest, delete_topics.DeleteTopicsResponse),
    (
        ApiKey.DELETE_RECORDS,
        delete_records.DeleteRecordsRequest,
        delete_records.DeleteRecordsResponse,
    ),
    (
        ApiKey.INIT_PRODUCER_ID,
        init_producer_id.InitProducerIdRequest,
        init_producer_id.InitProducerIdResponse,
    ),
    (
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        offset_for_leader_epoch.OffsetForLeaderEpochRequest,
        offset_for_leader_epoch.OffsetForLeaderEpochResponse,
    ),
    (
        ApiKey.ADD_PARTITIONS_TO_TXN,
        add_partitions_to_txn.AddPartitionsToTxnRequest,
        add_partitions_to_txn.AddPartitionsToTxnResponse,
    ),
    (
        ApiKey.ADD_OFFSETS_TO_TXN,
        add_offsets_to_txn.AddOffsetsToTxnRequest,
        add_offsets_to_txn.AddOffsetsToTxnResponse,
    ),
    (ApiKey.END_TXN, end_txn.EndTxnRequest, end_txn.EndTxnResponse),
    (
        ApiKey.WRITE_TXN_MARKERS,
        write_txn_markers.WriteTxnMarkersRequest,
        write_txn_markers.WriteTxnMarkersResponse,
    ),
    (
        ApiKey.TXN_OFFSET_COMMIT,
        txn_offset_commit.TxnOffsetCommitRequest,
        txn_offset_commit.TxnOffsetCommitResponse,
    ),
    (ApiKey.DESCRIBE_ACLS, describe_acls.DescribeAclsRequest, describe_acls.DescribeAclsResponse),
    (ApiKey.CREATE_ACLS, create_acls.CreateAclsRequest, create_acls.CreateAclsResponse),
    (ApiKey.DELETE_ACLS, delete_acls.DeleteAclsRequest, delete_acls.DeleteAclsResponse),
    (
        ApiKey.DESCRIBE_CONFIGS,
        describe_configs.DescribeConfigsRequest,
        describe_configs.DescribeConfigsResponse,
    ),
    (ApiKey.ALTER_CONFIGS, alter_configs.AlterConfigsRequest, alter_configs.AlterConfigsResponse),
    (
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        alter_replica_log_dirs.AlterReplicaLogDirsRequest,
        alter_replica_log_dirs.AlterReplicaLogDirsResponse,
    ),
    (
        ApiKey.DESCRIBE_LOG_DIRS,
        describe_log_dirs.DescribeLogDirsRequest,
        describe_log_dirs.DescribeLogDirsResponse,
    ),
    (
        ApiKey.SASL_AUTHENTICATE,
        sasl_authenticate.SaslAuthenticateRequest,
        sasl_authenticate.SaslAuthenticateResponse,
    ),
    (
        ApiKey.CREATE_PARTITIONS,
        create_partitions.CreatePartitionsRequest,
        create_partitions.CreatePartitionsResponse,
    ),
    (ApiKey.DELETE_GROUPS, delete_groups.DeleteGroupsRequest, delete_groups.DeleteGroupsResponse),
    (ApiKey.ELECT_LEADERS, elect_leaders.ElectLeadersRequest, elect_leaders.ElectLeadersResponse),
    (
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        incremental_alter_configs.IncrementalAlterConfigsRequest,
        incremental_alter_configs.IncrementalAlterConfigsResponse,
    ),
    (
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        alter_partition_reassignments.AlterPartitionReassignmentsRequest,
        alter_partition_reassignments.AlterPartitionReassignmentsResponse,
    ),
    (
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        list_partition_reassignments.ListPartitionReassignmentsRequest,
        list_partition_reassignments.ListPartitionReassignmentsResponse,
    ),
    (ApiKey.OFFSET_DELETE, offset_delete.OffsetDeleteRequest, offset_delete.OffsetDeleteResponse),
    (
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        describe_client_quotas.DescribeClientQuotasRequest,
        describe_client_quotas.DescribeClientQuotasResponse,
    ),
    (
        ApiKey.ALTER_CLIENT_QUOTAS,
        alter_client_quotas.AlterClientQuotasRequest,
        alter_client_quotas.AlterClientQuotasResponse,
    ),
    (
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        describe_user_scram_credentials.DescribeUserScramCredentialsRequest,
        describe_user_scram_credentials.DescribeUserScramCredentialsResponse,
    ),
    (
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        alter_user_scram_credentials.AlterUserScramCredentialsRequest,
        alter_user_scram_credentials.AlterUserScramCredentialsResponse,
    ),
    (
        ApiKey.ALTER_PARTITION,
        alter_partition.AlterPartitionRequest,
        alter_partition.AlterPartitionResponse,
    ),
    (
        ApiKey.UPDATE_FEATURES,
        update_features.UpdateFeaturesRequest,
        update_features.UpdateFeaturesResponse,
    ),
    (
        ApiKey.DESCRIBE_CLUSTER,
        describe_cluster.DescribeClusterRequest,
        describe_cluster.DescribeClusterResponse,
    ),
    (
        ApiKey.DESCRIBE_PRODUCERS,
        describe_producers.DescribeProducersRequest,
        describe_producers.DescribeProducersResponse,
    ),
    (
        ApiKey.DESCRIBE_TRANSACTIONS,
        describe_transactions.DescribeTransactionsRequest,
        describe_transactions.DescribeTransactionsResponse,
    ),
    (
        ApiKey.LIST_TRANSACTIONS,
        list_transactions.ListTransactionsRequest,
        list_transactions.ListTransactionsResponse,
    ),
    (
        ApiKey.ALLOCATE_PRODUCER_IDS,
        allocate_producer_ids.AllocateProducerIdsRequest,
        allocate_producer_ids.AllocateProducerIdsResponse,
    ),
    (
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        consumer_group_heartbeat.ConsumerGroupHeartbeatRequest,
        consumer_group_heartbeat.ConsumerGroupHeartbeatResponse,
    ),
    (
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        consumer_group_describe.ConsumerGroupDescribeRequest,
        consumer_group_describe.ConsumerGroupDescribeResponse,
    ),
    (
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        get_telemetry_subscriptions.GetTelemetrySubscriptionsRequest,
        get_telemetry_subscriptions.GetTelemetrySubscriptionsResponse,
    ),
    (
        ApiKey.PUSH_TELEMETRY,
        push_telemetry.PushTelemetryRequest,
        push_telemetry.PushTelemetryResponse,
    ),
    (
        ApiKey.LIST_CONFIG_RESOURCES,
        list_config_resources.ListConfigResourcesRequest,
        list_config_resources.ListConfigResourcesResponse,
    ),
    (
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        describe_topic_partitions.DescribeTopicPartitionsRequest,
        describe_topic_partitions.DescribeTopicPartitionsResponse,
    ),
)


def _api(key: ApiKey, request: type[Message], response: type[Message]) -> Api:
    assert request.API_KEY == response.API_KEY == key, f"{request.__name__} has another API key"
    return Api(
        key=key,
        name=request.__name__.removesuffix("Request"),
        stem=key.name.lower(),
        request=request,
        response=response,
        min_version=request.MIN_VERSION,
        max_version=request.MAX_VERSION,
        flexible_since=request.FLEXIBLE_SINCE,
    )


APIS: dict[int, Api] = {int(row[0]): _api(*row) for row in _ROWS}

REQUEST_OF: dict[type[Message], Api] = {api.request: api for api in APIS.values()}
RESPONSE_OF: dict[type[Message], Api] = {api.response: api for api in APIS.values()}


def api_of(message: Message | type[Message]) -> Api:
    """Return the API of a request or response, or of their class."""
    return APIS[message.API_KEY]
