"""The administration of a cluster as one object: a method for each admin API.

Most methods are functions of this package (`method`), which commands and the console call with a
connection of their own.

Not done: `metrics` and `client_instance_id` do not exist, because this client neither collects
metrics nor pushes them to brokers (KIP-714). Producers and consumers cannot log in with a
delegation token, because librdkafka cannot. Ottla's broker has no KRaft quorum, share groups and
streams groups, and its registrations end with their session: their methods are for other clusters.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

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
from ottla.client.admin.apache import delegation_tokens, quorum, share_groups, streams_groups
from ottla.client.admin.config_values import ConfigValue
from ottla.client.brokers import Brokers
from ottla.client.config.names import Role
from ottla.client.config.settings import Config, read_settings
from ottla.client.errors import Closed
from ottla.client.records import OffsetAndMetadata, TopicPartition
from ottla.client.security.options import security_of

Key = tuple[str, int]
P = ParamSpec("P")
R = TypeVar("R")

_TIMEOUT_MS = 60_000
_MAX_TIMEOUT_MS = 900_000
"""The default of transaction.max.timeout.ms."""


def method(
    function: Callable[Concatenate[Brokers, P], R],
) -> "Callable[Concatenate[AdminClient, P], R]":
    """Return a function as a method of AdminClient: with its signature, types and docstring."""

    @functools.wraps(function)
    def call(self: "AdminClient", /, *arguments: P.args, **options: P.kwargs) -> R:
        return function(self._brokers, *arguments, **options)

    signature = inspect.signature(function)
    brokers, *parameters = signature.parameters.values()
    parameters.insert(0, brokers.replace(name="self", annotation=inspect.Parameter.empty))
    vars(call)["__signature__"] = signature.replace(parameters=parameters)
    call.__annotations__.pop(brokers.name)
    call.__qualname__ = f"AdminClient.{function.__name__}"
    return call


class AdminClient:
    """Reads and changes a cluster; a context manager that closes its connections.

        with AdminClient(bootstrap_servers="localhost:9092") as admin:
            admin.create_topic("orders", partitions=3, config={"retention.ms": "60000"})

    Each method sends its request to the right broker, retries transient errors for
    `default.api.timeout.ms`, and raises ApiError for permanent ones. For one thread.
    """

    def __init__(self, config: Config = None, /, **settings: Any) -> None:
        merged = read_settings(Role.ADMIN, config, settings).merged
        self._open: Brokers | None = Brokers(
            merged["bootstrap.servers"],
            timeout_s=float(merged.get("default.api.timeout.ms", _TIMEOUT_MS)) / 1000,
            client_id=str(merged.get("client.id", "ottla")),
            security=security_of(merged),
        )

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

    # -- topics, their records and their configuration --------------------------------------------

    describe_topic = method(topics.describe_topic)
    create_topic = method(topics.create_topic)
    create_partitions = method(topics.create_partitions)
    delete_topic = method(topics.delete_topic)
    delete_records = method(records.delete_records)

    def list_topics(self, *, include_internal: bool = False) -> list[topics.Topic]:
        """Return the topics by name."""
        listed = topics.list_topics(self._brokers)
        return [row for row in listed if include_internal or not row.is_internal]

    def list_offsets(
        self, timestamps: Mapping[Key, int], *, read_committed: bool = False
    ) -> dict[Key, offsets.FoundOffset]:
        """Return the first offset at or after a time (ms) in each partition.

        -1 is the end, -2 the beginning, -3 the record with the largest timestamp, -4 the beginning
        of the local log, and -5 the end of the tiered one. With
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
        configs.alter_config(self._brokers, resource, assign, delete=delete)

    # -- groups and their offsets -----------------------------------------------------------------

    list_groups = method(groups.list_groups)
    describe_group = method(groups.describe_group)
    describe_share_group = method(share_groups.describe_share_group)
    describe_streams_group = method(streams_groups.describe_streams_group)
    delete_group = method(groups.delete_group)
    delete_group_offsets = method(offsets.delete_group_offsets)
    list_share_group_offsets = method(share_groups.list_share_group_offsets)
    alter_share_group_offsets = method(share_groups.alter_share_group_offsets)
    delete_share_group_offsets = method(share_groups.delete_share_group_offsets)

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

    def list_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[Key] | None = None,
        *,
        require_stable: bool = True,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of a group, of these partitions or of all; empty if it does
        not exist.

        Waits for open transactions unless `require_stable` is False (KIP-447). Streams groups have
        such offsets, too; share groups have `list_share_group_offsets`.
        """
        committed = offsets.committed_offsets(
            self._brokers, group_id, require_stable=require_stable
        )
        chosen = None if partitions is None else {TopicPartition(*key) for key in partitions}
        return {
            # Metadata that librdkafka has committed for a program in Python ends with a NUL.
            TopicPartition(*key): OffsetAndMetadata(row.offset, row.metadata.removesuffix("\0"))
            for key, row in committed.items()
            if chosen is None or key in chosen
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

    # -- brokers, controllers and features --------------------------------------------------------

    describe_cluster = method(cluster.describe_cluster)
    unregister_broker = method(cluster.unregister_broker)
    describe_metadata_quorum = method(quorum.describe_metadata_quorum)
    add_raft_voter = method(quorum.add_raft_voter)
    remove_raft_voter = method(quorum.remove_raft_voter)
    update_features = method(features.update_features)

    def describe_features(self, *, node_id: int | None = None) -> list[features.Feature]:
        """Return the features of the cluster with their levels, as any broker or one knows them."""
        return [*features.read_features(self._brokers, node_id).features]

    # -- configurations and quotas ----------------------------------------------------------------

    describe_config = method(configs.describe_config)
    alter_config = method(configs.alter_config)
    list_config_resources = method(configs.list_config_resources)
    describe_client_quotas = method(quotas.describe_client_quotas)
    alter_client_quotas = method(quotas.alter_client_quotas)

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
        configs.alter_config(self._brokers, resource, assign, delete=delete)

    # -- replicas ---------------------------------------------------------------------------------

    describe_log_dirs = method(replicas.describe_log_dirs)
    describe_replica_log_dirs = method(replicas.describe_replica_log_dirs)
    move_replicas = method(replicas.move_replicas)
    alter_partition_reassignments = method(replicas.alter_partition_reassignments)
    list_partition_reassignments = method(replicas.list_partition_reassignments)

    def elect_leaders(
        self, partitions: Iterable[Key] | None = None, *, unclean: bool = False
    ) -> list[Key]:
        """Elect preferred leaders, or any live replica if `unclean`; return the changed partitions."""
        kind = replicas.ElectionType.UNCLEAN if unclean else replicas.ElectionType.PREFERRED
        return replicas.elect_leaders(self._brokers, partitions, election_type=kind)

    # -- transactions -----------------------------------------------------------------------------

    list_transactions = method(transactions.list_transactions)
    describe_transaction = method(transactions.describe_transaction)
    describe_producers = method(transactions.describe_producers)
    abort_transaction = method(transactions.abort_transaction)

    def find_hanging_transactions(
        self, partitions: Iterable[Key], *, now_ms: int, max_timeout_ms: int = _MAX_TIMEOUT_MS
    ) -> list[transactions.HangingTransaction]:
        """Return the open transactions of partitions that their coordinators do not have (KIP-664).

        `max_timeout_ms`: younger transactions are left out, since they may still be completed.
        """
        return transactions.find_hanging_transactions(
            self._brokers, partitions, now_ms=now_ms, max_timeout_ms=max_timeout_ms
        )

    def fence_producer(self, transactional_id: str) -> tuple[int, int]:
        """Fence a transactional producer and abort its transaction; return producer id and epoch."""
        return transactions.fence_producer(self._brokers, transactional_id)

    def force_terminate_transaction(self, transactional_id: str) -> None:
        """Abort the open or prepared transaction of a transactional id, and fence its producer.

        For transactions that their coordinator knows (KIP-939).
        """
        transactions.fence_producer(self._brokers, transactional_id)

    # -- access control lists, SCRAM users, tokens; Unsupported if the brokers do not serve them ---

    describe_acls = method(acls.describe_acls)
    create_acls = method(acls.create_acls)
    delete_acls = method(acls.delete_acls)
    describe_user_scram_credentials = method(scram.describe_user_scram_credentials)
    alter_user_scram_credentials = method(scram.alter_user_scram_credentials)
    create_delegation_token = method(delegation_tokens.create_delegation_token)
    renew_delegation_token = method(delegation_tokens.renew_delegation_token)
    expire_delegation_token = method(delegation_tokens.expire_delegation_token)
    describe_delegation_tokens = method(delegation_tokens.describe_delegation_tokens)
