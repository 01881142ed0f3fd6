"""Incremental fetch sessions (KIP-227): a consumer names its partitions once, then only changes.

A `FetchPlan` is one fetch request together with its session, if it has one: the partitions to read,
and the ones that the response has to include. No I/O; times are in seconds. Follows
kafka.server.FetchSession and FetchSessionCache.
"""

import asyncio
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from ottla.base.clock import Clock
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.rng import Rng
from ottla.replication.delayed import Waiter, Watched
from ottla.replication.partition import Partition
from ottla.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from ottla.wire.schema import first_version

if TYPE_CHECKING:
    from ottla.wire.follower_fetch import FollowerMove

NO_SESSION = 0
NO_EPOCH = -1
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_EPOCH_MAX = 2**31 - 1
FIRST_VERSION_WITH_TOPIC_IDS = first_version(FetchTopic, "topic_id")
# Kafka's MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS.
EVICTION_SECONDS = 120.0
_NEVER_SENT = -1
_NO_PREFERENCE = -1
# Interval in seconds at which an incremental fetch reads every partition of its session. Retention
# moves the start of a log without marking the partition as changed.
_FULL_PASS_SECONDS = 5.0

Key = tuple[str | bytes, int]
ResponseT = TypeVar("ResponseT")


class PartitionFetch:
    """The client's request for one partition, and the offsets last sent to it."""

    __slots__ = (
        "last_fetched_epoch",
        "leader_epoch",
        "log_start_offset",
        "max_bytes",
        "offset",
        "partition",
        "sent_high_watermark",
        "sent_log_start_offset",
        "topic",
        "topic_id",
        "waits_on",
    )

    def __init__(self, topic: FetchTopic, requested: FetchPartition) -> None:
        self.topic = topic.topic
        self.topic_id = topic.topic_id
        self.partition = requested.partition
        self.sent_high_watermark = self.sent_log_start_offset = _NEVER_SENT
        # The partition that the session waits on; None unless this fetch is idle.
        self.waits_on: Watched | None = None
        self.update(requested)

    def update(self, requested: FetchPartition) -> None:
        """Update the partition from a request."""
        # Fetch treats every value below 0 as no epoch; the other APIs only -1.
        epoch = max(requested.current_leader_epoch, NO_EPOCH)
        # The end and the start of a follower's log.
        self.last_fetched_epoch = requested.last_fetched_epoch
        self.log_start_offset = requested.log_start_offset
        self.move_to(requested.fetch_offset, requested.partition_max_bytes, epoch)

    def move_to(self, offset: int, max_bytes: int, leader_epoch: int) -> None:
        """Continue at `offset`."""
        self.offset = offset
        self.max_bytes = max_bytes
        self.leader_epoch = leader_epoch

    def note_sent(self, high_watermark: int, log_start_offset: int) -> None:
        """Record the offsets that a response contains."""
        self.sent_high_watermark = high_watermark
        self.sent_log_start_offset = log_start_offset

    def knows(self, partition_data: PartitionData) -> bool:
        """Return True if the client already has the offsets of a result without records."""
        return (
            partition_data.high_watermark == self.sent_high_watermark
            and partition_data.log_start_offset == self.sent_log_start_offset
        )

    def must_include(self, partition_data: PartitionData) -> bool:
        """Return True if an incremental response must include the partition; record its offsets."""
        changed = (
            bool(partition_data.records)
            or partition_data.high_watermark != self.sent_high_watermark
            or partition_data.log_start_offset != self.sent_log_start_offset
            or partition_data.error_code != 0
            or partition_data.diverging_epoch is not None
            or partition_data.preferred_read_replica != _NO_PREFERENCE
        )
        self.note_sent(partition_data.high_watermark, partition_data.log_start_offset)
        if partition_data.error_code:
            # The next result without an error must be sent, too.
            self.sent_high_watermark = _NEVER_SENT
        return changed


