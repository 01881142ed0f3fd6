"""A fast path for fetches of one partition, in every version.

A consumer repeats its request except for offset, session epoch and sizes. The decoded meaning of
the other bytes is cached by their content, and a response with records is a template filled with
numbers. A fetch that has to wait is parked without decoding it.

All other requests use the decoder and the handler: several partitions, forgotten ones, a session
that begins, ends or has more partitions, cold bytes, any error. Nothing is changed until the fast
path is known to apply. Limits, offsets, counters and waiting are decided by the same code as for
the handler: `Partition.fetch`, `ottla.server.fetch.reading`, `AwaitedBytes`.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.base.buffers import Buffer, Part
from ottla.base.errors import ApiError
from ottla.base.loading import deferred_module
from ottla.net.connection import Connection, Reply
from ottla.replication.delayed import FETCH, Watched
from ottla.replication.fetched import ENOUGH_BYTES, READ_COMMITTED, Fetched
from ottla.replication.partition import NO_EPOCH, Partition
from ottla.server.fetch import followers
from ottla.server.fetch.followers import FollowerBroker
from ottla.server.fetch.parked import AwaitedBytes
from ottla.server.fetch.reading import (
    FIRST_VERSION_OF_FOLLOWERS,
    FetchContext,
    FetchPass,
    bytes_max,
    partition_data_of,
    read,
    selects_by_rack,
)
from ottla.server.fetch.response import respond
from ottla.server.fetch.sessions import NO_EPOCH as NO_SESSION_EPOCH
from ottla.server.fetch.sessions import NO_SESSION, FetchPlan, Key, PartitionFetch, Session
from ottla.server.shortcuts import RouteParts, send_late, weak_target
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.wire.templates import FetchLayout, Fill, fetch_template

if TYPE_CHECKING:
    from ottla.server.fetch import follower_shortcut
    from ottla.server.fetch.follower_shortcut import FollowerShortcut
else:
    follower_shortcut = deferred_module("ottla.server.fetch.follower_shortcut")

_KNOWN_MAX = 10_000


class Known(NamedTuple):
    """The meaning of the bytes around the offset, and the templates of the response."""

    # A weak reference. A replica that was replaced serves no fetch any more.
    find: Callable[[], Partition | None]
    topic: str
    topic_id: bytes
    partition: int
    leader_epoch: int
    # The key of the partition in a session.
    key: Key
    # The bytes of the request after offset and size.
    rest: bytes
    # By isolation level: the bytes before the records.
    fills: tuple[Fill, Fill]
    end: bytes


# A recognized request: its session if it has one, correlation id, max_wait_ms, min_bytes,
# max_bytes, isolation level, offset, and the most bytes of the partition.
RecognizedFetch = tuple[Known, Partition, Session | None, int, int, int, int, int, int, int]


class FetchShortcut:
    """The requests that have been seen in one version of Fetch."""

    def __init__(self, broker: FollowerBroker, version: int, parts: RouteParts) -> None:
        self.broker = broker
        self.encode, self.probe = parts.encode, parts.probe
        self.context: Callable[[Connection, int], FetchContext] = parts.context
        self.or_follower = version >= FIRST_VERSION_OF_FOLLOWERS
        self._may = parts.may
        # The fast path of followers; None until one has fetched.
        self._of_followers: FollowerShortcut | None = None
        self._version, self._parts = version, parts
        self._layout = FetchLayout(version)
        self._known: dict[bytes, Known] = {}
        # Requests whose bytes before the offset are those of a known one, and that differ behind
        # it: consumers in several racks read the same partition.
        self._variants: dict[tuple[bytes, bytes], Known] = {}

    def answer(
        self,
        connection: Connection,
        frame: memoryview,
        position: int,
        correlation_id: int,
        started_at: float,
    ) -> bool:
        """Read the records and send the response, or park the fetch; False if nothing was done.

        `position` is where the request's body begins in the frame.
        """
        recognized = self._recognize(frame, position, correlation_id)
        if recognized is None:
            of_followers = self._of_followers
            return of_followers is not None and of_followers.answer(
                connection, frame, position, correlation_id, started_at
            )
        known, partition, session, _, max_wait_ms, min_bytes, max_bytes, isolation, offset, size = (
            recognized
        )
        if self._may is not None and not self._may(connection, partition.topic):
            return False
        try:
            fetched = partition.fetch(
                offset,
                bytes_max(self.broker, connection, size if size < max_bytes else max_bytes),
                known.leader_epoch,
                (isolation, connection.range_bytes_min, True, self.or_follower),
                at_least_one=True,
            )
        except ApiError:
            # The handler refuses the fetch again and reports the whole error.
            return False
        records = fetched.records
        if records is None:
            return False
        fetch = None
        if session is not None:
            fetch = session.update_single(known.key, isolation, offset, size)
            fetch.leader_epoch = known.leader_epoch
            self.broker.fetch_sessions.advance(session)
        is_enough = (size_bytes := len(records)) >= min_bytes or size_bytes >= ENOUGH_BYTES
        if records and is_enough and not fetched.aborted:
            connection.send(known_parts(known, session, correlation_id, isolation, fetched))
        else:
            lone = LoneFetch(self, connection, recognized, fetch)
            if not is_enough and max_wait_ms > 0:
                lone.park(fetched, started_at)
                return True
            connection.send(lone.parts(fetched))
        if started_at:
            self.probe.took(started_at, self.broker.clock.monotonic())
        return True

    def _recognize(
        self, frame: memoryview, position: int, correlation_id: int
    ) -> RecognizedFetch | None:
        """Return the meaning of a request; None if it is the handler's."""
        layout = self._layout
        head, numbers = layout.head, layout.numbers
        if len(frame) - position < layout.fixed_bytes + numbers.size:
            return None
        at = position + layout.fixed_bytes
        if not layout.has_topic_ids:
            at += frame[position + layout.name_size_position]
        key = frame[position + head.size : at].tobytes()
        known = self._known.get(key)
        if known is None:
            return None
        rest = frame[at + numbers.size :].tobytes()
        if rest != known.rest:
            known = self._variants.get((key, rest))
            if known is None:
                return None
        if layout.has_sessions:
            replica, max_wait_ms, min_bytes, max_bytes, isolation, session_id, epoch = (
                head.unpack_from(frame, position)
            )
        else:
            replica, max_wait_ms, min_bytes, max_bytes, isolation = head.unpack_from(
                frame, position
            )
            session_id, epoch = NO_SESSION, NO_SESSION_EPOCH
        partition = known.find()
        if replica != layout.replica or not 0 <= isolation <= READ_COMMITTED or partition is None:
            return None
        session = None
        if epoch != NO_SESSION_EPOCH or session_id != NO_SESSION:
            session = self.broker.fetch_sessions.find_single(session_id, epoch, known.key)
            if session is None:
                return None
        offset, size = numbers.unpack_from(frame, at)
        return (
            known, partition, session, correlation_id, max_wait_ms, min_bytes, max_bytes, isolation,
            offset, size,
        )  # fmt: skip

    def learn(
        self,
        frame: memoryview,
        position: int,
        request: FetchRequest,
        response: FetchResponse | None,
    ) -> None:
        """Remember a decoded request if requests like it can use the fast path.

        There is no response yet if the fetch is waiting.
        """
        topics = request.topics
        if response is not None and response.error_code:
            return
        if followers.replica_of(request)[0] != followers.NO_REPLICA:
            if self._of_followers is None and self._may is None:
                self._of_followers = follower_shortcut.of_version(
                    self._version, self.broker, self._parts
                )
            return
        if len(topics) != 1 or len(topics[0].partitions) != 1:
            return
        parts = self._layout.parts_of(frame, position, request)
        if parts is None or request.forgotten_topics_data or selects_by_rack(self.broker, request):
            return
        topic, requested = topics[0], topics[0].partitions[0]
        name = topic.topic_id if self._layout.has_topic_ids else topic.topic
        replicas = self.broker.replicas
        partition = replicas.find(topic.topic, topic.topic_id, requested.partition)
        if partition is None:
            return
        key, rest = parts
        former = self._known.get(key)
        is_variant = former is not None and former.rest != rest and former.find() is partition
        if is_variant:
            former = self._variants.get((key, rest))
        if former is not None and former.rest == rest and former.find() is partition:
            # This fetch needed the handler: for example, its bytes were cold or its session began.
            return
        fills = []
        end = b""
        for is_committed in (False, True):
            fill, end = fetch_template(
                topic.topic, topic.topic_id, requested.partition, self.encode,
                is_committed=is_committed, has_sessions=self._layout.has_sessions,
            )  # fmt: skip
            fills.append(fill)
        if len(self._known) + len(self._variants) >= _KNOWN_MAX:
            self._known.clear()
            self._variants.clear()
        table: dict[Any, Known] = self._variants if is_variant else self._known
        entry = (key, rest) if is_variant else key
        table[entry] = Known(
            weak_target(partition, table, entry),
            topic.topic,
            topic.topic_id,
            requested.partition,
            max(requested.current_leader_epoch, NO_EPOCH),
            (name, requested.partition),
            rest,
            (fills[0], fills[1]),
            end,
        )


