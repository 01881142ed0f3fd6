"""A request for each administrative API, and the lines that it leaves in the audit log."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from ottla.testing.sim.client import SimConnection
from ottla.wire.api_keys import ApiKey
from ottla.wire.fields import Message
from ottla.wire.messages import (
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    elect_leaders,
    incremental_alter_configs,
    metadata,
    offset_commit,
    offset_delete,
    update_features,
    write_txn_markers,
)
from tests.integration.server.audit.audited_broker import ask

Prepare = Callable[[SimConnection], Awaitable[Any]]
Line = dict[str, Any]

_ACL = {
    "resource_type": 2,
    "resource_name": "t",
    "principal": "User:ann",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}


def topics(*names: str, **fields: Any) -> create_topics.CreateTopicsRequest:
    """Return a request that creates topics."""
    rows = [
        create_topics.CreatableTopic(
            name=name,
            num_partitions=1,
            replication_factor=1,
            configs=[create_topics.CreatableTopicConfig(name="retention.ms", value="60000")],
        )
        for name in names
    ]
    return create_topics.CreateTopicsRequest(topics=rows, timeout_ms=5000, **fields)


async def nothing(_: SimConnection) -> None:
    """Prepare nothing."""


async def topic(root: SimConnection) -> None:
    """Create the topic t."""
    await ask(root, topics("t"), 7)


async def group(root: SimConnection) -> None:
    """Create the group g, with an offset in t."""
    await topic(root)
    row = offset_commit.OffsetCommitRequestTopic(
        name="t", partitions=[offset_commit.OffsetCommitRequestPartition(committed_offset=0)]
    )
    commit = offset_commit.OffsetCommitRequest(group_id="g", topics=[row])
    named = [metadata.MetadataRequestTopic(name="__consumer_offsets")]
    for _ in range(50):
        response = await ask(root, commit, 8)
        if not response.topics[0].partitions[0].error_code:
            return
        await ask(root, metadata.MetadataRequest(topics=named), 9)
    raise AssertionError("the group has no coordinator")


async def acl(root: SimConnection) -> None:
    """Create an access control list of t."""
    creations = [create_acls.AclCreation(**_ACL)]
    await ask(root, create_acls.CreateAclsRequest(creations=creations), 3)


def quota(**fields: Any) -> alter_client_quotas.AlterClientQuotasRequest:
    """Return a request that limits ann."""
    entry = alter_client_quotas.AlterClientQuotasRequestEntryData(
        entity=[alter_client_quotas.EntityData(entity_type="user", entity_name="ann")],
        ops=[alter_client_quotas.OpData(key="producer_byte_rate", value=1000.0)],
    )
    return alter_client_quotas.AlterClientQuotasRequest(entries=[entry], **fields)


def configured(
    operation: int, name: str, value: str | None, **fields: Any
) -> incremental_alter_configs.IncrementalAlterConfigsRequest:
    """Return a request that changes an option of t."""
    rows = incremental_alter_configs
    config = rows.AlterableConfig(name=name, config_operation=operation, value=value)
    resource = rows.AlterConfigsResource(resource_type=2, resource_name="t", configs=[config])
    return rows.IncrementalAlterConfigsRequest(resources=[resource], **fields)


def replaced(**fields: Any) -> alter_configs.AlterConfigsRequest:
    """Return a request that replaces the options of t."""
    config = alter_configs.AlterableConfig(name="retention.ms", value="1000")
    resource = alter_configs.AlterConfigsResource(
        resource_type=2, resource_name="t", configs=[config]
    )
    return alter_configs.AlterConfigsRequest(resources=[resource], **fields)


def extended(**fields: Any) -> create_partitions.CreatePartitionsRequest:
    """Return a request that adds a partition to t."""
    row = create_partitions.CreatePartitionsTopic(name="t", count=2, assignments=None)
    return create_partitions.CreatePartitionsRequest(topics=[row], timeout_ms=5000, **fields)


def feature(**fields: Any) -> update_features.UpdateFeaturesRequest:
    """Return a request that lowers the level of a feature."""
    row = update_features.FeatureUpdateKey(
        feature="transaction.version", max_version_level=0, upgrade_type=2
    )
    return update_features.UpdateFeaturesRequest(feature_updates=[row], **fields)


_DELETED = delete_topics.DeleteTopicsRequest(
    topics=[delete_topics.DeleteTopicState(name="t")], timeout_ms=5000
)
_RECORDS = delete_records.DeleteRecordsRequest(
    topics=[
        delete_records.DeleteRecordsTopic(
            name="t", partitions=[delete_records.DeleteRecordsPartition(offset=0)]
        )
    ],
    timeout_ms=5000,
)
_MOVED = alter_partition_reassignments.AlterPartitionReassignmentsRequest(
    topics=[
        alter_partition_reassignments.ReassignableTopic(
            name="t",
            partitions=[alter_partition_reassignments.ReassignablePartition(replicas=[1])],
        )
    ]
)
_ELECTED = elect_leaders.ElectLeadersRequest(
    topic_partitions=[elect_leaders.TopicPartitions(topic="t", partitions=[0])]
)
_LOGS = alter_replica_log_dirs.AlterReplicaLogDirsRequest(
    dirs=[
        alter_replica_log_dirs.AlterReplicaLogDir(
            path="/data/two",
            topics=[alter_replica_log_dirs.AlterReplicaLogDirTopic(name="t", partitions=[0])],
        )
    ]
)
_MARKER = write_txn_markers.WriteTxnMarkersRequest(
    markers=[
        write_txn_markers.WritableTxnMarker(
            producer_id=7,
            producer_epoch=0,
            topics=[write_txn_markers.WritableTxnMarkerTopic(name="t", partition_indexes=[0])],
        )
    ]
)
_SCRAM = alter_user_scram_credentials.AlterUserScramCredentialsRequest(
    upsertions=[
        alter_user_scram_credentials.ScramCredentialUpsertion(
            name="ben", mechanism=1, iterations=8192, salt=b"s" * 16, salted_password=b"p" * 32
        )
    ]
)
_OFFSETS = offset_delete.OffsetDeleteRequest(
    group_id="g",
    topics=[
        offset_delete.OffsetDeleteRequestTopic(
            name="t", partitions=[offset_delete.OffsetDeleteRequestPartition(partition_index=0)]
        )
    ],
)
_ANY_ACL = delete_acls.DeleteAclsRequest(
    filters=[
        delete_acls.DeleteAclsFilter(
            resource_type_filter=1,
            resource_name_filter=None,
            pattern_type_filter=1,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        )
    ]
)


class Case(NamedTuple):
    """A request with its version, what it needs, and the fields of its lines that are its own."""

    prepare: Prepare
    request: Message
    version: int
    lines: tuple[Line, ...]


def _topic(operation: str, name: str = "t", **details: Any) -> Line:
    line = {"operation": operation, "resource_type": "TOPIC", "resource": name}
    return line | ({"details": details} if details else {})


def _partition(operation: str, **details: Any) -> Line:
    return _topic(operation, **details) | {"partition": 0}


_ENTRY = {
    "operation": "ALTER",
    "resource_type": "ACL",
    "resource": "LITERAL TOPIC t",
    "details": {"principal": "User:ann", "host": "*", "operation": "READ", "permission": "ALLOW"},
}
_CREATED = {"partitions": 1, "replication_factor": 1, "retention.ms": "60000"}
_QUOTA = {
    "operation": "ALTER_CONFIGS",
    "resource_type": "QUOTA",
    "resource": "user=ann",
    "details": {"producer_byte_rate": "1000"},
}
_LEVEL = {
    "operation": "ALTER",
    "resource_type": "FEATURE",
    "resource": "transaction.version",
    "details": {"level": 0},
}
_GROUP = {"operation": "DELETE", "resource_type": "GROUP", "resource": "g"}
_USER = {
    "operation": "ALTER",
    "resource_type": "USER",
    "resource": "ben",
    "details": {"SCRAM-SHA-256": "set, 8192 iterations"},
}
_NOT_NEEDED = _partition("ALTER", election="preferred") | {"result": "ELECTION_NOT_NEEDED"}
_SET = {"details": {"retention.ms": "1000"}}
CASES = {
    ApiKey.CREATE_TOPICS: Case(
        nothing, topics("a", "b"), 7, tuple(_topic("CREATE", name, **_CREATED) for name in "ab")
    ),
    ApiKey.DELETE_TOPICS: Case(topic, _DELETED, 6, (_topic("DELETE"),)),
    ApiKey.CREATE_PARTITIONS: Case(topic, extended(), 3, (_topic("ALTER", partitions=2),)),
    ApiKey.DELETE_RECORDS: Case(topic, _RECORDS, 2, (_partition("DELETE", before_offset=0),)),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Case(
        topic, _MOVED, 1, (_partition("ALTER", replicas=[1]),)
    ),
    ApiKey.ELECT_LEADERS: Case(topic, _ELECTED, 2, (_NOT_NEEDED,)),
    ApiKey.ALTER_REPLICA_LOG_DIRS: Case(
        topic, _LOGS, 2, (_partition("ALTER", directory="/data/two"),)
    ),
    ApiKey.WRITE_TXN_MARKERS: Case(
        topic, _MARKER, 1, (_partition("ALTER", producer_id=7, end="abort"),)
    ),
    ApiKey.ALTER_CONFIGS: Case(topic, replaced(), 2, (_topic("ALTER_CONFIGS") | _SET,)),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Case(
        topic, configured(0, "retention.ms", "1000"), 1, (_topic("ALTER_CONFIGS") | _SET,)
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: Case(nothing, quota(), 1, (_QUOTA,)),
    ApiKey.UPDATE_FEATURES: Case(nothing, feature(), 1, (_LEVEL,)),
    ApiKey.DELETE_GROUPS: Case(
        group, delete_groups.DeleteGroupsRequest(groups_names=["g"]), 2, (_GROUP,)
    ),
    ApiKey.OFFSET_DELETE: Case(
        group, _OFFSETS, 0, (_GROUP | {"details": {"topic": "t", "partition": 0}},)
    ),
    ApiKey.CREATE_ACLS: Case(
        nothing,
        create_acls.CreateAclsRequest(creations=[create_acls.AclCreation(**_ACL)]),
        3,
        (_ENTRY,),
    ),
    ApiKey.DELETE_ACLS: Case(acl, _ANY_ACL, 3, (_ENTRY,)),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Case(nothing, _SCRAM, 0, (_USER,)),
}
