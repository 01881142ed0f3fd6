"""The methods of AdminClient for brokers, controllers, replicas and transactions."""

from collections.abc import Iterable, Mapping, Sequence

from ottla.client.admin import cluster, configs, replicas, transactions
from ottla.client.admin.apache import quorum
from ottla.client.admin.config_values import ConfigValue
from ottla.client.admin.methods.connected import Connected

Key = tuple[str, int]
_MAX_TIMEOUT_MS = 900_000
"""The default of transaction.max.timeout.ms."""


class ClusterMethods(Connected):
    """Brokers, replicas and transactions."""

    def describe_cluster(
        self, *, include_authorized_operations: bool = False, include_fenced_brokers: bool = False
    ) -> cluster.ClusterDescription:
        """Return the cluster's id, controller and brokers, optionally also the fenced ones."""
        return cluster.describe_cluster(
            self._brokers,
            include_authorized_operations=include_authorized_operations,
            include_fenced_brokers=include_fenced_brokers,
        )

    def describe_config(
        self,
        resource: configs.Resource,
        *,
        names: Sequence[str] | None = None,
        include_synonyms: bool = False,
    ) -> list[configs.ConfigEntry]:
        """Return the options of a topic, broker, logger, group or subscription to client metrics.

        With `include_synonyms` each has all its settings, such as the default of all brokers.
        """
        return configs.describe_config(
            self._brokers, resource, names=names, include_synonyms=include_synonyms
        )

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

    def describe_replica_log_dirs(
        self, targets: Iterable[tuple[str, int, int]]
    ) -> dict[tuple[str, int, int], replicas.ReplicaLogDirs]:
        """Return the log directories of replicas: each is a topic, a partition and a broker."""
        return replicas.describe_replica_log_dirs(self._brokers, targets)

    def elect_leaders(
        self, partitions: Iterable[Key] | None = None, *, unclean: bool = False
    ) -> list[Key]:
        """Elect preferred leaders, or any live replica if `unclean`; return the changed partitions."""
        kind = replicas.ElectionType.UNCLEAN if unclean else replicas.ElectionType.PREFERRED
        return replicas.elect_leaders(self._brokers, partitions, election_type=kind)

    def alter_partition_reassignments(
        self,
        targets: Mapping[Key, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
    ) -> None:
        """Move partitions to these brokers; None cancels a move.

        Without `allow_replication_factor_change` another number of replicas is an error (KIP-860).
        """
        replicas.alter_reassignments(
            self._brokers, targets, keeps_factor=not allow_replication_factor_change
        )

    def list_partition_reassignments(
        self, partitions: Iterable[Key] | None = None
    ) -> dict[Key, replicas.Reassignment]:
        """Return those of these partitions, or of all, whose replicas are being moved."""
        return replicas.list_reassignments(self._brokers, partitions)

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

    def describe_producers(
        self, topic: str, partition: int, *, node_id: int | None = None
    ) -> list[transactions.ActiveProducer]:
        """Return the producers that a replica of a partition remembers: by default, its leader."""
        return transactions.describe_producers(self._brokers, topic, partition, node_id=node_id)

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

    def force_terminate_transaction(self, transactional_id: str) -> None:
        """Abort the open or prepared transaction of a transactional id, and fence its producer.

        For transactions that their coordinator knows (KIP-939).
        """
        transactions.fence_producer(self._brokers, transactional_id)

    def abort_transaction(
        self, topic: str, partition: int, producer: transactions.ActiveProducer
    ) -> None:
        """Abort a transaction that its coordinator has forgotten, in one partition (KIP-664)."""
        transactions.abort_transaction(self._brokers, topic, partition, producer)


class QuorumMethods(Connected):
    """The nodes of KRaft clusters; Unsupported if the brokers do not serve them."""

    def unregister_broker(self, node_id: int) -> None:
        """Remove the registration of a broker that is gone from a KRaft cluster."""
        cluster.unregister_broker(self._brokers, node_id)

    def describe_metadata_quorum(self) -> quorum.Quorum:
        """Return the leader, the voters and the observers of the metadata log."""
        return quorum.describe_metadata_quorum(self._brokers)

    def add_raft_voter(
        self,
        node_id: int,
        directory_id: bytes,
        endpoints: Iterable[quorum.RaftEndpoint],
        *,
        cluster_id: str | None = None,
    ) -> None:
        """Let a controller that runs as an observer vote; ApiError DUPLICATE_VOTER if it does."""
        quorum.add_raft_voter(
            self._brokers, node_id, directory_id, endpoints, cluster_id=cluster_id
        )

    def remove_raft_voter(
        self, node_id: int, directory_id: bytes, *, cluster_id: str | None = None
    ) -> None:
        """Remove a controller from the voters; ApiError VOTER_NOT_FOUND if it is none of them."""
        quorum.remove_raft_voter(self._brokers, node_id, directory_id, cluster_id=cluster_id)
