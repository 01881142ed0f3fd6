"""librdkafka's consumer in a group that it cannot join by itself.

`GroupConsumer` replaces librdkafka's object: it has the methods of a group membership, and
hands all others on, with librdkafka reading assigned partitions. Rebalances happen in `poll` and
`consume`, in the thread that calls them, as in the Java client.
"""

import logging
import math
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client import transport
from ottla.client.errors import ClientError, Fenced
from ottla.client.group.assignors import PartitionAssignor, RangeAssignor, RoundRobinAssignor
from ottla.client.group.background import Cause, Event, Failed, GroupThread, Joined, Lost, Rejoin
from ottla.client.group.departures import Departures
from ottla.client.group.identities import Identity, encode_metadata
from ottla.client.group.member import GroupSettings
from ottla.client.group.sticky import CooperativeStickyAssignor, StickyAssignor
from ottla.client.records import TopicPartition
from ottla.client.security.options import security_of

_log = logging.getLogger("ottla.client")
Rows = Sequence[Any]
OnChange = Callable[[Any, Rows], None]

_ASSIGNORS: dict[str, type[PartitionAssignor]] = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
_COMMIT_MS = 5_000
_SESSION_MS, _HEARTBEAT_MS, _REBALANCE_MS, _REFRESH_MS = 45_000, 3_000, 300_000, 300_000


class GroupConsumer:
    """A member of a group; it has the methods of confluent_kafka's Consumer."""

    def __init__(
        self,
        inner: Any,
        thread: GroupThread,
        departures: Departures,
        on_commit: Callable[[Any, Rows], None],
        commit_every_s: float = math.inf,
    ) -> None:
        self._inner = inner
        self._thread = thread
        self._departures = departures
        self._on_commit = on_commit
        self._commits: list[tuple[Rows, Future[int]]] = []
        self._commit_every_s = commit_every_s
        self._commit_at = time.monotonic() + commit_every_s
        # Offsets to commit in the background, as librdkafka's enable.auto.commit.
        self._stored: dict[TopicPartition, int] = {}
        self._has_assigned = False
        self._subscription: tuple[str, ...] = ()
        self._owned: list[TopicPartition] = []
        # From a join until its result; another subscription during that time makes it outdated.
        self._is_joining = self._is_outdated = False
        self._error: Fenced | None = None
        self._metadata: bytes | None = None
        self._on_assign: OnChange
        self._on_revoke: OnChange
        self._on_lost: OnChange

    def __getattr__(self, name: str) -> Any:
        """Return librdkafka's method for everything that does not concern the group."""
        return getattr(self._inner, name)

    def subscribe(
        self, topics: Sequence[str], *, on_assign: OnChange, on_revoke: OnChange, on_lost: OnChange
    ) -> None:
        """Join the group; the next calls of `poll` report the assignment."""
        _check_patterns(topics)
        self._on_assign, self._on_revoke, self._on_lost = on_assign, on_revoke, on_lost
        self._subscription = tuple(topics)
        if self._is_joining:
            self._is_outdated = True
        elif self._owned:
            self._thread.events.append(Rejoin())
        else:
            self._join()

    def unsubscribe(self) -> None:
        """Give up the partitions and leave the group."""
        if not self._subscription:
            return
        self._subscription = ()
        try:
            self._give_up(self._on_revoke)
        finally:
            self._is_joining = self._is_outdated = False
            self._thread.leave("the consumer unsubscribed from all topics")
            self._thread.events.clear()

    def poll(self, timeout: float) -> Any:
        """Return the next record or None, after rebalances."""
        self._serve()
        return self._inner.poll(timeout)

    def consume(self, count: int, timeout: float) -> list[Any]:
        """Return up to `count` records, after rebalances."""
        self._serve()
        return list(self._inner.consume(count, timeout))

    def commit(self, *, offsets: Rows, asynchronous: bool) -> Rows:
        """Commit as a member; LibrdkafkaError if it is none."""
        wanted = {
            TopicPartition(row.topic, row.partition): (row.offset, row.metadata or "")
            for row in offsets
        }
        done = self._thread.commit(wanted)
        if asynchronous:
            self._commits.append((offsets, done))
        elif code := done.result():
            for event in list(self._thread.events):
                self._explain(event)
            raise transport.broker_error(code)
        return offsets

    def store_offsets(self, *, offsets: Rows) -> None:
        """Commit these offsets soon, if the consumer commits by itself."""
        for row in offsets:
            key = TopicPartition(row.topic, row.partition)
            if key in self._owned:
                self._stored[key] = row.offset

    def assign(self, partitions: Rows) -> None:
        """Read these partitions."""
        self._has_assigned = True
        self._inner.assign(partitions)

    def memberid(self) -> str:
        """Return the id in the group; empty before the first join."""
        return self._thread.member_id

    def consumer_group_metadata(self) -> bytes:
        """Return the last membership: the coordinator refuses offsets of a former member (KIP-447).

        Thread-safe.
        """
        metadata: bytes = self._metadata or self._inner.consumer_group_metadata()
        return metadata

    def close(self) -> None:
        """Leave the group and close."""
        self._commit_stored(asynchronous=False)
        if self._subscription:
            self._thread.leave("the consumer is being closed")
        self._thread.close()
        self._inner.close()

    def _serve(self) -> None:
        """Handle the events of the group since the last call."""
        self._thread.polled()
        while self._commits and self._commits[0][1].done():
            rows, done = self._commits.pop(0)
            code = done.result()
            self._on_commit(transport.broker_error(code).args[0] if code else None, rows)
        if self._error is not None:
            raise self._error
        if time.monotonic() >= self._commit_at:
            self._commit_at = time.monotonic() + self._commit_every_s
            self._commit_stored(asynchronous=True)
        for _ in range(len(self._thread.events)):
            self._handle(self._thread.events.popleft())

    def _handle(self, event: Event) -> None:
        match event:
            case Joined() if event.stay != self._thread.stay:
                return
            case Joined() if self._is_outdated:
                self._join()
            case Joined():
                self._is_joining = False
                settings = self._thread.settings
                identity = Identity(event.member_id, event.generation, settings.instance_id)
                self._metadata = encode_metadata(settings.group_id, identity)
                self._take_over(event.partitions)
            case Failed():
                self._is_joining = False
                self._error = self._final_error(event.error)
                if self._error is None:
                    # The next call joins again: this one reports the error.
                    self._thread.events.append(Rejoin())
                self._give_up(self._on_lost)
                raise self._error or event.error
            case Rejoin() | Lost() if not self._is_joining:
                self._explain(event)
                try:
                    self._give_up(self._on_revoke if isinstance(event, Rejoin) else self._on_lost)
                finally:
                    self._join()

    def _join(self) -> None:
        self._is_joining, self._is_outdated = True, False
        self._thread.join(self._subscription)

    def _take_over(self, partitions: list[TopicPartition]) -> None:
        self._owned, self._has_assigned = partitions, False
        rows = _rows(partitions)
        try:
            self._on_assign(self, rows)
        finally:
            # Also if the listener has raised: its partitions are read.
            if not self._has_assigned:
                self.assign(rows)

    def _give_up(self, on_change: OnChange) -> None:
        if not self._owned:
            return
        if on_change == self._on_revoke:
            self._commit_stored(asynchronous=False)
        owned, self._owned = self._owned, []
        self._stored.clear()
        try:
            on_change(self, _rows(owned))
        finally:
            self._inner.unassign()

    def _commit_stored(self, *, asynchronous: bool) -> None:
        stored, self._stored = self._stored, {}
        if stored and not math.isinf(self._commit_every_s):
            try:
                self.commit(offsets=transport.partitions(stored), asynchronous=asynchronous)
            except transport.LibrdkafkaError as error:
                # The next owner reads these records again.
                _log.warning("positions were not committed: %s", error)

    def _explain(self, event: Event) -> None:
        if isinstance(event, Lost) and event.cause is Cause.LATE_POLL:
            self._departures.poll_came_late()
        elif isinstance(event, Lost) and event.cause is Cause.SESSION_OVER:
            self._departures.session_over()

    def _final_error(self, error: Exception) -> Fenced | None:
        """Return the error that ends the membership, because another consumer has its identity."""
        if isinstance(error, ApiError) and error.code is ErrorCode.FENCED_INSTANCE_ID:
            self._departures.fenced()
            return Fenced(self._departures.sentence())
        return None


