"""Checks invariants over the states of all brokers while a simulation runs.

Every few simulated milliseconds it checks, for each partition and each broker:

- the members of a leader's ISR have every committed record; with flush.on.ack they have stored the
  records that the high watermark has just passed;
- the high watermark does not move while the ISR is smaller than min.insync.replicas (KIP-966);
- one broker leads in a leader epoch, and a later leader has every committed record;
- leader epochs and controller epochs that a broker has applied never decrease during its life.

It finds violations that a later step repairs, which no history of a client shows.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ottla.replication.isr import IsrMachine
from ottla.replication.partition import Partition
from ottla.server.node import Node
from ottla.testing.sim.cluster.brokers import SimCluster

SAMPLE_SECONDS = 0.01
_PROBLEMS_MAX = 20

Key = tuple[bytes, int]
"""Topic id and partition."""


class _Mark(NamedTuple):
    """A leader at the previous check."""

    leader_epoch: int
    partition_epoch: int
    high_watermark: int


class _Committed(NamedTuple):
    """The highest committed offset of a partition, and the leader epoch in which it was seen."""

    leader_epoch: int
    high_watermark: int


class _Life:
    """The epochs that one process of a broker has applied."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.controller_epoch = 0
        self.leader_epochs: dict[Key, int] = {}
        self.marks: dict[Key, _Mark] = {}


class Invariants:
    """Checks a cluster periodically; `problems` are the violations, each as one line."""

    def __init__(self, cluster: SimCluster) -> None:
        self._cluster = cluster
        self._problems: dict[str, None] = {}
        self._lives: dict[int, _Life] = {}
        self._leaders: dict[tuple[Key, int], int] = {}
        self._committed: dict[Key, _Committed] = {}

    @property
    def problems(self) -> list[str]:
        """The violations in the order in which they were found."""
        return list(self._problems)

    async def run(self) -> None:
        """Check periodically until cancelled."""
        while True:
            self.look()
            await self._cluster.clock.sleep(SAMPLE_SECONDS)

    def look(self) -> None:
        """Check the current states once."""
        replicas: dict[Key, dict[int, Partition]] = {}
        for broker_id, node in self._cluster.nodes.items():
            life = self._life(broker_id, node)
            for partition in _partitions(node):
                key = partition.topic_id, partition.partition
                replicas.setdefault(key, {})[broker_id] = partition
                self._check_epoch(life, broker_id, key, partition)
        for key, by_broker in replicas.items():
            for broker_id, partition in by_broker.items():
                if partition.is_leader and partition.isr is not None:
                    self._check_leader(broker_id, key, partition, partition.isr, by_broker)

    def _life(self, broker_id: int, node: Node) -> _Life:
        life = self._lives.get(broker_id)
        if life is None or life.node is not node:
            life = self._lives[broker_id] = _Life(node)
        image = node.broker.image if node.has_broker else None
        if image is not None:
            if image.controller_epoch < life.controller_epoch:
                self._report(
                    f"controller epoch {image.controller_epoch} after {life.controller_epoch}"
                    f" on broker {broker_id}"
                )
            life.controller_epoch = image.controller_epoch
        return life

    def _check_epoch(self, life: _Life, broker_id: int, key: Key, partition: Partition) -> None:
        highest = life.leader_epochs.get(key, -1)
        if partition.leader_epoch < highest and not partition.is_deleted:
            self._report(
                f"leader epoch {partition.leader_epoch} after {highest}: {_name(partition)}"
                f" on broker {broker_id}"
            )
        life.leader_epochs[key] = partition.leader_epoch

    def _check_leader(
        self,
        broker_id: int,
        key: Key,
        leader: Partition,
        isr: IsrMachine,
        replicas: dict[int, Partition],
    ) -> None:
        epoch, committed = leader.leader_epoch, leader.high_watermark
        name = f"{_name(leader)} in epoch {epoch} on broker {broker_id}"
        first = self._leaders.setdefault((key, epoch), broker_id)
        if first != broker_id:
            self._report(f"two leaders: {name} and on broker {first}")
        life = self._lives[broker_id]
        mark = life.marks.get(key)
        has_moved = (
            mark is not None and mark.leader_epoch == epoch and committed > mark.high_watermark
        )
        is_same_isr = mark is not None and mark.partition_epoch == leader.partition_epoch
        if has_moved and is_same_isr and not isr.has_enough_replicas(leader.min_insync_replicas):
            self._report(f"high watermark moved to {committed} with isr {sorted(isr.isr)}: {name}")
        moved_durably = has_moved and leader.log.config.flush_on_ack
        for member, replica in _members(leader, isr, replicas):
            if replica.log.log_end_offset < committed:
                self._report(
                    f"in-sync replica lacks committed records: broker {member} ends at"
                    f" {replica.log.log_end_offset}, committed is {committed}: {name}"
                )
            elif moved_durably and replica.log.recovery_point < committed:
                self._report(
                    f"committed before it is durable: broker {member} has stored"
                    f" {replica.log.recovery_point} of {committed}: {name}"
                )
        life.marks[key] = _Mark(epoch, leader.partition_epoch, committed)
        self._check_successor(key, leader, name)

    def _check_successor(self, key: Key, leader: Partition, name: str) -> None:
        committed = self._committed.get(key, _Committed(-1, 0))
        end = leader.log.log_end_offset
        if leader.leader_epoch > committed.leader_epoch and end < committed.high_watermark:
            self._report(f"leader ends at {end}, committed was {committed.high_watermark}: {name}")
        if leader.high_watermark > committed.high_watermark:
            self._committed[key] = _Committed(leader.leader_epoch, leader.high_watermark)

    def _report(self, text: str) -> None:
        if len(self._problems) < _PROBLEMS_MAX:
            self._problems.setdefault(text)


def _partitions(node: Node) -> Iterator[Partition]:
    """Yield the replicas of a broker; none while it starts."""
    replicas = node.broker.replicas if node.has_broker else None
    return iter(()) if replicas is None else iter(replicas.all_partitions())


def _members(
    leader: Partition, isr: IsrMachine, replicas: dict[int, Partition]
) -> Iterator[tuple[int, Partition]]:
    """Yield the members of the ISR that run and have applied the leader's epoch."""
    for member in sorted(isr.isr):
        replica = replicas.get(member)
        if replica is None or replica.is_deleted or replica.is_offline:
            continue
        if replica.leader_epoch == leader.leader_epoch:
            yield member, replica


def _name(partition: Partition) -> str:
    return f"{partition.topic}-{partition.partition}"
