"""The copy of topics, within a cluster or between two: read, write to the same partition, store
matching offsets; resume at the last of them.

`ottla topic copy`, `kafka-mirror-maker` and the console run this loop; a `mirror` sink on Spark
shares `routes` and `targets`. Records are copied up to the end at the start of the copy unless it
follows; records of open and aborted transactions only on request.

At least once by default: the points are stored after the records were acknowledged. With
`exactly_once`, records and points are written in one transaction, and a second mirror of the same
topics or the same group fences the first (KIP-98). Without transactions a second mirror is
reported: both see points that they did not write.

A mirror that follows looks for new partitions and topics, which it copies from their beginning.

Not done: two mirrors do not divide the partitions.
"""

import hashlib
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.client.admin import offsets, topics
from ottla.client.brokers import Brokers
from ottla.client.errors import NotReachable, TimedOut, TransactionAborted
from ottla.client.producer.futures import DeliveryFuture
from ottla.client.producer.producer import Producer
from ottla.client.raw.consumer import ConsumedRecord, EndOfPartition, RecordConsumer
from ottla.client.raw.goal import Goal
from ottla.client.records import RecordMetadata
from ottla.operations.mirror.limits import Patience, RateLimit
from ottla.operations.mirror.routes import (
    Points,
    PointsLog,
    Route,
    missing_groups,
    prepare,
    refuse_recreated,
    translate_group,
)
from ottla.operations.mirror.targets import cluster_id
from ottla.operations.mirror.translation import Point
from ottla.operations.mirror.untimed import WrittenRecord, send_copy, write_untimed
from ottla.operations.offsets.positions import BEGINNING, Anchor, Position, resolve
from ottla.operations.stop import Stop

Key = tuple[str, int]
_BATCH = 500
# Records of one transaction, or between two points.
_RECORDS_MAX = 20_000
_POLL_S = 0.2
_GROUPS_S = 10.0
_ATTEMPTS = 5
_PAUSE_S = 1.0
# As MirrorMaker, a mirror that follows waits for its target without limit.
_PATIENT = {"delivery.timeout.ms": str(2**31 - 1), "max.block.ms": str(2**63 - 1)}


