"""Who may commit and read offsets of a group of the consumer protocol: members in their own epoch.

A member that is an epoch behind may still commit for what it got in that epoch or before, and has not
given back: nobody else can have read it meanwhile (KIP-1251). Follows ConsumerGroup.validateOffsetCommit
and validateOffsetFetch.
"""

from dataclasses import dataclass

from ottla.base.errors import ApiError, ErrorCode
from ottla.coordinators.consumer.requests.joining import known_member
from ottla.coordinators.consumer.state import NO_EPOCH, ConsumerGroup, Member, TopicPartition

# The first version of OffsetCommit whose clients know epochs.
EPOCH_VERSION = 9


@dataclass(frozen=True, slots=True)
class Committer:
    """Who commits: a member in an epoch, or a client outside of any group.

    `api_version` is that of OffsetCommit, None for TxnOffsetCommit.
    """

    member_id: str
    instance_id: str | None
    epoch: int
    api_version: int | None

    @property
    def is_transactional(self) -> bool:
        """Tell whether the offsets belong to a transaction."""
        return self.api_version is None

    @property
    def is_nameless(self) -> bool:
        """Tell whether nothing is said of the member, as producers of before KIP-447 do."""
        has_name = bool(self.member_id) or self.instance_id is not None
        return self.epoch == NO_EPOCH and not has_name


def check_commit(group: ConsumerGroup, committer: Committer) -> Member | None:
    """Raise ApiError where nothing may be committed.

    Return a member that is behind, which may commit what `check_place` allows; None for others.
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


def check_place(member: Member, epoch: int, place: TopicPartition) -> None:
    """Raise ApiError unless a member that is behind has had the partition since this epoch."""
    assigned_at = member.assignment_epoch(place)
    if assigned_at is None or epoch < assigned_at:
        raise _behind(member)


def check_fetch(group: ConsumerGroup, member_id: str | None, epoch: int) -> None:
    """Raise ApiError where a member asks in another epoch than its own; others may always ask."""
    if member_id is None and epoch < 0:
        return
    member = known_member(group, member_id or "")
    if member.epoch != epoch:
        raise _behind(member)


def _behind(member: Member) -> ApiError:
    is_classic = member.is_classic
    return ApiError(ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH)
