"""A fast path for fetches of followers that name one partition of their session.

While records are written one at a time, each of them makes every follower fetch once, and the
acknowledgement waits for these fetches. They need neither decoder nor encoder, and no future.

All other requests use the decoder and `followers`: several partitions, a session that begins or has
other partitions to read, cold bytes, a follower that diverges or is throttled, any error. Nothing
is changed until the fast path is known to apply. A fetch that waits is passed on to `followers`
when another partition of its session changes, and at its timeout. Positions, the high watermark and
the ISR are decided by the same code.

Not done: brokers with an authorizer, which checks each request of a follower.
"""

import asyncio
from collections.abc import Callable, Sequence

from ottla.base.buffers import Buffer, Part
from ottla.base.errors import ApiError
from ottla.net.connection import Connection, Reply
from ottla.replication import leading
from ottla.replication.delayed import FETCH, Watched
from ottla.replication.fetched import RESPONSE_BYTES_MAX
from ottla.replication.partition import NO_EPOCH, Partition
from ottla.server.fetch import followers
from ottla.server.fetch.followers import FollowerBroker, FollowerContext, FollowerFetch
from ottla.server.fetch.sessions import FetchPlan, PartitionFetch, Session
from ottla.server.shortcuts import RouteParts, send_late
from ottla.wire import follower_fetch
from ottla.wire.follower_fetch import FollowerMove
from ottla.wire.messages.fetch import FetchRequest, FetchResponse, ReplicaState


def of_version(
    version: int, broker: FollowerBroker, parts: RouteParts
) -> "FollowerShortcut | None":
    """Return the fast path of a version of Fetch; None if its requests have other forms."""
    if follower_fetch.FIRST_VERSION <= version <= follower_fetch.LAST_VERSION:
        return FollowerShortcut(broker, parts)
    return None


class FollowerShortcut:
    """The fast path in one version of Fetch."""

    def __init__(self, broker: FollowerBroker, parts: RouteParts) -> None:
        self.broker = broker
        self.encode, self.probe = parts.encode, parts.probe
        self._context: Callable[[Connection, int], FollowerContext] = parts.context

    def answer(
        self,
        connection: Connection,
        frame: memoryview,
        position: int,
        correlation_id: int,
        started_at: float,
    ) -> bool:
        """Note the follower's position, and send records or wait; False if nothing was done."""
        request = follower_fetch.read_request(frame, position)
        if request is None:
            return False
        broker = self.broker
        topic_id, number, replica = request.topic_id, request.partition, request.replica
        key = (topic_id, number)
        sessions = broker.follower_sessions
        session = sessions.find_sole(request.session_id, request.session_epoch, key)
        partition = broker.replicas.find("", topic_id, number)
        if session is None or partition is None or not _is_prefix(partition, request):
            return False
        context = self._context(connection, correlation_id)
        if not context.is_from_broker(replica):
            response = followers.refused()
            self.probe.count_errors(response)
            connection.send(self.encode(response, correlation_id))
            return True
        records: Part = b""
        if request.offset < partition.log.log_end_offset:
            found = records_behind(partition, request, connection)
            if found is None:
                return False
            records = found
        fetch = session.update_sole(key, request)
        sessions.advance(session)
        partition.follower_fetched(
            replica, request.offset, request.log_start_offset, request.broker_epoch
        )
        broker.isr_updates.follower_fetched(partition, replica)
        waiting = WaitingFollower(self, context, (session, fetch, partition), request)
        if records:
            connection.send(waiting.parts(correlation_id, records))
            if started_at:
                self.probe.took(started_at, broker.clock.monotonic())
        else:
            waiting.park(correlation_id, started_at)
        return True


def _is_prefix(partition: Partition, request: FollowerMove) -> bool:
    """Return True if this replica leads, and the log of its follower is a part of its own.

    False also if the fetch must not wait, or may have to be throttled.
    """
    isr, log = partition.isr, partition.log
    if (
        isr is None
        or not partition.is_leader
        or partition.leader_epoch != request.leader_epoch
        or request.leader_epoch == NO_EPOCH
        or request.replica not in isr.followers
        or not log.log_start_offset <= request.offset <= log.log_end_offset
        or partition.throttled.as_leader
        or request.max_wait_ms <= 0
    ):
        return False
    try:
        return leading.divergence(partition, request.last_fetched_epoch, request.offset) is None
    except ApiError:
        return False


def records_behind(
    partition: Partition, request: FollowerMove, connection: Connection
) -> Part | None:
    """Return the records from the follower's position on.

    None if they are cold, too few to be sent, or cannot be read.
    """
    try:
        fetched = partition.read(
            request.offset,
            min(request.partition_max_bytes, request.max_bytes, RESPONSE_BYTES_MAX),
            partition.log.log_end_offset,
            at_least_one=True,
            only_if_cached=True,
            range_bytes_min=connection.range_bytes_min,
        )
    except ApiError:
        return None
    records = None if fetched is None else fetched.records
    return records if records and len(records) >= request.min_bytes else None