class Session:
    """The partitions of one consumer; those that returned data last are served last.

    Partitions whose end the consumer has reached are `idle`: the session waits for them to change,
    and a fetch does not read them until then. A request for a partition, and a pass over all,
    make it due. Invariant: each partition is in `due`, or idle, or both.
    """

    __slots__ = (
        "_idle",
        "_isolation_level",
        "created_at",
        "due",
        "epoch",
        "full_pass_at",
        "id",
        "partitions",
        "seen_bytes",
        "used_at",
        "uses_topic_ids",
        "waiters",
    )

    def __init__(self, session_id: int, uses_topic_ids: bool, now: float) -> None:
        self.id = session_id
        self.uses_topic_ids = uses_topic_ids
        self.partitions: dict[Key, PartitionFetch] = {}
        # The partitions to read, in the order in which they are served.
        self.due: dict[Key, PartitionFetch] = {}
        self._idle: dict[Watched, PartitionFetch] = {}
        # Bytes appended to each idle partition by the time it became idle.
        self.seen_bytes: dict[Watched, int] = {}
        self._isolation_level = 0
        # The fetches that wait for a partition to change.
        self.waiters: dict[Waiter, None] = {}
        # The epoch that the next request must have.
        self.epoch = 1
        self.created_at = self.used_at = self.full_pass_at = now

    def update(self, request: FetchRequest) -> None:
        """Apply the added, changed and forgotten partitions of a request."""
        partitions, due = self.partitions, self.due
        if request.isolation_level != self._isolation_level:
            self._isolation_level = request.isolation_level
            self.read_all_next()
        for topic in request.topics:
            name: str | bytes = topic.topic_id if self.uses_topic_ids else topic.topic
            for requested in topic.partitions:
                key = (name, requested.partition)
                known = partitions.get(key)
                if known is None:
                    known = partitions[key] = PartitionFetch(topic, requested)
                else:
                    known.update(requested)
                    if known.waits_on is not None:
                        self._stop_waiting(known.waits_on)
                due[key] = known
        if request.forgotten_topics_data:
            self._forget(request.forgotten_topics_data)

    def _forget(self, topics: Iterable[ForgottenTopic]) -> None:
        for topic in topics:
            name: str | bytes = topic.topic_id if self.uses_topic_ids else topic.topic
            for partition in topic.partitions:
                fetch = self.partitions.pop((name, partition), None)
                self.due.pop((name, partition), None)
                if fetch is not None and fetch.waits_on is not None:
                    self._stop_waiting(fetch.waits_on)

    def _stop_waiting(self, partition: Watched) -> None:
        self._idle.pop(partition).waits_on = None
        self.seen_bytes.pop(partition, None)
        partition.waiters.pop(self, None)

    def update_single(
        self, key: Key, isolation_level: int, offset: int, max_bytes: int
    ) -> PartitionFetch:
        """Apply a request for the only partition of the session; return its part of the session.

        The fetch itself waits for the partition, not the session.
        """
        self._isolation_level = isolation_level
        fetch = self.due[key] = self.partitions[key]
        fetch.offset, fetch.max_bytes = offset, max_bytes
        if fetch.waits_on is not None:
            self._stop_waiting(fetch.waits_on)
        return fetch

    def update_sole(self, key: Key, position: "FollowerMove") -> PartitionFetch:
        """Apply a follower's request for the only partition that is due; return its part of the
        session.
        """
        fetch = self.due[key] = self.partitions[key]
        fetch.last_fetched_epoch = position.last_fetched_epoch
        fetch.log_start_offset = position.log_start_offset
        fetch.move_to(position.offset, position.partition_max_bytes, position.leader_epoch)
        if fetch.waits_on is not None:
            self._stop_waiting(fetch.waits_on)
        return fetch

    def is_sole(self, key: Key) -> bool:
        """Return True if no other partition than `key` of this session has to be read."""
        due = self.due
        is_due_alone = not due or (len(due) == 1 and key in due)
        return is_due_alone and key in self.partitions and not self._isolation_level

    def fetch_of(self, partition: Partition) -> PartitionFetch | None:
        """Return the client's request for a partition; None if the session does not have it."""
        name = partition.topic_id if self.uses_topic_ids else partition.topic
        return self.partitions.get((name, partition.partition))

    def read_all_next(self) -> None:
        """Make the next fetch read every partition."""
        self.due.update(self.partitions)

    def _key(self, fetch: PartitionFetch) -> Key:
        return (fetch.topic_id if self.uses_topic_ids else fetch.topic, fetch.partition)

    def serve_last(self, fetch: PartitionFetch) -> None:
        """Move a partition behind the others, so that all are served in turn."""
        key = self._key(fetch)
        if self.partitions.pop(key, None) is not None:
            self.partitions[key] = fetch
            self.due.pop(key, None)
            self.due[key] = fetch

    def wait_on(self, fetch: PartitionFetch, partition: Watched, appended_bytes: int) -> None:
        """Do not read a partition again until it changes: it has nothing for the client."""
        if self.due.pop(self._key(fetch), None) is None:
            return
        if fetch.waits_on is not None and fetch.waits_on is not partition:
            # A replica that was replaced.
            self._stop_waiting(fetch.waits_on)
        self._idle[partition] = fetch
        fetch.waits_on = partition
        self.seen_bytes[partition] = appended_bytes
        partition.waiters[self] = None

    def note(self, changed: Watched) -> None:
        """Make the next fetch, and waiting fetches, read a partition (implements Waiter)."""
        changed.waiters.pop(self, None)
        fetch = self._idle.pop(changed, None)
        if fetch is not None:
            fetch.waits_on = None
        if fetch is not None and self.partitions.get(self._key(fetch)) is fetch:
            self.due[self._key(fetch)] = fetch
            for waiter in self.waiters:
                waiter.note(changed)
        # Only now, because the waiters compare.
        self.seen_bytes.pop(changed, None)

    def look(self) -> None:
        """Make the waiting fetches look (implements Waiter)."""
        for waiter in list(self.waiters):
            waiter.look()

    def finish(self) -> None:
        """Complete the waiting fetches (implements Waiter)."""
        for waiter in list(self.waiters):
            waiter.finish()

    def close(self) -> None:
        """Complete the waiting fetches and stop waiting for partitions."""
        self.finish()
        for partition in list(self._idle):
            self._stop_waiting(partition)


