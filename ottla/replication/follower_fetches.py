"""The fetches of this broker from one leader: the next request, and the effects of a response.

Pure: `next_request` and `received` decide, `replication.fetcher` performs. A follower sends the
epoch of its last batch with each fetch; if its log diverges from the leader's, the response says
where, and the follower truncates (KIP-101, KIP-279, KIP-595). It never truncates to its high
watermark unless the leader knows no common epoch. Times are in seconds of a monotonic clock.
Follows AbstractFetcherThread.

Not done: topics without an id, which brokers before Kafka 2.8 created, are not fetched.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.errors import ErrorCode
from ottla.base.loading import deferred_module
from ottla.replication.fetch_session import FetchSession, Key, SessionPosition
from ottla.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)

if TYPE_CHECKING:
    from ottla.wire import follower_fetch
    from ottla.wire.follower_fetch import FollowerMove, LeaderRecords
else:
    # A broker without followed partitions does not need it.
    follower_fetch = deferred_module("ottla.wire.follower_fetch")

# Newest version of Kafka 3.9, so that brokers of both kinds fetch from each other.
VERSION = 17
UNKNOWN_LAG = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerFetchLimits:
    """The sizes and times of follower fetches (replica.fetch.*)."""

    partition_bytes_max: int = 1024**2
    response_bytes_max: int = 10 * 1024**2
    bytes_min: int = 1
    wait_ms: int = 500
    backoff_seconds: float = 1.0


class Followed:
    """One partition during one leader epoch; `offset` and `last_epoch` are the end of its log.

    Its changes are noted in `changes`, so that a request costs as much as has changed.
    """

    __slots__ = (
        "_due_at",
        "_is_failed",
        "changes",
        "key",
        "lag",
        "last_epoch",
        "leader_epoch",
        "log_start_offset",
        "offset",
        "refusals_count",
        "topic",
    )

    def __init__(self, topic: str, key: Key, leader_epoch: int) -> None:
        self.topic = topic
        self.key = key
        self.leader_epoch = leader_epoch
        self.offset = self.log_start_offset = 0
        self.last_epoch = -1
        # Consecutive responses that the leader does not lead in this epoch, or not yet.
        self.refusals_count = 0
        self._due_at = 0.0
        # Records below the leader's high watermark that this replica did not have after the last
        # response.
        self.lag = UNKNOWN_LAG
        self._is_failed = False
        # The keys of changed partitions; None unless the partition is fetched.
        self.changes: dict[Key, None] | None = None

    @property
    def due_at(self) -> float:
        """The time before which the partition is not requested."""
        return self._due_at

    @due_at.setter
    def due_at(self, due_at: float) -> None:
        if due_at != self._due_at:
            self._due_at = due_at
            self._note_change()

    @property
    def is_failed(self) -> bool:
        """True if only the controller's next decision can help."""
        return self._is_failed

    @is_failed.setter
    def is_failed(self, is_failed: bool) -> None:
        if is_failed != self._is_failed:
            self._is_failed = is_failed
            self._note_change()

    def is_due(self, now: float) -> bool:
        """Return True if the partition belongs into a request."""
        return not self._is_failed and self._due_at <= now

    def move_to(self, offset: int, last_epoch: int, log_start_offset: int) -> None:
        """Set the end of the log and the epoch of its last batch."""
        former = self.offset, self.last_epoch, self.log_start_offset
        if former != (offset, last_epoch, log_start_offset):
            self.offset, self.last_epoch = offset, last_epoch
            self.log_start_offset = log_start_offset
            self._note_change()

    def _note_change(self) -> None:
        if self.changes is not None:
            self.changes[self.key] = None

    def position(self) -> SessionPosition:
        """Return the position for the next request."""
        return SessionPosition(
            self.offset, self.leader_epoch, self.last_epoch, self.log_start_offset
        )


class FetchedPartition(NamedTuple):
    """Records or only offsets of the leader; the records continue the log at `followed.offset`."""

    followed: Followed
    data: PartitionData


class Diverged(NamedTuple):
    """A follower's log is longer than `epoch` of the leader's log, which ends at `end_offset`."""

    followed: Followed
    epoch: int
    end_offset: int


class OutOfRange(NamedTuple):
    """The leader has no record at the follower's offset: it has deleted it, or lost it."""

    followed: Followed


Effect = FetchedPartition | Diverged | OutOfRange

# The leader is another one, or not ready yet.
_RETRIABLE = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)
# The controller's decision reaches the leader and its followers at different times: after an
# election the leader is ready within milliseconds, and acknowledgements wait for its followers.
_NOT_READY = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
# The first pause after such a response; each further one is twice as long, up to the back-off.
NOT_READY_SECONDS = 0.02
# The next request is a full one.
_SESSION_ERRORS = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)


