"""The coordinators of one broker, assembled: groups, transactions, transactional writes."""

from collections.abc import Callable
from dataclasses import dataclass

from ottla.cluster.features import TRANSACTION_VERSION
from ottla.cluster.names import GROUP_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from ottla.cluster.zk.port import Coordination
from ottla.coordinators.groups.service import GroupCoordinator
from ottla.coordinators.producer_ids import ProducerIds
from ottla.coordinators.txn import service as transactions
from ottla.coordinators.txn.service import TransactionCoordinator
from ottla.replication.partition import Partition
from ottla.server.brokers.markers import ClusterMarkers
from ottla.server.brokers.membership import Environment
from ottla.server.brokers.peers import Peers
from ottla.server.brokers.transaction_checks import TransactionChecks
from ottla.server.produce.admission import Admission
from ottla.server.produce.markers import ReplicaMarkers
from ottla.server.produce.partition_writer import ReplicaWriter


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Coordinators:
    """The coordinators of a broker, and the parts that connect them to its partitions."""

    groups: GroupCoordinator
    transactions: TransactionCoordinator
    markers: ReplicaMarkers
    admission: Admission
    producer_ids: ProducerIds

    def leading(self, partition: Partition) -> None:
        """Load the state of a partition that this broker has begun to lead."""
        if partition.topic == GROUP_OFFSETS_TOPIC:
            self.groups.load(partition.partition, partition.leader_epoch)
        elif partition.topic == TRANSACTION_STATE_TOPIC:
            self.transactions.load(partition.partition, partition.leader_epoch)

    def ceasing(self, partition: Partition) -> None:
        """Drop the state of a partition that this broker no longer leads."""
        if partition.topic == GROUP_OFFSETS_TOPIC:
            self.groups.unload(partition.partition)
        elif partition.topic == TRANSACTION_STATE_TOPIC:
            self.transactions.unload(partition.partition)


def coordinators_of(
    environment: Environment, peers: Peers, session: Callable[[], Coordination], *, is_mixed: bool
) -> Coordinators:
    """Return the coordinators of a broker; they load the partitions that it leads.

    `session` returns the broker's current session. `is_mixed` is True if other brokers of the
    cluster may be Apache Kafka's.
    """
    replicas, current, tasks = environment.replicas, environment.current, environment.tasks
    writer = ReplicaWriter(replicas, environment.clock)
    groups = GroupCoordinator(
        writer=writer,
        clock=environment.clock,
        rng=environment.rng,
        tasks=tasks,
        options=lambda: current.options,
        image=lambda: current.image,
        group_options=environment.configs.group,
    )
    groups.in_background = environment.files.in_background
    markers = ReplicaMarkers(replicas, groups, environment.clock)
    producer_ids = ProducerIds(environment.node_id, session, tasks)
    coordinator = TransactionCoordinator(
        writer=writer,
        markers=ClusterMarkers(
            node_id=environment.node_id,
            current=current,
            peers=peers,
            local=markers,
            tasks=tasks,
            is_mixed=is_mixed,
        ),
        producer_ids=producer_ids,
        clock=environment.clock,
        tasks=tasks,
        now=transactions.Environment(
            options=lambda: current.options,
            image=lambda: current.image,
            version=lambda: environment.features.level(TRANSACTION_VERSION),
        ),
    )
    checks = TransactionChecks(environment.node_id, coordinator, peers, environment.clock, tasks)
    coordinators = Coordinators(
        groups=groups,
        transactions=coordinator,
        markers=markers,
        admission=Admission(coordinator, tasks, lambda: current.options, checks),
        producer_ids=producer_ids,
    )
    replicas.on_leading.append(coordinators.leading)
    replicas.on_ceasing.append(coordinators.ceasing)
    return coordinators