def open_group_consumer(
    properties: dict[str, Any],
    assignors: Sequence[str | PartitionAssignor],
    departures: Departures,
) -> GroupConsumer:
    """Return a consumer with these options of librdkafka; ClientError names a wrong one."""
    settings = _settings_of(properties)
    # librdkafka reads partitions and commits nothing: it is no member.
    inner = transport.open_consumer(
        {
            name: value
            for name, value in properties.items()
            if name not in ("group.instance.id", "partition.assignment.strategy")
        }
        | {"enable.auto.commit": "false", "enable.auto.offset.store": "false"}
    )
    objects = [_ASSIGNORS[row]() if isinstance(row, str) else row for row in assignors]
    thread = GroupThread(settings, objects)
    commits = str(properties.get("enable.auto.commit", "true")).lower() == "true"
    every_s = int(properties.get("auto.commit.interval.ms", _COMMIT_MS)) / 1000
    return GroupConsumer(
        inner,
        thread,
        departures,
        properties.get("on_commit", _not_observed),
        every_s if commits else math.inf,
    )


def _not_observed(error: Any, rows: Rows) -> None:
    if error is not None:
        _log.warning("positions were not committed: %s", error)


def _check_patterns(topics: Sequence[str]) -> None:
    for topic in topics:
        try:
            re.compile(topic if topic.startswith("^") else "")
        except re.error as error:
            raise ClientError(f"cannot subscribe to {topic!r}: {error}") from error


def _settings_of(properties: dict[str, Any]) -> GroupSettings:
    if str(properties.get("group.protocol", "classic")).lower() != "classic":
        raise ConfigError(
            "partition.assignment.strategy cannot be set with group.protocol=consumer: "
            "set group.remote.assignor, or use group.protocol=classic"
        )

    def seconds(name: str, default_ms: int) -> float:
        value = int(properties.get(name, default_ms))
        if value <= 0:
            raise ConfigError(f"{name}={value} must be a positive number of ms")
        return value / 1000

    return GroupSettings(
        bootstrap=properties["bootstrap.servers"],
        client_id=str(properties.get("client.id", "ottla")),
        group_id=properties["group.id"],
        instance_id=properties.get("group.instance.id"),
        session_s=seconds("session.timeout.ms", _SESSION_MS),
        rebalance_s=seconds("max.poll.interval.ms", _REBALANCE_MS),
        heartbeat_s=seconds("heartbeat.interval.ms", _HEARTBEAT_MS),
        refresh_s=seconds("topic.metadata.refresh.interval.ms", _REFRESH_MS),
        creates_topics=str(properties.get("allow.auto.create.topics", "true")).lower() == "true",
        security=security_of(properties),
        rack=properties.get("client.rack"),
    )


def _rows(partitions: Sequence[TopicPartition]) -> Rows:
    return transport.partitions(dict.fromkeys(partitions, transport.STORED))