class FollowerFetches:
    """The partitions that one leader leads and this broker follows; one request is on its way.

    The next request depends only on the partitions that have changed and on those that pause.
    """

    def __init__(self, replica_id: int) -> None:
        self._replica_id = replica_id
        self._session = FetchSession()
        self._followed: dict[Key, Followed] = {}
        # The partitions of the session, with the offset that the last request fetches.
        self._sent: dict[Key, tuple[Followed, int]] = {}
        # The partitions that have changed since the last request.
        self._changed: dict[Key, None] = {}
        # The partitions that were not due at the last request.
        self._paused: dict[Key, Followed] = {}

    def __len__(self) -> int:
        return len(self._followed)

    def __contains__(self, key: Key) -> bool:
        return key in self._followed

    def __iter__(self) -> Iterator[Followed]:
        return iter(list(self._followed.values()))

    def follow(self, followed: Followed) -> None:
        """Fetch a partition from now on; a response on its way does not apply to it any more."""
        former = self._followed.get(followed.key)
        if former is not None:
            # The leader is the same in a new epoch, and its response may be that nothing has
            # changed.
            followed.lag = former.lag
        self.unfollow(followed.key)
        self._followed[followed.key] = followed
        followed.changes = self._changed
        self._changed[followed.key] = None

    def unfollow(self, key: Key) -> None:
        """Stop fetching a partition; a response on its way does not apply to it any more."""
        followed = self._followed.pop(key, None)
        if followed is not None:
            followed.changes = None
            self._changed[key] = None

    def hold(self, key: Key, until: float) -> None:
        """Do not request a partition before `until`, unless it is caught up: it is throttled."""
        followed = self._followed.get(key)
        if followed is not None and followed.lag != 0:
            followed.due_at = max(followed.due_at, until)

    def is_current(self, followed: Followed) -> bool:
        """Return True if the partition is still fetched in the same leader epoch."""
        return self._followed.get(followed.key) is followed

    def next_due_at(self) -> float | None:
        """Return when there is something to request; None if no partition can be fetched."""
        fetched = self._followed
        pausing = [fetched[key] for key in {**self._paused, **self._changed} if key in fetched]
        if len(pausing) < len(fetched):
            # The others are due.
            return 0.0
        due_times = [followed.due_at for followed in pausing if not followed.is_failed]
        return min(due_times) if due_times else None

    def next_request(
        self, now: float, broker_epoch: int, limits: FollowerFetchLimits
    ) -> FetchRequest | None:
        """Return the next request; None if no partition is due."""
        positions, ended = self._apply_changes(now)
        if not self._sent:
            # The leader still has them in the session.
            self._changed.update(dict.fromkeys(ended))
            return None
        # Partitions that are due later are not in this request, and must not wait for it.
        later = [paused.due_at for paused in self._paused.values() if not paused.is_failed]
        wait_ms = limits.wait_ms
        if later:
            wait_ms = min(wait_ms, math.ceil((min(later) - now) * 1000))
        session = self._session.next_request(positions, ended)
        return FetchRequest(
            replica_state=ReplicaState(replica_id=self._replica_id, replica_epoch=broker_epoch),
            max_wait_ms=wait_ms,
            min_bytes=limits.bytes_min,
            max_bytes=limits.response_bytes_max,
            session_id=session.session_id,
            session_epoch=session.epoch,
            topics=_topics(session.changed, limits.partition_bytes_max),
            forgotten_topics_data=_forgotten(session.forgotten),
        )

    def next_move(
        self, now: float, broker_epoch: int, limits: FollowerFetchLimits
    ) -> "FollowerMove | None":
        """Return the next request if it only moves one partition; otherwise call `next_request`."""
        if len(self._changed) != 1 or self._paused:
            return None
        (key,) = self._changed
        followed = self._followed.get(key)
        if followed is None or not followed.is_due(now):
            return None
        position = followed.position()
        session = self._session.next_move(key, position)
        if session is None:
            return None
        self._changed.clear()
        self._sent[key] = followed, followed.offset
        return follower_fetch.FollowerMove(
            max_wait_ms=limits.wait_ms,
            min_bytes=limits.bytes_min,
            max_bytes=limits.response_bytes_max,
            session_id=session[0],
            session_epoch=session[1],
            topic_id=key[0],
            partition=key[1],
            leader_epoch=position.leader_epoch,
            offset=position.offset,
            last_fetched_epoch=position.last_fetched_epoch,
            log_start_offset=position.log_start_offset,
            partition_max_bytes=limits.partition_bytes_max,
            replica=self._replica_id,
            broker_epoch=broker_epoch,
        )

    def _apply_changes(self, now: float) -> tuple[dict[Key, SessionPosition], list[Key]]:
        """Return the new positions, and the partitions that do not belong into the session."""
        changed, paused = self._changed, self._paused
        changed.update((key, None) for key, followed in paused.items() if followed.is_due(now))
        positions: dict[Key, SessionPosition] = {}
        ended: list[Key] = []
        for key in changed:
            followed = self._followed.get(key)
            paused.pop(key, None)
            if followed is not None and followed.is_due(now):
                positions[key] = followed.position()
                self._sent[key] = followed, followed.offset
                continue
            ended.append(key)
            self._sent.pop(key, None)
            if followed is not None:
                paused[key] = followed
        changed.clear()
        return positions, ended

    def received_records(self, response: "LeaderRecords") -> list[Effect]:
        """Return the effects of a response that has records of one partition."""
        self._session.answered(ErrorCode.NONE, response.session_id)
        awaited = self._sent.get((response.topic_id, response.partition))
        if awaited is None:
            return []
        followed, offset = awaited
        if not self.is_current(followed) or followed.offset != offset:
            return []
        followed.refusals_count = 0
        data = PartitionData(
            partition_index=response.partition,
            high_watermark=response.high_watermark,
            last_stable_offset=response.last_stable_offset,
            log_start_offset=response.log_start_offset,
            records=response.records,
        )
        return [FetchedPartition(followed, data)]

    def received(self, response: FetchResponse, now: float, backoff: float) -> list[Effect]:
        """Return the effects of a response; partitions with other errors are tried again later."""
        error = _code(response.error_code)
        self._session.answered(error, response.session_id)
        sent = self._sent
        if error is not ErrorCode.NONE:
            if error not in _SESSION_ERRORS:
                for followed, _ in sent.values():
                    followed.due_at = now + backoff
            return []
        effects: list[Effect] = []
        for topic in response.responses:
            for data in topic.partitions:
                awaited = sent.get((topic.topic_id, data.partition_index))
                if awaited is None:
                    continue
                followed, offset = awaited
                if not self.is_current(followed) or followed.offset != offset:
                    continue
                effect = self._effect(followed, data, now, backoff)
                if effect is not None:
                    effects.append(effect)
        return effects

    def _effect(
        self, followed: Followed, data: PartitionData, now: float, backoff: float
    ) -> Effect | None:
        error = _code(data.error_code)
        diverging = data.diverging_epoch
        if error not in _NOT_READY:
            followed.refusals_count = 0
        if error is ErrorCode.NONE and diverging is not None and diverging.end_offset >= 0:
            return Diverged(followed, diverging.epoch, diverging.end_offset)
        if error is ErrorCode.NONE:
            return FetchedPartition(followed, data)
        if error is ErrorCode.OFFSET_OUT_OF_RANGE:
            return OutOfRange(followed)
        pause = backoff
        if error in _NOT_READY:
            pause = min(backoff, NOT_READY_SECONDS * 2 ** min(followed.refusals_count, 16))
            followed.refusals_count += 1
        followed.due_at = now + pause
        # FENCED_LEADER_EPOCH: the leader knows a newer epoch, which the controller will send.
        followed.is_failed = error not in _RETRIABLE
        return None

    def interrupted(self, now: float, backoff: float) -> None:
        """Try all partitions of the last request again later: it has no response."""
        self._session.interrupted()
        for followed, _ in self._sent.values():
            followed.due_at = now + backoff


def _code(number: int) -> ErrorCode:
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def _topics(changed: Mapping[Key, SessionPosition], bytes_max: int) -> list[FetchTopic]:
    topics: dict[bytes, FetchTopic] = {}
    for (topic_id, number), position in changed.items():
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = FetchTopic(topic_id=topic_id, partitions=[])
        topic.partitions.append(
            FetchPartition(
                partition=number,
                current_leader_epoch=position.leader_epoch,
                fetch_offset=position.offset,
                last_fetched_epoch=position.last_fetched_epoch,
                log_start_offset=position.log_start_offset,
                partition_max_bytes=bytes_max,
            )
        )
    return list(topics.values())


def _forgotten(keys: tuple[Key, ...]) -> list[ForgottenTopic]:
    topics: dict[bytes, ForgottenTopic] = {}
    for topic_id, number in keys:
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = ForgottenTopic(topic_id=topic_id, partitions=[])
        topic.partitions.append(number)
    return list(topics.values())
