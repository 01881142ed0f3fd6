"""Checks of commits and fetches of offsets in a group of the consumer protocol.

Members may commit and read offsets in their own epoch. A member of an older epoch may still commit
for partitions that it was assigned in that epoch or before and has not revoked: no other member can
have read them in the meantime (KIP-1251). Follows ConsumerGroup.validateOffsetCommit and
validateOffsetFetch.
"""

from dataclasses import dataclass

from ottla.base.errors import ApiError, ErrorCode
from ottla.coordinators.consumer.requests.joining import known_member
from ottla.coordinators.consumer.state import NO_EPOCH, ConsumerGroup, Member, TopicPartition

# The first version of OffsetCommit whose clients know epochs.
EPOCH_VERSION = 9


@dataclass(frozen=True, slots=True)
class Committer:
    """The sender of a commit: a member in an epoch, or a client without a membership.

    `api_version` is OffsetCommit's, None for TxnOffsetCommit.
    """

    member_id: str
    instance_id: str | None
    epoch: int
    api_version: int | None

    @property
    def is_transactional(self) -> bool:
        """True if the offsets belong to a transaction."""
        return self.api_version is None

    @property
    def is_nameless(self) -> bool:
        """True if the request names no member, like the requests of producers before KIP-447."""
        has_name = bool(self.member_id) or self.instance_id is not None
        return self.epoch == NO_EPOCH and not has_name


def check_commit(group: ConsumerGroup, committer: Committer) -> Member | None:
    """Raise ApiError if no offset may be committed.

    Return a member of an older epoch, which may commit what `check_partition` allows; None
    otherwise.
    """
    if committer.epoch < 0 and not group.members:
        return None
    if committer.is_transactional and committer.is_nameless:
        return None
    member = known_member(group, committer.member_id)
    version = committer.api_version
    if version is not None and version < EPOCH_VERSION and not member.is_classic:
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            "OffsetCommit version 9 or above must be used by members using the consumer group "
            "protocol",
        )
    if committer.epoch > member.epoch:
        raise _behind(member)
    return None if committer.epoch == member.epoch else member


def check_partition(member: Member, epoch: int, topic_partition: TopicPartition) -> None:
    """Raise ApiError unless a member of an older epoch has owned the partition since this epoch."""
    assigned_at = member.assignment_epoch(topic_partition)
    if assigned_at is None or epoch < assigned_at:
        raise _behind(member)


def check_fetch(group: ConsumerGroup, member_id: str | None, epoch: int) -> None:
    """Raise ApiError if a member sends an epoch that is not its own. A client that sends neither
    member id nor epoch may always fetch.
    """
    if member_id is None and epoch < 0:
        return
    member = known_member(group, member_id or "")
    if member.epoch != epoch:
        raise _behind(member)


def _behind(member: Member) -> ApiError:
    is_classic = member.is_classic
    return ApiError(ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH)