class WaitingFollower:
    """A fetch of a follower, which may have to wait for records (implements Waiter)."""

    __slots__ = (
        "_changed",
        "_context",
        "_correlation_id",
        "_fetch",
        "_is_done",
        "_partition",
        "_reply",
        "_request",
        "_session",
        "_shortcut",
        "_timer",
        "_times",
        "_until",
    )

    _correlation_id: int
    _reply: Reply
    _timer: asyncio.TimerHandle
    _times: tuple[float, float] | None
    _until: float

    def __init__(
        self,
        shortcut: FollowerShortcut,
        context: FollowerContext,
        target: tuple[Session, PartitionFetch, Partition],
        request: FollowerMove,
    ) -> None:
        self._shortcut = shortcut
        self._context = context
        self._session, self._fetch, self._partition = target
        self._request = request
        # The partitions of the session that have changed since the last look.
        self._changed: dict[Watched, None] = {}
        self._is_done = False

    def park(self, correlation_id: int, started_at: float) -> None:
        """Wait until there are records, another partition changes, or the time is over."""
        broker, connection = self._shortcut.broker, self._context.connection
        self._correlation_id = correlation_id
        self._reply = connection.defer()
        self._reply.on_abandon = self._leave
        now = broker.clock.monotonic()
        self._times = (started_at, now) if started_at else None
        seconds = self._request.max_wait_ms / 1000
        self._until = now + seconds
        self._partition.waiters[self] = None
        self._session.waiters[self] = None
        self._timer = broker.replicas.delayed.enter(FETCH, seconds, self.finish)

    def parts(self, correlation_id: int, records: Part) -> Sequence[Part]:
        """Return the response with records, and note what the follower gets."""
        broker, partition, fetch = self._shortcut.broker, self._partition, self._fetch
        session, request = self._session, self._request
        high_watermark, log_start_offset = partition.high_watermark, partition.log.log_start_offset
        fetch.note_sent(high_watermark, log_start_offset)
        session.serve_last(fetch)
        broker.replicas.replication.sent(
            len(records),
            broker.clock.monotonic(),
            throttled=False,
            added=request.replica in partition.adding_replicas,
        )
        return follower_fetch.response_parts(
            correlation_id,
            session.id,
            request.topic_id,
            request.partition,
            (high_watermark, log_start_offset),
            records,
        )

    def note(self, changed: Watched) -> None:
        """Remember that a partition of the session has changed."""
        self._changed[changed] = None

    def look(self) -> None:
        """Respond if there are records, or pass the fetch on to `followers`."""
        changed = self._changed
        if self._is_done or not changed:
            return
        partition, request = self._partition, self._request
        if (
            len(changed) == 1
            and partition in changed
            and partition.is_leader
            and partition.leader_epoch == request.leader_epoch
            and not partition.throttled.as_leader
        ):
            if partition.log.log_end_offset == request.offset:
                # Only offsets have changed, which the next response contains.
                changed.clear()
                return
            records = records_behind(partition, request, self._context.connection)
            if records is not None:
                self._leave()
                self._send(lambda: self.parts(self._correlation_id, records))
                return
        self._pass_on()

    def finish(self) -> None:
        """Respond with the records that are available."""
        if not self._is_done:
            self._leave()
            fetch = self._slow()
            self._send(lambda: self._encoded(fetch.expire()))

    def _slow(self) -> FollowerFetch:
        """Return the same fetch for the code of the handler."""
        request, broker = self._request, self._shortcut.broker
        remaining_seconds = max(0.0, self._until - broker.clock.monotonic())
        fields = FetchRequest(
            replica_state=ReplicaState(
                replica_id=request.replica, replica_epoch=request.broker_epoch
            ),
            max_wait_ms=int(remaining_seconds * 1000),
            min_bytes=request.min_bytes,
            max_bytes=request.max_bytes,
        )
        plan = FetchPlan((), self._session, is_incremental=True)
        return FollowerFetch(self._context, fields, plan)

    def _pass_on(self) -> None:
        self._leave()
        # Offsets of the own partition may have changed before, and belong into the response.
        self._changed.setdefault(self._partition)
        changed = list(self._changed)
        self._changed.clear()
        response = self._slow().resume(self._fetch, self._partition, changed)
        if isinstance(response, asyncio.Future):
            self._reply.on_abandon = response.cancel
            response.add_done_callback(self._passed_on)
        else:
            self._send(lambda: self._encoded(response))

    def _passed_on(self, done: "asyncio.Future[FetchResponse]") -> None:
        if done.cancelled() or done.exception() is not None:
            # The broker is stopping, or there is a bug, which is logged elsewhere.
            self._reply.close("the broker abandoned the request")
            return
        self._send(lambda: self._encoded(done.result()))

    def _encoded(self, response: FetchResponse) -> list[Buffer]:
        self._shortcut.probe.count_errors(response)
        return self._shortcut.encode(response, self._correlation_id)

    def _send(self, parts: Callable[[], Sequence[Part]]) -> None:
        send_late(self._reply, parts, "Fetch failed")
        if self._times is not None:
            self._shortcut.probe.waited(*self._times, self._shortcut.broker.clock.monotonic())

    def _leave(self) -> None:
        if self._is_done:
            return
        self._is_done = True
        self._partition.waiters.pop(self, None)
        self._session.waiters.pop(self, None)
        self._shortcut.broker.replicas.delayed.leave(FETCH, self._timer)
