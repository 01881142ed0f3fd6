"""Moves a member from its current partitions to its target: it revokes before it is assigned.

A member stays in its epoch until it has confirmed that it revoked its partitions
(UNREVOKED_PARTITIONS). Then it moves to the epoch of the target with all partitions that are free,
and waits for those that other members still own (UNRELEASED_PARTITIONS). So no partition ever has
two owners. Follows Kafka's CurrentAssignmentBuilder.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ottla.base.errors import ApiError, ErrorCode
from ottla.coordinators.consumer.assignment.target import Target
from ottla.coordinators.consumer.state import (
    ConsumerGroup,
    CurrentAssignment,
    Member,
    MemberState,
)
from ottla.wire.messages.consumer_group_heartbeat import TopicPartitions

_Assignment = dict[bytes, dict[int, int]]


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """The inputs of a member's next step.

    `owned` are the partitions that the member reports, None if it reports none. `topic_ids` are
    those that it reads. `has_new_subscription` is True if they have changed.
    """

    group: ConsumerGroup
    target: Target
    topic_ids: frozenset[bytes]
    owned: list[TopicPartitions] | None
    has_new_subscription: bool

    def step(self, member: Member) -> Member:
        """Return the member after its next step; the same member if no step is possible."""
        if member.state is MemberState.STABLE:
            if member.epoch != self.target.epoch:
                return self._next(member, member.epoch)
            return self._shrunk(member) if self.has_new_subscription else member
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            if self._owns(member.pending_revocation):
                return self._shrunk(member) if self.has_new_subscription else member
            return self._next(member, member.epoch)
        if member.state is MemberState.UNRELEASED_PARTITIONS:
            return self._next(member, member.epoch)
        if self.owned is None or self.owned:
            raise ApiError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. "
                "The member must abandon all its partitions and rejoin.",
            )
        return self._next(member, self.target.epoch)

    def _owns(self, assignment: CurrentAssignment) -> bool:
        """Return True if the member may still own one of these partitions, or reports no
        partitions.
        """
        if self.owned is None:
            return True
        return any(
            partition in assignment.get(topic.topic_id, {})
            for topic in self.owned
            for partition in topic.partitions
        )

    def _shrunk(self, member: Member) -> Member:
        """Remove the topics that the member no longer reads, and nothing else."""
        remaining = {
            topic_id: epochs
            for topic_id, epochs in member.assigned.items()
            if topic_id in self.topic_ids
        }
        if len(remaining) == len(member.assigned):
            return member
        pending: _Assignment = {
            topic_id: dict(epochs) for topic_id, epochs in member.pending_revocation.items()
        }
        for topic_id, epochs in member.assigned.items():
            if topic_id not in remaining:
                pending.setdefault(topic_id, {}).update(epochs)
        if self._owns(pending):
            return _revoking(member, member.epoch, remaining, pending)
        return replace(member.at_epoch(member.epoch), assigned=remaining)

    def _next(self, member: Member, epoch: int) -> Member:
        remaining: _Assignment = {}
        revoked: _Assignment = {}
        added: _Assignment = {}
        waits = False
        for topic_id in {**self.target.assignment, **member.assigned}:
            reads = topic_id in self.topic_ids
            target_partitions = (
                self.target.assignment.get(topic_id, frozenset()) if reads else frozenset()
            )
            assigned = member.assigned.get(topic_id, {})
            _put(
                remaining,
                topic_id,
                {
                    partition: assigned[partition]
                    for partition in assigned
                    if partition in target_partitions
                },
            )
            _put(
                revoked,
                topic_id,
                {
                    partition: assigned[partition]
                    for partition in assigned
                    if partition not in target_partitions
                },
            )
            missing = [
                partition for partition in sorted(target_partitions) if partition not in assigned
            ]
            free = [
                partition for partition in missing if self._is_free(member, topic_id, partition)
            ]
            waits = waits or len(free) < len(missing)
            _put(added, topic_id, dict.fromkeys(free, self.target.epoch))
        if revoked and self._owns(revoked):
            return _revoking(member, epoch, remaining, revoked)
        for topic_id, epochs in added.items():
            remaining.setdefault(topic_id, {}).update(epochs)
        return replace(
            member.at_epoch(self.target.epoch),
            state=MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE,
            assigned=remaining,
            pending_revocation={},
        )

    def _is_free(self, member: Member, topic_id: bytes, partition: int) -> bool:
        # A member may take its own revoked partitions again.
        owner = self.group.owners.get((topic_id, partition))
        return owner is None or partition in member.pending_revocation.get(topic_id, {})


def _put(assignment: _Assignment, topic_id: bytes, epochs: Mapping[int, int]) -> None:
    if epochs:
        assignment[topic_id] = dict(epochs)


def _revoking(
    member: Member, epoch: int, remaining: CurrentAssignment, revoked: CurrentAssignment
) -> Member:
    return replace(
        member.at_epoch(epoch),
        state=MemberState.UNREVOKED_PARTITIONS,
        assigned=remaining,
        pending_revocation=revoked,
    )
