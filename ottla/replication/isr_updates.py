"""Growing and shrinking the ISR: a leader proposes, the controller decides (KIP-497).

While a proposal is under way, the high watermark counts both the member that joins and the member
that leaves. So no member lacks a committed record, whichever state the controller stores. Follows
kafka.cluster.Partition.maybeExpandIsr and maybeShrinkIsr.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode
from ottla.replication import leading
from ottla.replication.partition import Partition
from ottla.replication.ports import IsrAnswer, IsrChanges, IsrMember, IsrProposal

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """The controller, time, and the brokers that are alive.

    `lag_seconds` is replica.lag.time.max.ms; `eligible` returns the brokers that may join.
    """

    clock: Clock
    changes: IsrChanges
    lag_seconds: Callable[[], float]
    eligible: Callable[[], Collection[int]]
    partitions: Callable[[], Iterable[Partition]]


class IsrUpdates:
    """Proposes changes of the ISR for the partitions that this broker leads."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies
        # Decided by the controller; refused or failed.
        self.expansions_count = self.shrinks_count = self.failures_count = 0

    async def run(self) -> None:
        """Propose to remove lagging members, twice in replica.lag.time.max.ms."""
        while True:
            await self._dependencies.clock.sleep(self._dependencies.lag_seconds() / 2)
            self.shrink_lagging()

    def shrink_lagging(self) -> None:
        """Propose for each partition to remove the members that have not caught up for too long."""
        now = self._dependencies.clock.monotonic()
        lag_seconds = self._dependencies.lag_seconds()
        for partition in self._dependencies.partitions():
            isr = partition.isr
            if isr is None or isr.is_change_pending or len(isr.isr) == 1:
                continue
            lagging = isr.replicas_to_drop(partition.log.log_end_offset, now, lag_seconds)
            if lagging:
                _log.info(
                    "isr shrinks partition=%s-%d out=%s",
                    partition.topic, partition.partition, sorted(lagging),
                )  # fmt: skip
                self._propose(partition, isr.isr - lagging)

    def follower_fetched(self, partition: Partition, replica: int) -> None:
        """Propose to add a follower that has just caught up, now or as soon as it is possible."""
        isr = partition.isr
        if isr is None or replica in isr.isr:
            return
        if replica in isr.replicas_to_join(partition.epoch_start_offset):
            isr.waiting.add(replica)
            self._add_waiting(partition)

    def brokers_changed(self) -> None:
        """Propose to add followers that caught up before this broker knew that they are alive."""
        for partition in self._dependencies.partitions():
            self._add_waiting(partition)

    def _add_waiting(self, partition: Partition) -> None:
        """Propose to add one of the followers that wait for it, unless a change is under way."""
        isr = partition.isr
        if isr is None or isr.is_change_pending or not isr.waiting:
            return
        eligible = self._dependencies.eligible()
        for replica in sorted(isr.waiting & isr.replicas_to_join(partition.epoch_start_offset)):
            if replica in eligible:
                isr.waiting.discard(replica)
                isr.joining = frozenset({replica})
                self._propose(partition, isr.isr | isr.joining)
                return

    def _propose(self, partition: Partition, new_isr: Collection[int]) -> None:
        isr = partition.isr
        assert isr is not None
        isr.is_change_pending = True
        proposal = IsrProposal(
            topic=partition.topic,
            topic_id=partition.topic_id,
            partition=partition.partition,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            new_isr=[
                IsrMember(replica, isr.broker_epoch_of(replica)) for replica in sorted(new_isr)
            ],
        )
        future = self._dependencies.changes.propose(proposal)
        grows = len(proposal.new_isr) > len(isr.isr)

        def answered(decided: "asyncio.Future[IsrAnswer]") -> None:
            self._count(decided.result(), grows=grows)
            self._answered(partition, proposal, decided.result())

        future.add_done_callback(answered)

    def _count(self, decision: IsrAnswer, *, grows: bool) -> None:
        if decision.error is not ErrorCode.NONE:
            self.failures_count += 1
        elif grows:
            self.expansions_count += 1
        else:
            self.shrinks_count += 1

    def _answered(self, partition: Partition, proposal: IsrProposal, decision: IsrAnswer) -> None:
        isr = partition.isr
        if isr is None or partition.leader_epoch != proposal.leader_epoch:
            return
        if decision.error is ErrorCode.NONE:
            leading.isr_decided(partition, decision.isr, decision.partition_epoch)
            # A follower that does not fetch again before the next record must not wait for that.
            self._add_waiting(partition)
            return
        if partition.partition_epoch != proposal.partition_epoch:
            # The controller's decision has already arrived another way.
            return
        _log.info(
            "isr change refused partition=%s-%d isr=%s error=%s",
            partition.topic, partition.partition,
            [member.broker_id for member in proposal.new_isr], decision.error.name,
        )  # fmt: skip
        if decision.error in _NOT_PERFORMED:
            isr.withdraw()
            # The high watermark no longer depends on the refused follower.
            partition.advance()
            partition.changed()
        # Otherwise the controller knows a newer state, which it sends: until then the members of
        # both states count.


_NOT_PERFORMED = (
    ErrorCode.INELIGIBLE_REPLICA,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.OPERATION_NOT_ATTEMPTED,
)