# A partition whose end the client has reached, and the result of a fetch for it.
Ended = tuple[PartitionFetch, PartitionData, Partition]


class FetchPlan:
    """One fetch request: the partitions to read, in order, and what the response includes."""

    __slots__ = ("_partitions", "is_incremental", "session")

    def __init__(
        self,
        partitions: Collection[PartitionFetch],
        session: Session | None = None,
        *,
        is_incremental: bool = False,
    ) -> None:
        self._partitions = partitions
        self.session = session
        self.is_incremental = is_incremental

    @property
    def partitions(self) -> Collection[PartitionFetch]:
        """The partitions to read at present."""
        if self.session is not None and self.is_incremental:
            return list(self.session.due.values())
        return self._partitions

    @property
    def is_empty(self) -> bool:
        """True if the request has no partitions, so that there is nothing to wait for."""
        return not (self._partitions if self.session is None else self.session.partitions)

    @property
    def session_id(self) -> int:
        """The session id for the response; 0 if there is no session."""
        return NO_SESSION if self.session is None else self.session.id

    def included(
        self, results: list[tuple[PartitionFetch, PartitionData]]
    ) -> list[tuple[PartitionFetch, PartitionData]]:
        """Return those of `results` that the response includes, and note them as sent."""
        session = self.session
        if session is None:
            return results
        changed = []
        for fetch, partition_data in results:
            if fetch.must_include(partition_data) or not self.is_incremental:
                changed.append((fetch, partition_data))
            if partition_data.records and self.is_incremental:
                session.serve_last(fetch)
        return changed

    def wait_on_idle(self, ended: Iterable[Ended]) -> None:
        """Make the session wait on partitions that have no data and no change to report."""
        session = self.session
        if session is None:
            return
        for fetch, partition_data, partition in ended:
            if fetch.knows(partition_data):
                session.wait_on(fetch, partition, partition.appended_bytes)


