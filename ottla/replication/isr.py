"""The in-sync replicas and the high watermark: the pure part of a leader.

Follows kafka.cluster.Partition and Replica, with KIP-966's rule for the high watermark. Times are
in seconds of a monotonic clock; nothing here reads a clock.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

UNKNOWN_OFFSET = -1
# A follower fetches at least every replica.fetch.wait.max.ms (0.5 s) from a leader it knows.
SILENT_SECONDS = 1.0
# A client waits for this time for the response of a leader (socket.timeout.ms of librdkafka; the
# Java client's request.timeout.ms is 30 s).
CLIENT_WAIT_SECONDS = 60.0
UNKNOWN_EPOCH = -1


@dataclass(slots=True)
class FollowerPosition:
    """The leader's knowledge of one follower, from its fetches."""

    log_end_offset: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    # When the follower last had everything the leader had.
    caught_up_at: float = 0.0
    fetched_at: float = 0.0
    # The leader's end offset at that fetch.
    leader_end_offset: int = 0
    # The epoch of the registration with which it fetched (KIP-903).
    broker_epoch: int = UNKNOWN_EPOCH


class IsrMachine:
    """The in-sync replicas of one partition during one leader epoch.

    The controller has confirmed `isr`. The followers in `joining` are proposed and already count
    for the high watermark, so that a confirmed member never lacks a committed record. No other
    change is proposed while a proposal is under way (`is_change_pending`): the followers that catch
    up during that time are in `waiting`. Invariant: the high watermark never decreases.
    """

    __slots__ = (
        "followers",
        "high_watermark",
        "is_change_pending",
        "isr",
        "joining",
        "node_id",
        "replicas",
        "settled_at",
        "waiting",
    )

    def __init__(
        self,
        node_id: int,
        *,
        replicas: Iterable[int],
        isr: Iterable[int],
        high_watermark: int,
        now: float,
        is_successor: bool = False,
    ) -> None:
        self.node_id = node_id
        # Until then a client may still wait for a batch that it has sent to a former leader.
        self.settled_at = now + CLIENT_WAIT_SECONDS if is_successor else now
        self.replicas = tuple(replicas)
        self.isr = frozenset(isr)
        self.joining: frozenset[int] = frozenset()
        # Followers that caught up when they could not be proposed.
        self.waiting: set[int] = set()
        self.is_change_pending = False
        self.high_watermark = high_watermark
        self.followers = {
            replica: FollowerPosition(caught_up_at=now if replica in self.isr else 0.0)
            for replica in self.replicas
            if replica != node_id
        }

    def assign(
        self, replicas: Iterable[int], isr: Iterable[int], *, is_decision: bool = True
    ) -> None:
        """Apply the controller's replicas and ISR within the same leader epoch.

        `is_decision` is False if the controller repeats the state that this leader knows, as after
        its own election: the controller may still store a pending proposal, so the proposal still
        counts.
        """
        self.replicas = tuple(replicas)
        self.isr = frozenset(isr)
        self.waiting -= self.isr
        if is_decision:
            self.withdraw()
        former = self.followers
        self.followers = {
            replica: former.get(replica) or FollowerPosition()
            for replica in self.replicas
            if replica != self.node_id
        }

    def withdraw(self) -> None:
        """Forget the pending proposal: it was decided or rejected."""
        self.joining = frozenset()
        self.is_change_pending = False

    def fetched(
        self,
        replica: int,
        *,
        offset: int,
        log_start_offset: int,
        leader_end_offset: int,
        now: float,
        broker_epoch: int = UNKNOWN_EPOCH,
    ) -> bool:
        """Record that a follower has everything below `offset`; False if it is not a replica."""
        position = self.followers.get(replica)
        if position is None:
            return False
        if offset >= leader_end_offset:
            position.caught_up_at = max(position.caught_up_at, now)
        elif offset >= position.leader_end_offset:
            # The follower now has everything that the leader had at its previous fetch.
            position.caught_up_at = max(position.caught_up_at, position.fetched_at)
        position.log_end_offset = offset
        position.log_start_offset = log_start_offset
        position.fetched_at = now
        position.leader_end_offset = leader_end_offset
        position.broker_epoch = broker_epoch
        return True

    def appended(self, former_end_offset: int, now: float) -> None:
        """Record that followers at the former end of the log were caught up until now.

        An incremental fetch session does not repeat the position of an idle partition, so its
        followers would otherwise seem to lag as soon as a record is appended.
        """
        for position in self.followers.values():
            if position.log_end_offset == former_end_offset:
                position.caught_up_at = now

    def broker_epoch_of(self, replica: int) -> int:
        """Return the registration with which a follower fetched; -1 for this broker or if unknown."""
        position = self.followers.get(replica)
        return UNKNOWN_EPOCH if position is None else position.broker_epoch

    def is_deserted(self, now: float) -> bool:
        """Return True if no follower in sync has fetched lately: another leader may be elected."""
        members = [follower for replica, follower in self.followers.items() if replica in self.isr]
        return bool(members) and all(
            now - follower.fetched_at > SILENT_SECONDS for follower in members
        )

    def effective_min_isr(self, min_insync_replicas: int) -> int:
        """Return min.insync.replicas, or the number of replicas if that is smaller (KIP-966)."""
        return min(min_insync_replicas, len(self.replicas) or 1)

    def has_enough_replicas(self, min_insync_replicas: int) -> bool:
        """Return True if writes with acks=all are allowed."""
        return len(self.isr) >= self.effective_min_isr(min_insync_replicas)

    def advance(self, leader_end_offset: int, min_insync_replicas: int) -> bool:
        """Advance the high watermark to the smallest end of the ISR; return True if it moved.

        It stays while fewer than min.insync.replicas are in sync: a record that only the last
        member has must not be visible, because that member's disk may lose it (KIP-966).
        """
        lowest = leader_end_offset
        # The only replica is always enough: the minimum is at most the number of replicas.
        if self.followers:
            if not self.has_enough_replicas(min_insync_replicas):
                return False
            for replica, position in self.followers.items():
                if replica in self.isr or replica in self.joining:
                    lowest = min(lowest, position.log_end_offset)
        if lowest <= self.high_watermark:
            return False
        self.high_watermark = lowest
        return True

    def replicas_to_join(self, epoch_start_offset: int) -> frozenset[int]:
        """Return followers outside the ISR that have all committed records of this epoch."""
        needed = max(self.high_watermark, epoch_start_offset)
        return frozenset(
            replica
            for replica, position in self.followers.items()
            if replica not in self.isr and position.log_end_offset >= needed
        )

    def replicas_to_drop(
        self, leader_end_offset: int, now: float, lag_seconds: float
    ) -> frozenset[int]:
        """Return members that have not caught up for replica.lag.time.max.ms."""
        return frozenset(
            replica
            for replica, position in self.followers.items()
            if replica in self.isr
            and position.log_end_offset != leader_end_offset
            and now - position.caught_up_at > lag_seconds
        )

    def log_start_of(self, replica: int) -> int:
        """Return the log start offset with which a follower fetched; -1 if it has not yet."""
        position = self.followers.get(replica)
        return UNKNOWN_OFFSET if position is None else position.log_start_offset

    def low_watermark(self, leader_log_start_offset: int, is_alive: Callable[[int], bool]) -> int:
        """Return the smallest log start offset of the live replicas; -1 if one is unknown."""
        lowest = leader_log_start_offset
        for replica, position in self.followers.items():
            if is_alive(replica):
                lowest = min(lowest, position.log_start_offset)
        return lowest