_ENDS_AT_TIME = (
    "The copy ends before the first record at or after the time of its end. Older records that "
    "follow, if there are any, are copied by the next copy, which continues there."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorSettings:
    """How topics are copied.

    `follow`: continue at the end of the source until stopped. `group`: a group whose offsets in the
    source show the position; copying begins there if the target has no points yet. `start`: where
    copying begins if there is neither (default: the beginning). `end`: where it stops. `refresh_s`:
    how often a mirror that follows looks for new partitions and topics. `identity`: the mirrors of
    one source of which one fences the others; default: the mirrors of the same topics.
    `has_points`: keep the position on the target, which `exactly_once` needs. `patience_s`: how
    long a copy waits for records of brokers that do not respond (default: without limit).
    `is_read_committed`: leave out records of open and aborted transactions.
    `bytes_per_s`: how much is copied at most, on average, in bytes of keys, values and headers.
    """

    exactly_once: bool = False
    follow: bool = False
    interval_s: float = 5.0
    group: str | None = None
    groups: tuple[str, ...] = ()
    start: Position = BEGINNING
    end: Position | None = None
    refresh_s: float = 10.0
    identity: str | None = None
    has_points: bool = True
    patience_s: float = math.inf
    bytes_per_s: int | None = None
    is_read_committed: bool = True
    consumer: Mapping[str, str] = field(default_factory=dict)
    producer: Mapping[str, str] = field(default_factory=dict)


class Mirror:
    """One run of a mirror; `copied` counts the records that are stored with their points.

    `find_routes` returns the current routes; a mirror that follows copies those that are new.
    """

    def __init__(
        self,
        source: Brokers,
        target: Brokers,
        routes: list[Route],
        settings: MirrorSettings,
        note: Callable[[str], None],
        find_routes: Callable[[], list[Route]] | None = None,
    ) -> None:
        self.copied = 0
        self.moved_groups: dict[str, int] = {}
        self._source, self._target = source, target
        self._cluster_id = cluster_id(source)
        self._settings = settings
        self._note = note
        self._noted: set[str] = set()
        self._find_routes = find_routes
        self._points: dict[Route, Points] = {}
        self._points_log = PointsLog(target, self._cluster_id)
        self._routes: dict[str, Route] = {}
        # Settings that librdkafka refuses are found before topics are created.
        with self._open_producer(), self._open_consumer():
            pass
        for name in missing_groups(source, settings.groups):
            self._note(
                f"There is no group {name!r} in the source's cluster: it has no offsets to translate yet."
            )
        keys = [key for route in routes for key in self._prepare(route)]
        self._positions = self._starts(keys, settings.start)
        self._refresh_at = time.monotonic() + settings.refresh_s
        # Read and sent since the last points.
        self._read: dict[Key, int] = {}
        self._last: dict[Key, DeliveryFuture | WrittenRecord] = {}
        self._count = 0
        self._failure: Exception | None = None
        self._patience = Patience(settings.patience_s)
        self._limit = RateLimit(settings.bytes_per_s)

    def run(self, stop: Stop, advance: Callable[[int], None]) -> None:
        """Copy until the end, or until stopped if it follows; `advance` counts stored records."""
        settings = self._settings
        goal = Goal() if settings.follow else Goal(at_end=True, stops=self._ends(settings.end))
        self._patience.check(time.monotonic(), is_heard=True)
        goes_on = True
        while goes_on:
            try:
                goes_on = self._run_with_clients(goal, stop, advance)
            except (NotReachable, TimedOut, TransactionAborted) as error:
                if not (settings.follow and settings.exactly_once):
                    raise
                self._note_once(f"Copying is repeated: {error}")
                self._forget()
                stop.wait(_PAUSE_S)
                goes_on = not stop.requested
        if settings.groups:
            self._translate()

    def _run_with_clients(self, goal: Goal, stop: Stop, advance: Callable[[int], None]) -> bool:
        """Copy until the end or until stopped; return True, earlier, if there are new partitions,
        because an open producer does not know the target's new partitions yet.
        """
        with self._open_producer() as producer, self._open_consumer() as consumer:
            if self._settings.exactly_once:
                producer.init_transactions()
                self._resume()
            self._store_starts(producer)
            consumer.assign(self._positions)
            goal.assign(self._positions)
            translated = time.monotonic()
            while not (goal.is_reached or stop.requested):
                before = self.copied
                self._copy_some(producer, consumer, goal, stop)
                advance(self.copied - before)
                if not goal.is_reached:
                    # Outside of a transaction, which would time out.
                    stop.wait(self._limit.wait_s(time.monotonic()))
                if self._settings.groups and time.monotonic() - translated > _GROUPS_S:
                    translated = time.monotonic()
                    self._try_to_translate()
                if self._is_refresh_due() and self._refresh():
                    return True
        return False

    def _resume(self) -> None:
        """Continue at the last points, which another mirror may have stored until it was fenced."""
        for route, known in self._points.items():
            for point in self._points_log.new_points(route):
                known.add(point)
                self._positions[route.source, point.partition] = point.source_offset

    def _prepare(self, route: Route) -> list[Key]:
        """Return the partitions of a route that is new, or whose source may have grown."""
        settings = self._settings
        numbers = prepare(
            self._source,
            self._target,
            route,
            follows=settings.follow,
            has_points=settings.has_points,
        )
        if route not in self._points:
            points = Points(self._points_log.new_points(route) if settings.has_points else ())
            refuse_recreated(self._target, route, points)
            self._points[route] = points
            self._routes[route.source] = route
        return [(route.source, number) for number in numbers]

    def _refresh(self) -> bool:
        """Add new topics and partitions to the positions; return True if there are any.

        A route that cannot be prepared is reported once, and again looked at the next time.
        """
        self._refresh_at = time.monotonic() + self._settings.refresh_s
        added: list[Key] = []
        try:
            changed = self._changed_routes()
        except OttlaError as error:
            self._note_once(f"New topics and partitions cannot be looked up: {error}")
            return False
        for route in changed:
            try:
                added += [key for key in self._prepare(route) if key not in self._positions]
            except OttlaError as error:
                self._note_once(f"New partitions of {route.source} are not copied: {error}")
        if added:
            names = ", ".join(f"{topic}-{number}" for topic, number in added)
            self._note(f"Copying {names}, too, from the beginning.")
            self._positions |= self._starts(added, BEGINNING)
        return bool(added)

    def _is_refresh_due(self) -> bool:
        return self._settings.follow and time.monotonic() >= self._refresh_at

    def _changed_routes(self) -> list[Route]:
        """Return the routes that are new, and those whose source has more partitions than known."""
        sizes = {topic.name: len(topic.partitions) for topic in topics.list_topics(self._source)}
        known = Counter(topic for topic, _ in self._positions)
        found = self._find_routes() if self._find_routes is not None else []
        return [
            *(route for route in self._points if sizes.get(route.source, 0) > known[route.source]),
            *(route for route in found if route not in self._points),
        ]

    def _note_once(self, sentence: str) -> None:
        if sentence not in self._noted:
            self._noted.add(sentence)
            self._note(sentence)

    def _starts(self, keys: list[Key], start: Position) -> dict[Key, int]:
        earliest = offsets.list_offsets(self._source, dict.fromkeys(keys, offsets.EARLIEST))
        latest = offsets.list_offsets(self._source, dict.fromkeys(keys, offsets.LATEST))
        default = resolve(self._source, keys, start)
        group = self._settings.group
        committed = offsets.committed_offsets(self._source, group) if group else {}
        starts = {}
        for topic, number in keys:
            known = self._points[self._routes[topic]].next_offset(number)
            if known is None and (topic, number) in committed:
                known = committed[topic, number].offset
            next_offset = default[topic, number] if known is None or known < 0 else known
            first, end = earliest[topic, number].offset, latest[topic, number].offset
            if next_offset > end:
                self._note(
                    f"{topic}-{number}: the stored position {next_offset} is after the end {end}, "
                    f"so {topic} was created again; it is copied from its beginning."
                )
                next_offset = first
            if next_offset < first:
                self._note(
                    f"{topic}-{number}: records {next_offset} to {first - 1} were deleted before "
                    "they were copied."
                )
            starts[topic, number] = max(next_offset, first)
        return starts

    def _ends(self, end: Position | None) -> dict[Key, int]:
        keys = list(self._positions)
        if end is not None:
            if end.anchor is Anchor.TIME:
                self._note(_ENDS_AT_TIME)
            return resolve(self._source, keys, end)
        is_committed = self._settings.is_read_committed
        ends = offsets.list_offsets(
            self._source,
            dict.fromkeys(keys, offsets.LATEST),
            isolation_level=offsets.READ_COMMITTED if is_committed else offsets.READ_UNCOMMITTED,
        )
        return {key: row.offset for key, row in ends.items()}

    def _open_consumer(self) -> RecordConsumer:
        level = "read_committed" if self._settings.is_read_committed else "read_uncommitted"
        properties = {"isolation.level": level, "auto.offset.reset": "earliest"}
        if not self._settings.follow:
            properties["fetch.wait.max.ms"] = "10"
        properties |= {**self._source.settings, **self._settings.consumer}
        return RecordConsumer(self._source.bootstrap, settings=properties)

    def _open_producer(self) -> Producer:
        settings: dict[str, str] = {
            "bootstrap.servers": self._target.bootstrap,
            "acks": "all",
            "enable.idempotence": "true",
            **(_PATIENT if self._settings.follow and not self._settings.exactly_once else {}),
            **self._target.settings,
            **self._settings.producer,
        }
        if self._settings.exactly_once:
            names = ",".join(sorted(f"{route.source}>{route.target}" for route in self._points))
            identity = f"{self._cluster_id}:{self._settings.identity or names}"
            digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
            settings.setdefault("transactional.id", f"ottla-mirror-{digest}")
        return Producer(settings)

    def _copy_some(
        self, producer: Producer, consumer: RecordConsumer, goal: Goal, stop: Stop
    ) -> None:
        """Copy until points are due, and store them; in one transaction if it is exactly once."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                if not self._settings.exactly_once:
                    self._fill(producer, consumer, goal, stop)
                    self._store(producer)
                    break
                # A transaction begins with its first record: an idle mirror writes no markers.
                first = consumer.poll(_POLL_S, limit=1)
                if not any(isinstance(item, ConsumedRecord) for item in first):
                    _reach(first, goal)
                    return
                with producer.transaction():
                    self._send_all(producer, first, goal)
                    self._fill(producer, consumer, goal, stop)
                    self._store(producer)
                break
            except TransactionAborted:
                if attempt == _ATTEMPTS:
                    raise
                self._forget()
                self._resume()
                consumer.assign(self._positions)
                goal.assign(self._positions)
        self._finish()

    def _fill(self, producer: Producer, consumer: RecordConsumer, goal: Goal, stop: Stop) -> None:
        deadline = time.monotonic() + self._settings.interval_s
        if self._settings.follow:
            deadline = min(deadline, self._refresh_at)
        while not (goal.is_reached or stop.requested):
            events = (
                consumer.poll(_POLL_S, limit=_BATCH)
                if not self._count
                else (consumer.poll(0.02, limit=_BATCH))
            )
            self._send_all(producer, events, goal)
            now = time.monotonic()
            self._patience.check(now, is_heard=bool(events))
            is_idle = not events and self._count > 0
            is_due = now > deadline or self._count >= _RECORDS_MAX or self._limit.is_reached(now)
            if is_idle or is_due:
                return

    def _send_all(
        self, producer: Producer, events: list[ConsumedRecord | EndOfPartition], goal: Goal
    ) -> None:
        records = []
        for event in events:
            if isinstance(event, EndOfPartition):
                goal.reach(event)
            elif goal.wants(event):
                records.append(event)
        is_untimed = any(record.timestamp <= 0 for record in records)
        if is_untimed and not self._settings.exactly_once:
            # All of them: the order of a partition is kept.
            producer.flush()
            targets = {name: route.target for name, route in self._routes.items()}
            self._last |= write_untimed(self._target, targets, records)
        else:
            if is_untimed:
                self._note_once(
                    "Records with the timestamp 0 or none get the time of the copy, because it is "
                    "exactly once."
                )
            self._send_records(producer, records)
        for record in records:
            self._limit.count(record, time.monotonic())
            self._read[record.topic, record.partition] = record.offset + 1
        self._count += len(records)

    def _send_records(self, producer: Producer, records: list[ConsumedRecord]) -> None:
        for record in records:
            target = self._routes[record.topic].target
            future = send_copy(producer, target, record, self._delivered)
            self._last[record.topic, record.partition] = future

    def _delivered(self, _: RecordMetadata | None, error: Exception | None) -> None:
        self._failure = self._failure or error

    def _store(self, producer: Producer) -> None:
        """Wait for the records, then write the points that match them."""
        if not self._read:
            return
        producer.flush()
        if self._failure is not None:
            raise self._failure
        if self._settings.has_points:
            self._write_points(producer, {key: self._point(key) for key in self._read})

    def _point(self, key: Key) -> Point:
        """Return the point behind the records that were read and written."""
        return Point(key[1], self._read[key], self._last[key].result().offset + 1)

    def _store_starts(self, producer: Producer) -> None:
        """Store a point for each partition without one: its start, and the end of its copy.

        Offsets of groups in the first batch are translated to it, and a mirror that begins at the
        end resumes there.
        """
        if not self._settings.has_points:
            return
        new = [
            (topic, number)
            for topic, number in self._positions
            if self._points[self._routes[topic]].next_offset(number) is None
        ]
        copies = {key: (self._routes[key[0]].target, key[1]) for key in new}
        ends = offsets.list_offsets(self._target, dict.fromkeys(copies.values(), offsets.LATEST))
        rows = {
            key: Point(key[1], self._positions[key], ends[copy].offset)
            for key, copy in copies.items()
        }
        if rows:
            with producer.transaction() if self._settings.exactly_once else nullcontext():
                self._write_points(producer, rows)
        for key, point in rows.items():
            self._points[self._routes[key[0]]].add(point)

    def _write_points(self, producer: Producer, rows: Mapping[Key, Point]) -> None:
        points: dict[Route, list[DeliveryFuture]] = {}
        for (topic, _), point in rows.items():
            route = self._routes[topic]
            key, value = point.encode(topic, self._cluster_id)
            future = producer.send(
                route.offsets_topic, value, key=key, partition=0, on_delivery=self._delivered
            )
            points.setdefault(route, []).append(future)
        producer.flush()
        if self._failure is not None:
            raise self._failure
        if not self._settings.exactly_once:
            for route, futures in points.items():
                written = [future.result().offset for future in futures]
                if self._points_log.has_other_writer(route, written):
                    self._note_once(
                        f"Another mirror copies {route.source} to {route.target}, too: records are "
                        "copied twice. Stop one of them: mirrors, also of one group, do not divide "
                        "the partitions."
                    )

    def _forget(self) -> None:
        """Drop the records of an aborted transaction."""
        self._read, self._last, self._count, self._failure = {}, {}, 0, None

    def _finish(self) -> None:
        """Take over what is stored."""
        for key, next_offset in self._read.items():
            self._points[self._routes[key[0]]].add(self._point(key))
            self._positions[key] = next_offset
        if self._read and self._settings.group:
            self._show_position(self._settings.group)
        self.copied += self._count
        self._read, self._last, self._count = {}, {}, 0

    def _show_position(self, group: str) -> None:
        rows = {key: offsets.CommittedOffset(offset) for key, offset in self._read.items()}
        try:
            offsets.commit_offsets(self._source, group, rows)
        except OttlaError as error:
            is_used = isinstance(error, ApiError) and error.code is ErrorCode.UNKNOWN_MEMBER_ID
            reason = "it has members" if is_used else error
            self._note_once(
                f"The offsets of group {group!r} do not show this mirror's position: {reason}"
            )

    def _try_to_translate(self) -> None:
        try:
            self._translate()
        except OttlaError as error:
            self._note_once(f"Offsets of groups are not translated now: {error}")

    def _translate(self) -> None:
        self.moved_groups = {
            name: translate_group(self._source, self._target, self._points, name).moved
            for name in self._settings.groups
        }


def _reach(events: list[ConsumedRecord | EndOfPartition], goal: Goal) -> None:
    for item in events:
        if isinstance(item, EndOfPartition):
            goal.reach(item)