class FetchSessions:
    """The sessions of one broker, at most `slots_max` (max.incremental.fetch.session.cache.slots).

    With `drops_idle`, a session that was idle for two minutes is evicted before the cache is full:
    a follower fetches several times per second, and its session has many partitions.
    """

    def __init__(self, slots_max: int, *, clock: Clock, rng: Rng, drops_idle: bool = False) -> None:
        self.slots_max = slots_max
        self._drops_idle = drops_idle
        self.evictions_count = 0
        self._clock = clock
        self._rng = rng
        # In the order of their last use.
        self._sessions: dict[int, Session] = {}

    def __iter__(self) -> "Iterator[Session]":
        """Iterate over the sessions."""
        return iter(self._sessions.values())

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partitions_count(self) -> int:
        """The number of partitions in all sessions."""
        return sum(len(session.partitions) for session in self._sessions.values())

    def begin(self, request: FetchRequest, version: int) -> FetchPlan:
        """Return the plan of a request; raises ApiError if the request does not fit its session."""
        uses_topic_ids = version >= FIRST_VERSION_WITH_TOPIC_IDS
        epoch = request.session_epoch
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if request.session_id != NO_SESSION:
                self._close(request.session_id)
            return self._begin_full(request, uses_topic_ids)
        session = self._sessions.get(request.session_id)
        if session is None:
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            raise ApiError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            raise ApiError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.update(request)
        if not session.partitions:
            self._close(session.id)
            return FetchPlan(())
        self.advance(session)
        if session.used_at - session.full_pass_at >= _FULL_PASS_SECONDS:
            session.full_pass_at = session.used_at
            session.read_all_next()
        return FetchPlan((), session, is_incremental=True)

    def ended_with(
        self, plan: FetchPlan, response: ResponseT | asyncio.Future[ResponseT]
    ) -> ResponseT | asyncio.Future[ResponseT]:
        """Return the response; if it is cancelled, because the connection of a fetch that waits is
        lost, the new session of `plan` is closed: the client has not learned its id.
        """
        session = plan.session
        if session is None or plan.is_incremental or not isinstance(response, asyncio.Future):
            return response

        def close_if_lost(done: asyncio.Future[ResponseT]) -> None:
            if done.cancelled():
                self._close(session.id)

        response.add_done_callback(close_if_lost)
        return response

    def find_single(self, session_id: int, epoch: int, key: Key) -> Session | None:
        """Return the session that a request continues, if `key` is its only partition."""
        session = self._sessions.get(session_id)
        if session is None or session.epoch != epoch:
            return None
        partitions = session.partitions
        return session if len(partitions) == 1 and key in partitions else None

    def find_sole(self, session_id: int, epoch: int, key: Key) -> Session | None:
        """Return the session that a follower's request for one partition continues.

        None if other partitions have to be read, too.
        """
        session = self._sessions.get(session_id)
        if (
            session is None
            or session.epoch != epoch
            or not session.is_sole(key)
            or self._clock.monotonic() - session.full_pass_at >= _FULL_PASS_SECONDS
        ):
            return None
        return session

    def advance(self, session: Session) -> None:
        """Expect the session's next epoch, and note that it was used now."""
        session.epoch = 1 if session.epoch == _EPOCH_MAX else session.epoch + 1
        session.used_at = self._clock.monotonic()
        self._sessions[session.id] = self._sessions.pop(session.id)

    def hold_back(self, plan: FetchPlan) -> int:
        """Return the session id for a response without records to a client that exceeded its quota.

        An existing session continues as if nothing had been requested; a new session is discarded
        (KIP-219).
        """
        if plan.session is None or plan.is_incremental:
            return plan.session_id
        self._close(plan.session.id)
        return NO_SESSION

    def _begin_full(self, request: FetchRequest, uses_topic_ids: bool) -> FetchPlan:
        session = None
        if request.session_epoch == INITIAL_EPOCH:
            count = sum(len(topic.partitions) for topic in request.topics)
            session = self._create(count, uses_topic_ids)
        if session is None:
            # A partition that is named twice is read once, as in Kafka: the last entry counts.
            fetches = {
                (topic.topic_id if uses_topic_ids else topic.topic, item.partition): (topic, item)
                for topic in request.topics
                for item in topic.partitions
            }
            return FetchPlan([PartitionFetch(topic, item) for topic, item in fetches.values()])
        session.update(request)
        return FetchPlan(session.partitions.values(), session)

    def _create(self, partitions_count: int, uses_topic_ids: bool) -> Session | None:
        now = self._clock.monotonic()
        if not self._make_room(partitions_count, now):
            return None
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._rng.below(_EPOCH_MAX) + 1
        session = self._sessions[session_id] = Session(session_id, uses_topic_ids, now)
        return session

    def _make_room(self, partitions_count: int, now: float) -> bool:
        """Evict an idle session, otherwise a smaller one that is old enough."""
        is_full = len(self._sessions) >= self.slots_max
        oldest = next(iter(self._sessions.values()), None)
        may_evict = is_full or self._drops_idle
        if oldest is not None and may_evict and now - oldest.used_at > EVICTION_SECONDS:
            self._evict(oldest)
            return True
        if oldest is None or not is_full:
            return not is_full
        smallest = min(self._sessions.values(), key=lambda session: len(session.partitions))
        is_old = now - smallest.created_at > EVICTION_SECONDS
        if is_old and len(smallest.partitions) < partitions_count:
            self._evict(smallest)
            return True
        return False

    def _evict(self, session: Session) -> None:
        self._close(session.id)
        self.evictions_count += 1

    def _close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()
