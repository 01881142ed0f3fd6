"""The table of audited APIs. Pure.

A test compares it with the APIs that the broker serves: each is audited, or is in `NOT_AUDITED`
with the others that change no state of the cluster, are sent by brokers, or move records.

Not done: offsets that a tool commits for a group, and members that it removes from one, are not
distinguished from requests of the members themselves, and not audited.
"""

from collections.abc import Mapping

from ottla.security.acls import AclOperation
from ottla.server.audit import access_changes, cluster_changes, topic_changes
from ottla.server.audit.changes import AuditedApi
from ottla.wire.api_keys import ApiKey

_ALTER, _DELETE = AclOperation.ALTER, AclOperation.DELETE
_ALTER_CONFIGS = AclOperation.ALTER_CONFIGS
_OWN_TOKEN = "owner or renewer of the token"  # noqa: S105 - a reason, not a password

AUDITED: Mapping[ApiKey, AuditedApi] = {
    ApiKey.CREATE_TOPICS: AuditedApi(AclOperation.CREATE, topic_changes.created_topics),
    ApiKey.DELETE_TOPICS: AuditedApi(_DELETE, topic_changes.deleted_topics),
    ApiKey.CREATE_PARTITIONS: AuditedApi(_ALTER, topic_changes.extended_topics),
    ApiKey.DELETE_RECORDS: AuditedApi(_DELETE, topic_changes.deleted_records),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: AuditedApi(_ALTER, topic_changes.reassigned_partitions),
    ApiKey.ELECT_LEADERS: AuditedApi(_ALTER, topic_changes.elected_leaders),
    ApiKey.ALTER_REPLICA_LOG_DIRS: AuditedApi(_ALTER, topic_changes.moved_logs),
    ApiKey.WRITE_TXN_MARKERS: AuditedApi(_ALTER, topic_changes.ended_transactions),
    ApiKey.ALTER_CONFIGS: AuditedApi(_ALTER_CONFIGS, cluster_changes.replaced_configs),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: AuditedApi(_ALTER_CONFIGS, cluster_changes.altered_configs),
    ApiKey.ALTER_CLIENT_QUOTAS: AuditedApi(_ALTER_CONFIGS, cluster_changes.altered_quotas),
    ApiKey.UPDATE_FEATURES: AuditedApi(_ALTER, cluster_changes.updated_features),
    ApiKey.DELETE_GROUPS: AuditedApi(_DELETE, cluster_changes.deleted_groups),
    ApiKey.OFFSET_DELETE: AuditedApi(_DELETE, cluster_changes.deleted_offsets),
    ApiKey.CREATE_ACLS: AuditedApi(_ALTER, access_changes.created_acls),
    ApiKey.DELETE_ACLS: AuditedApi(_ALTER, access_changes.deleted_acls),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: AuditedApi(_ALTER, access_changes.altered_credentials),
    ApiKey.CREATE_DELEGATION_TOKEN: AuditedApi(
        AclOperation.CREATE_TOKENS, access_changes.created_token, "token of its own"
    ),
    ApiKey.RENEW_DELEGATION_TOKEN: AuditedApi(
        _ALTER, access_changes.renewed_token, _OWN_TOKEN, access_changes.token_subject
    ),
    ApiKey.EXPIRE_DELEGATION_TOKEN: AuditedApi(
        _ALTER, access_changes.expired_token, _OWN_TOKEN, access_changes.token_subject
    ),
}

# Metadata may create a topic; its handler reports that.
NOT_AUDITED = frozenset(
    {
        *(ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA, ApiKey.API_VERSIONS),
        *(ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA),
        *(ApiKey.CONTROLLED_SHUTDOWN, ApiKey.ALTER_PARTITION, ApiKey.ALLOCATE_PRODUCER_IDS),
        *(ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.FIND_COORDINATOR, ApiKey.JOIN_GROUP),
        *(ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.SYNC_GROUP, ApiKey.DESCRIBE_GROUPS),
        *(ApiKey.LIST_GROUPS, ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE),
        *(ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.DESCRIBE_DELEGATION_TOKEN),
        *(ApiKey.INIT_PRODUCER_ID, ApiKey.OFFSET_FOR_LEADER_EPOCH, ApiKey.ADD_PARTITIONS_TO_TXN),
        *(ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN, ApiKey.TXN_OFFSET_COMMIT),
        *(ApiKey.DESCRIBE_ACLS, ApiKey.DESCRIBE_CONFIGS, ApiKey.DESCRIBE_LOG_DIRS),
        *(ApiKey.LIST_PARTITION_REASSIGNMENTS, ApiKey.DESCRIBE_CLIENT_QUOTAS),
        *(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, ApiKey.DESCRIBE_CLUSTER),
        *(ApiKey.DESCRIBE_PRODUCERS, ApiKey.DESCRIBE_TRANSACTIONS, ApiKey.LIST_TRANSACTIONS),
        *(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY),
        *(ApiKey.LIST_CONFIG_RESOURCES, ApiKey.DESCRIBE_TOPIC_PARTITIONS),
    }
)