def known_parts(
    known: Known, session: Session | None, correlation_id: int, isolation: int, fetched: Fetched
) -> Sequence[Part]:
    """Return the response with records and without aborted transactions, and note it in the
    session.
    """
    records, high_watermark, stable_offset, log_start_offset, _, _ = fetched
    assert records is not None
    if session is None:
        session_id = NO_SESSION
    else:
        session_id = session.id
        session.partitions[known.key].note_sent(high_watermark, log_start_offset)
    head = known.fills[isolation](
        correlation_id, session_id, high_watermark, stable_offset, log_start_offset, len(records)
    )
    end = known.end
    return (head, records, end) if end else (head, records)


class LoneFetch:
    """A fetch of one partition that was not answered at once by a template (implements Waiter)."""

    __slots__ = (
        "_awaited",
        "_connection",
        "_correlation_id",
        "_ended",
        "_fetch",
        "_is_done",
        "_is_noted",
        "_isolation",
        "_known",
        "_max_bytes",
        "_max_wait_ms",
        "_min_bytes",
        "_offset",
        "_partition",
        "_reply",
        "_seen_bytes",
        "_session",
        "_shortcut",
        "_size",
        "_timer",
        "_times",
    )

    _awaited: AwaitedBytes
    _ended: Fetched | None
    _reply: Reply
    _seen_bytes: int
    _timer: asyncio.TimerHandle
    _times: tuple[float, float] | None

    def __init__(
        self,
        shortcut: FetchShortcut,
        connection: Connection,
        recognized: RecognizedFetch,
        fetch: PartitionFetch | None,
    ) -> None:
        self._shortcut = shortcut
        self._connection = connection
        self._known, self._partition, self._session, self._correlation_id, *numbers = recognized
        self._max_wait_ms, self._min_bytes, self._max_bytes, self._isolation, *numbers = numbers
        self._offset, self._size = numbers
        self._fetch = fetch
        self._is_done = self._is_noted = False

    def parts(self, fetched: Fetched) -> Sequence[Part]:
        """Return the response for a result that the template is not made for."""
        reading = FetchPass()
        fetch = self._partition_fetch()
        partition_data = partition_data_of(fetch.partition, self._isolation, fetched)
        reading.results.append((fetch, partition_data))
        if fetched.is_at_end:
            reading.ended.append((fetch, partition_data, self._partition))
        return self._encoded(self._plan(fetch), reading)

    def park(self, fetched: Fetched, started_at: float) -> None:
        """Wait until there are enough bytes, or the time is over."""
        partition = self._partition
        partition.take_back(fetched)
        self._awaited = AwaitedBytes(self._min_bytes, len(fetched.records or b""))
        # Holds until the partition changes.
        self._ended = fetched if fetched.is_at_end else None
        self._seen_bytes = partition.appended_bytes
        self._reply = self._connection.defer()
        self._reply.on_abandon = self._leave
        broker = self._shortcut.broker
        self._times = (started_at, broker.clock.monotonic()) if started_at else None
        partition.waiters[self] = None
        if self._session is not None:
            self._session.waiters[self] = None
        self._timer = broker.replicas.delayed.enter(FETCH, self._max_wait_ms / 1000, self.finish)

    def note(self, changed: Watched) -> None:
        """Remember that the partition has changed."""
        self._is_noted = True

    def look(self) -> None:
        """Respond if there are enough bytes, or the partition can no longer be read."""
        if self._is_done or not self._is_noted:
            return
        self._is_noted = False
        partition = self._partition
        self._ended = None
        grown_bytes = partition.appended_bytes - self._seen_bytes
        self._seen_bytes = partition.appended_bytes
        if not self._awaited.may_suffice(grown_bytes):
            return
        connection, known, shortcut = self._connection, self._known, self._shortcut
        remaining_bytes = bytes_max(shortcut.broker, connection, self._max_bytes)
        try:
            fetched = partition.fetch(
                self._offset,
                min(self._size, remaining_bytes),
                known.leader_epoch,
                (self._isolation, connection.range_bytes_min, True, shortcut.or_follower),
                at_least_one=True,
            )
        except ApiError:
            self.finish()
            return
        if not self._awaited.suffice(len(fetched.records or b"")):
            partition.take_back(fetched)
            return
        if fetched.records and not fetched.aborted:
            key = known, self._session, self._correlation_id, self._isolation
            self._send(lambda: known_parts(*key, fetched))
        else:
            self._send(lambda: self.parts(fetched))

    def finish(self) -> None:
        """Respond with the records that are available, or with the error of the partition."""
        if not self._is_done:
            self._send(self._read_again)

    def _read_again(self) -> Sequence[Part]:
        if self._ended is not None:
            return self.parts(self._ended)
        plan = self._plan(self._partition_fetch())
        request = FetchRequest(max_bytes=self._max_bytes, isolation_level=self._isolation)
        context = self._shortcut.context(self._connection, self._correlation_id)
        return self._encoded(plan, read(context, request, plan.partitions))

    def _send(self, parts: Callable[[], Sequence[Part]]) -> None:
        self._leave()
        send_late(self._reply, parts, "Fetch failed")
        if self._times is not None:
            self._shortcut.probe.waited(*self._times, self._shortcut.broker.clock.monotonic())

    def _leave(self) -> None:
        if self._is_done:
            return
        self._is_done = True
        self._partition.waiters.pop(self, None)
        if self._session is not None:
            self._session.waiters.pop(self, None)
        self._shortcut.broker.replicas.delayed.leave(FETCH, self._timer)

    def _partition_fetch(self) -> PartitionFetch:
        if self._fetch is None:
            known = self._known
            requested = FetchPartition(
                partition=known.partition,
                current_leader_epoch=known.leader_epoch,
                fetch_offset=self._offset,
                partition_max_bytes=self._size,
            )
            self._fetch = PartitionFetch(
                FetchTopic(topic=known.topic, topic_id=known.topic_id), requested
            )
        return self._fetch

    def _plan(self, fetch: PartitionFetch) -> FetchPlan:
        if self._session is None:
            return FetchPlan((fetch,))
        return FetchPlan((), self._session, is_incremental=True)

    def _encoded(self, plan: FetchPlan, reading: FetchPass) -> list[Buffer]:
        """Encode the response as the handler would."""
        correlation_id = self._correlation_id
        context = self._shortcut.context(self._connection, correlation_id)
        response = respond(context, plan, reading)
        if context.has_errors:
            self._shortcut.probe.count_errors(response)
        return self._shortcut.encode(response, correlation_id)
