"""The administration of a cluster as one object: a method for each admin API.

Not done: delegation tokens; quorums of KRaft controllers; share groups and streams groups; the
client's own metrics. Operations that a principal is authorized for are not returned. Ottla's broker
has no access control lists and SCRAM users yet, and registrations that end with their session:
their methods are for other clusters.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any

from ottla.client.admin import (
    acls,
    cluster,
    configs,
    features,
    groups,
    offsets,
    quotas,
    records,
    replicas,
    scram,
    topics,
    transactions,
)
from ottla.client.admin.config_values import ConfigValue
from ottla.client.brokers import Brokers
from ottla.client.config.names import Role
from ottla.client.config.settings import Config, read_settings
from ottla.client.errors import Closed
from ottla.client.records import OffsetAndMetadata, TopicPartition
from ottla.client.security.options import security_of

Key = tuple[str, int]
_TIMEOUT_MS = 60_000
_MAX_TIMEOUT_MS = 900_000
"""The default of transaction.max.timeout.ms."""


class _Connected:
    """A connection to one cluster."""

    def __init__(self, config: Config, settings: Mapping[str, Any]) -> None:
        merged = read_settings(Role.ADMIN, config, settings).merged
        self._open: Brokers | None = Brokers(
            merged["bootstrap.servers"],
            timeout_s=float(merged.get("default.api.timeout.ms", _TIMEOUT_MS)) / 1000,
            client_id=str(merged.get("client.id", "ottla")),
            security=security_of(merged),
        )

    @property
    def _brokers(self) -> Brokers:
        if self._open is None:
            raise Closed("the admin client is closed: create a new one")
        return self._open

    def close(self) -> None:
        """Close every connection; idempotent."""
        if self._open is not None:
            self._open.close()
            self._open = None


class _TopicMethods(_Connected):
    """Topics, their records and their configuration."""

    def list_topics(self, *, include_internal: bool = False) -> list[topics.Topic]:
        """Return the topics by name."""
        listed = topics.list_topics(self._brokers)
        return [row for row in listed if include_internal or not row.is_internal]

    def describe_topic(self, name: str) -> topics.Topic:
        """Return a topic with leaders, replicas and ISR; ApiError if there is none."""
        return topics.describe_topic(self._brokers, name)

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = topics.BROKER_DEFAULT,
        replication_factor: int = topics.BROKER_DEFAULT,
        assignments: Sequence[Sequence[int]] = (),
        config: Mapping[str, ConfigValue] | None = None,
        validate_only: bool = False,
    ) -> topics.CreatedTopic:
        """Create a topic; the broker's defaults replace numbers that are not given.

        `assignments` replaces the numbers: the brokers of each partition, the preferred leader
        first.

        Raises ApiError TOPIC_ALREADY_EXISTS, INVALID_CONFIG, INVALID_REPLICATION_FACTOR and others.
        """
        return topics.create_topic(
            self._brokers,
            name,
            partitions=partitions,
            replication_factor=replication_factor,
            assignments=assignments,
            config=config,
            validate_only=validate_only,
        )

    def create_partitions(
        self,
        name: str,
        total: int,
        *,
        assignments: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Increase a topic to `total` partitions; keys may move to other partitions.

        `assignments` has the brokers of each new partition, the preferred leader first.
        """
        topics.add_partitions(
            self._brokers, name, total, assignments=assignments, validate_only=validate_only
        )

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records; ApiError if there is none."""
        topics.delete_topic(self._brokers, name)

    def delete_records(self, before: Mapping[Key, int]) -> dict[Key, int]:
        """Delete the records before an offset (-1: all); return the new start of each partition."""
        return records.delete_records(self._brokers, before)

    def list_offsets(
        self, timestamps: Mapping[Key, int], *, read_committed: bool = False
    ) -> dict[Key, offsets.FoundOffset]:
        """Return the first offset at or after a time (ms) in each partition.

        -1 is the end, -2 the beginning, and -3 the record with the largest timestamp. With
        `read_committed` the end is before the first open transaction.
        """
        level = offsets.READ_COMMITTED if read_committed else offsets.READ_UNCOMMITTED
        return offsets.list_offsets(self._brokers, timestamps, isolation_level=level)

    def describe_topic_config(self, name: str) -> list[configs.ConfigEntry]:
        """Return the options of a topic, each with its source."""
        resource = configs.Resource(configs.ResourceType.TOPIC, name)
        return configs.describe_config(self._brokers, resource)

    def alter_topic_config(
        self,
        name: str,
        assign: Mapping[str, ConfigValue] | None = None,
        *,
        delete: Sequence[str] = (),
    ) -> None:
        """Set options of a topic and reset others to their defaults, all or nothing."""
        resource = configs.Resource(configs.ResourceType.TOPIC, name)
        configs.alter_config(self._brokers, resource, assign=assign, delete=delete)


class _GroupMethods(_Connected):
    """Consumer groups and their offsets."""

    def list_groups(
        self, *, states: Sequence[str] = (), types: Sequence[str] = ()
    ) -> list[groups.GroupListing]:
        """Return the groups by id, optionally only those in some states, or of some types.

        The types are "classic" and "consumer".
        """
        return groups.list_groups(self._brokers, states=states, types=types)

    def describe_group(self, group_id: str) -> groups.Group:
        """Return a group with its members; ApiError GROUP_ID_NOT_FOUND."""
        return groups.describe_group(self._brokers, group_id)

    def delete_group(self, group_id: str) -> None:
        """Delete a group without members; ApiError NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND."""
        groups.delete_group(self._brokers, group_id)

    def remove_members(
        self, group_id: str, *, instance_ids: Iterable[str] | None = None, reason: str = ""
    ) -> None:
        """Remove the static members with these `group.instance.id`, or all members of a group.

        Running consumers rejoin, unless they are static. Ids that are not in the group are skipped.
        """
        group = groups.describe_group(self._brokers, group_id)
        if instance_ids is not None:
            chosen = set(instance_ids)
            members = tuple(row for row in group.members if row.instance_id in chosen)
            group = replace(group, members=members)
        groups.remove_members(self._brokers, group, reason=reason)

    def list_group_offsets(self, group_id: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of a group; empty if it does not exist."""
        committed = offsets.committed_offsets(self._brokers, group_id)
        return {
            TopicPartition(*key): OffsetAndMetadata(row.offset, row.metadata)
            for key, row in committed.items()
        }

    def alter_group_offsets(
        self, group_id: str, committed: Mapping[Key, int | OffsetAndMetadata]
    ) -> None:
        """Commit offsets for a group without members; ApiError if it has some."""
        plain = {}
        for key, value in committed.items():
            row = value if isinstance(value, OffsetAndMetadata) else OffsetAndMetadata(value)
            plain[key[0], key[1]] = offsets.CommittedOffset(row.offset, metadata=row.metadata)
        offsets.commit_offsets(self._brokers, group_id, plain)

    def delete_group_offsets(self, group_id: str, partitions: Iterable[Key]) -> None:
        """Delete committed offsets of a group."""
        offsets.delete_offsets(self._brokers, group_id, partitions)


