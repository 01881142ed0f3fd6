"""The table of checks, one for each API.

A test compares it with the APIs that the broker serves.

Not done: cached metadata on brokers with an authorizer.
"""

from ottla.security.acls import AclOperation
from ottla.server.authorization import cluster, groups, records, tokens, topics
from ottla.server.authorization.guarding import Check, allow_everyone
from ottla.wire.api_keys import ApiKey

_ALTER, _DESCRIBE = AclOperation.ALTER, AclOperation.DESCRIBE
_READ, _WRITE = AclOperation.READ, AclOperation.WRITE
_AMONG_BROKERS = cluster.cluster(AclOperation.CLUSTER_ACTION)

# The operation on the topic that the fast path of an API asks for in place of its check.
OF_SHORTCUTS = {ApiKey.PRODUCE: _WRITE, ApiKey.FETCH: _READ}

CHECKS: dict[ApiKey, Check] = {
    ApiKey.PRODUCE: records.check_produce,
    ApiKey.FETCH: records.check_fetch,
    ApiKey.LIST_OFFSETS: records.check_list_offsets,
    ApiKey.METADATA: topics.check_metadata,
    ApiKey.LEADER_AND_ISR: _AMONG_BROKERS,
    ApiKey.STOP_REPLICA: _AMONG_BROKERS,
    ApiKey.UPDATE_METADATA: _AMONG_BROKERS,
    ApiKey.CONTROLLED_SHUTDOWN: _AMONG_BROKERS,
    ApiKey.OFFSET_COMMIT: groups.check_offset_commit,
    ApiKey.OFFSET_FETCH: groups.check_offset_fetch,
    ApiKey.FIND_COORDINATOR: groups.check_find_coordinator,
    ApiKey.JOIN_GROUP: groups.check_join,
    ApiKey.HEARTBEAT: groups.group(_READ),
    ApiKey.LEAVE_GROUP: groups.group(_READ),
    ApiKey.SYNC_GROUP: groups.group(_READ),
    ApiKey.DESCRIBE_GROUPS: groups.check_describe_groups,
    ApiKey.LIST_GROUPS: groups.check_list_groups,
    ApiKey.SASL_HANDSHAKE: allow_everyone,
    ApiKey.API_VERSIONS: allow_everyone,
    ApiKey.CREATE_TOPICS: topics.check_create_topics,
    ApiKey.DELETE_TOPICS: topics.check_delete_topics,
    ApiKey.DELETE_RECORDS: records.check_delete_records,
    ApiKey.INIT_PRODUCER_ID: records.check_init_producer_id,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: records.check_leader_epochs,
    ApiKey.ADD_PARTITIONS_TO_TXN: records.check_add_partitions,
    ApiKey.ADD_OFFSETS_TO_TXN: records.check_add_offsets,
    ApiKey.END_TXN: records.transaction(_WRITE),
    ApiKey.WRITE_TXN_MARKERS: cluster.cluster(_ALTER, AclOperation.CLUSTER_ACTION),
    ApiKey.TXN_OFFSET_COMMIT: records.check_txn_offset_commit,
    ApiKey.DESCRIBE_ACLS: cluster.cluster(_DESCRIBE),
    ApiKey.CREATE_ACLS: cluster.cluster(_ALTER, refuse=cluster.refuse_acls),
    ApiKey.DELETE_ACLS: cluster.cluster(_ALTER, refuse=cluster.refuse_filters),
    ApiKey.DESCRIBE_CONFIGS: cluster.check_describe_configs,
    ApiKey.ALTER_CONFIGS: cluster.check_alter_configs,
    ApiKey.ALTER_REPLICA_LOG_DIRS: cluster.cluster(_ALTER, refuse=cluster.refuse_moves),
    ApiKey.DESCRIBE_LOG_DIRS: cluster.check_log_dirs,
    ApiKey.SASL_AUTHENTICATE: allow_everyone,
    ApiKey.CREATE_PARTITIONS: topics.check_create_partitions,
    ApiKey.CREATE_DELEGATION_TOKEN: tokens.check_create_token,
    ApiKey.RENEW_DELEGATION_TOKEN: allow_everyone,
    ApiKey.EXPIRE_DELEGATION_TOKEN: allow_everyone,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: tokens.check_describe_tokens,
    ApiKey.DELETE_GROUPS: groups.check_delete_groups,
    ApiKey.ELECT_LEADERS: cluster.check_elections,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: cluster.check_incremental_alter_configs,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: cluster.cluster(
        _ALTER, refuse=cluster.refuse_reassignments
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: cluster.cluster(_DESCRIBE),
    ApiKey.OFFSET_DELETE: groups.check_offset_delete,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: cluster.cluster(
        AclOperation.DESCRIBE_CONFIGS, refuse=cluster.refuse_quota_filter
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: cluster.cluster(
        AclOperation.ALTER_CONFIGS, refuse=cluster.refuse_quotas
    ),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: cluster.cluster(_DESCRIBE),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: cluster.cluster(_ALTER, refuse=cluster.refuse_credentials),
    ApiKey.ALTER_PARTITION: _AMONG_BROKERS,
    ApiKey.UPDATE_FEATURES: cluster.cluster(_ALTER),
    ApiKey.DESCRIBE_CLUSTER: allow_everyone,
    ApiKey.DESCRIBE_PRODUCERS: records.check_describe_producers,
    ApiKey.DESCRIBE_TRANSACTIONS: records.check_describe_transactions,
    ApiKey.LIST_TRANSACTIONS: records.check_list_transactions,
    ApiKey.ALLOCATE_PRODUCER_IDS: _AMONG_BROKERS,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: groups.check_consumer_heartbeat,
    ApiKey.CONSUMER_GROUP_DESCRIBE: groups.check_consumer_describe,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: allow_everyone,
    ApiKey.PUSH_TELEMETRY: allow_everyone,
    ApiKey.LIST_CONFIG_RESOURCES: cluster.cluster(AclOperation.DESCRIBE_CONFIGS),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: topics.check_topic_partitions,
}