class _ClusterMethods(_Connected):
    """Brokers, replicas and transactions."""

    def describe_cluster(self) -> cluster.ClusterDescription:
        """Return the cluster's id, controller and brokers."""
        return cluster.describe_cluster(self._brokers)

    def unregister_broker(self, node_id: int) -> None:
        """Remove the registration of a broker that is gone from a KRaft cluster."""
        cluster.unregister_broker(self._brokers, node_id)

    def describe_config(
        self, resource: configs.Resource, *, names: Sequence[str] | None = None
    ) -> list[configs.ConfigEntry]:
        """Return the options of a topic, broker, logger, group or subscription to client metrics."""
        return configs.describe_config(self._brokers, resource, names=names)

    def alter_config(
        self,
        resource: configs.Resource,
        assign: Mapping[str, ConfigValue] | None = None,
        *,
        delete: Sequence[str] = (),
        append: Mapping[str, ConfigValue] | None = None,
        subtract: Mapping[str, ConfigValue] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Set options, reset others, and add or remove elements of lists: all or nothing."""
        configs.alter_config(
            self._brokers,
            resource,
            assign=assign,
            delete=delete,
            append=append,
            subtract=subtract,
            validate_only=validate_only,
        )

    def describe_broker_config(self, node_id: int) -> list[configs.ConfigEntry]:
        """Return the options of a broker, each with its source."""
        resource = configs.Resource(configs.ResourceType.BROKER, str(node_id))
        return configs.describe_config(self._brokers, resource)

    def alter_broker_config(
        self,
        node_id: int | None,
        assign: Mapping[str, ConfigValue] | None = None,
        *,
        delete: Sequence[str] = (),
    ) -> None:
        """Set dynamic options of a broker, or the cluster's defaults if `node_id` is None."""
        name = "" if node_id is None else str(node_id)
        resource = configs.Resource(configs.ResourceType.BROKER, name)
        configs.alter_config(self._brokers, resource, assign=assign, delete=delete)

    def describe_log_dirs(self, node_id: int) -> list[replicas.LogDirectory]:
        """Return the log directories of a broker, with the replicas in each."""
        return replicas.describe_log_dirs(self._brokers, node_id)

    def elect_leaders(
        self, partitions: Iterable[Key] | None = None, *, unclean: bool = False
    ) -> list[Key]:
        """Elect preferred leaders, or any live replica if `unclean`; return the changed partitions."""
        kind = replicas.ElectionType.UNCLEAN if unclean else replicas.ElectionType.PREFERRED
        return replicas.elect_leaders(self._brokers, partitions, election_type=kind)

    def alter_partition_reassignments(self, targets: Mapping[Key, Sequence[int] | None]) -> None:
        """Move partitions to these brokers; None cancels a move."""
        replicas.alter_reassignments(self._brokers, targets)

    def list_partition_reassignments(self) -> dict[Key, replicas.Reassignment]:
        """Return the partitions whose replicas are being moved."""
        return replicas.list_reassignments(self._brokers)

    def list_transactions(
        self,
        *,
        states: Sequence[str] = (),
        producer_ids: Sequence[int] = (),
        min_duration_ms: int = -1,
        pattern: str | None = None,
    ) -> list[transactions.TransactionListing]:
        """Return the transactional ids of the cluster, or those that fit all filters; a pattern is
        a regular expression of RE2.
        """
        return transactions.list_transactions(
            self._brokers,
            states=states,
            producer_ids=producer_ids,
            min_duration_ms=min_duration_ms,
            pattern=pattern,
        )

    def describe_transaction(self, transactional_id: str) -> transactions.Transaction:
        """Return a transaction; ApiError TRANSACTIONAL_ID_NOT_FOUND."""
        return transactions.describe_transaction(self._brokers, transactional_id)

    def describe_producers(self, topic: str, partition: int) -> list[transactions.ActiveProducer]:
        """Return the producers that the leader of a partition remembers."""
        return transactions.describe_producers(self._brokers, topic, partition)

    def find_hanging_transactions(
        self, partitions: Iterable[Key], *, now_ms: int, max_timeout_ms: int = _MAX_TIMEOUT_MS
    ) -> list[transactions.HangingTransaction]:
        """Return the open transactions of partitions that their coordinators do not have (KIP-664).

        `max_timeout_ms`: younger transactions are left out, since they may still be completed.
        """
        return transactions.find_hanging_transactions(
            self._brokers, partitions, now_ms=now_ms, max_timeout_ms=max_timeout_ms
        )

    def move_replicas(self, node_id: int, targets: Mapping[Key, str]) -> None:
        """Move replicas of a broker to other log directories of it; `describe_log_dirs` shows
        progress.
        """
        replicas.move_replicas(self._brokers, node_id, targets)

    def fence_producer(self, transactional_id: str) -> tuple[int, int]:
        """Fence a transactional producer and abort its transaction; return producer id and epoch."""
        return transactions.fence_producer(self._brokers, transactional_id)

    def abort_transaction(
        self, topic: str, partition: int, producer: transactions.ActiveProducer
    ) -> None:
        """Abort a transaction that its coordinator has forgotten, in one partition (KIP-664)."""
        transactions.abort_transaction(self._brokers, topic, partition, producer)


class _SettingsMethods(_Connected):
    """Quotas, features, and resources with a configuration."""

    def describe_client_quotas(
        self,
        entity: quotas.Entity | None = None,
        *,
        any_of: Sequence[str] = (),
        strict: bool = False,
    ) -> list[quotas.Quota]:
        """Return the quotas of matching entities, by default all; None is the default of a type."""
        return quotas.describe_quotas(self._brokers, entity, any_of=any_of, strict=strict)

    def alter_client_quotas(
        self,
        entity: quotas.Entity,
        assign: Mapping[str, float] | None = None,
        *,
        delete: Sequence[str] = (),
    ) -> None:
        """Set quotas of an entity such as {"client-id": "loader"}, and remove others."""
        quotas.alter_quotas(self._brokers, entity, assign, delete=delete)

    def describe_features(self) -> list[features.Feature]:
        """Return the features of the cluster with their levels."""
        return features.describe_features(self._brokers)

    def update_features(
        self,
        levels: Mapping[str, int],
        *,
        upgrade_type: features.UpgradeType = features.UpgradeType.UPGRADE,
        validate_only: bool = False,
    ) -> None:
        """Set the levels of features, all or none."""
        features.update_features(
            self._brokers, levels, upgrade_type=upgrade_type, validate_only=validate_only
        )

    def list_config_resources(
        self, types: Sequence[configs.ResourceType] = ()
    ) -> list[configs.Resource]:
        """Return the resources that can have a configuration, of these types or of all."""
        return configs.list_config_resources(self._brokers, types)


class _AccessMethods(_Connected):
    """Access control lists and SCRAM users; Unsupported if the brokers do not serve them."""

    def describe_acls(self, matching: acls.AclBinding = acls.ANY) -> list[acls.AclBinding]:
        """Return the ACLs that match a filter, by default all.

        ApiError SECURITY_DISABLED if the brokers have no authorizer.
        """
        return acls.describe_acls(self._brokers, matching)

    def create_acls(self, bindings: Iterable[acls.AclBinding]) -> None:
        """Add ACLs; ApiError of the first that was rejected, the others are added."""
        acls.create_acls(self._brokers, bindings)

    def delete_acls(self, filters: Iterable[acls.AclBinding]) -> list[acls.AclBinding]:
        """Delete the ACLs that match at least one of the filters, and return them."""
        return acls.delete_acls(self._brokers, filters)

    def describe_user_scram_credentials(
        self, users: Sequence[str] | None = None
    ) -> dict[str, tuple[scram.ScramCredential, ...]]:
        """Return the credentials of these users, or of all; users without any are left out."""
        return scram.describe_user_scram_credentials(self._brokers, users)

    def alter_user_scram_credentials(
        self,
        upsertions: Iterable[scram.ScramUpsertion] = (),
        deletions: Iterable[scram.ScramDeletion] = (),
    ) -> None:
        """Create, replace and delete credentials: one change of each user."""
        scram.alter_user_scram_credentials(self._brokers, upsertions, deletions)


class AdminClient(_TopicMethods, _GroupMethods, _ClusterMethods, _SettingsMethods, _AccessMethods):
    """Reads and changes a cluster; a context manager that closes its connections.

        with AdminClient(bootstrap_servers="localhost:9092") as admin:
            admin.create_topic("orders", partitions=3, config={"retention.ms": "60000"})

    Each method sends its request to the right broker, retries transient errors for
    `default.api.timeout.ms`, and raises ApiError for permanent ones. For one thread.
    """

    def __init__(self, config: Config = None, /, **settings: Any) -> None:
        super().__init__(config, settings)

    def __enter__(self) -> "AdminClient":
        """Return itself; connections are opened on first use."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close every connection."""
        self.close()
