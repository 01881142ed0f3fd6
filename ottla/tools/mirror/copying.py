"""The copying itself: read, write to the same partition, store matching offsets; resume at the last
of them.

At least once by default: the points are stored after the records were acknowledged. With
`exactly_once`, records and points are written in one transaction, and a second mirror of the same
topics fences the first (KIP-98).

Not done: a record with the timestamp 0 or none gets the time of the copy.
"""

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin import offsets
from ottla.client.brokers import Brokers
from ottla.client.errors import TransactionAborted
from ottla.client.producer.futures import DeliveryFuture
from ottla.client.producer.producer import Producer
from ottla.client.records import RecordMetadata
from ottla.client.transport import ConsumedRecord, EndOfPartition, RecordConsumer
from ottla.streams.pipelines.translation import Point
from ottla.tools.mirror.routes import Points, Route, prepare, read_points, translate_groups
from ottla.tools.record.goal import Goal
from ottla.tools.signals import StopSignals

Key = tuple[str, int]
_BATCH = 500
# Records of one transaction, or between two points.
_RECORDS_MAX = 20_000
_POLL_S = 0.2
_GROUPS_S = 10.0
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorSettings:
    """How topics are copied.

    `follow`: continue at the end of the source until stopped. `group`: a group whose offsets in the
    source show the position; copying begins there if the target has no points yet. `starts_at_end`:
    begin at the end of a source that was never copied.
    """

    exactly_once: bool = False
    follow: bool = False
    interval_s: float = 5.0
    group: str | None = None
    groups: tuple[str, ...] = ()
    starts_at_end: bool = False
    consumer: Mapping[str, str] = field(default_factory=dict)
    producer: Mapping[str, str] = field(default_factory=dict)


class Mirror:
    """One run of a mirror; `copied` counts the records that are stored with their points."""

    def __init__(
        self,
        source: Brokers,
        target: Brokers,
        routes: list[Route],
        settings: MirrorSettings,
        note: Callable[[str], None],
    ) -> None:
        self.copied = 0
        self.moved_groups: dict[str, int] = {}
        self._source, self._target = source, target
        self._settings = settings
        self._note = note
        self._partitions = {route: prepare(source, target, route) for route in routes}
        self._points = {route: Points(read_points(target, route)) for route in routes}
        self._routes = {route.source: route for route in routes}
        self._positions = self._starts()
        # Read and sent since the last points.
        self._read: dict[Key, int] = {}
        self._last: dict[Key, DeliveryFuture] = {}
        self._count = 0
        self._failure: Exception | None = None

    def run(self, stop: StopSignals, advance: Callable[[int], None]) -> None:
        """Copy until the end, or until stopped if it follows; `advance` counts stored records."""
        settings = self._settings
        goal = Goal() if settings.follow else Goal(at_end=True, stops=self._ends())
        goal.assign(self._positions)
        properties = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
        if not settings.follow:
            properties["fetch.wait.max.ms"] = "10"
        with (
            self._open_producer() as producer,
            RecordConsumer(
                self._source.bootstrap, settings={**properties, **settings.consumer}
            ) as consumer,
        ):
            consumer.assign(self._positions)
            translated = time.monotonic()
            while not (goal.is_reached or stop.requested):
                before = self.copied
                self._copy_some(producer, consumer, goal, stop)
                advance(self.copied - before)
                if settings.groups and time.monotonic() - translated > _GROUPS_S:
                    translated = time.monotonic()
                    self._translate()
        if settings.groups:
            self._translate()

    def _starts(self) -> dict[Key, int]:
        keys = [
            (route.source, number)
            for route, numbers in self._partitions.items()
            for number in numbers
        ]
        earliest = offsets.list_offsets(self._source, dict.fromkeys(keys, offsets.EARLIEST))
        kind = offsets.LATEST if self._settings.starts_at_end else offsets.EARLIEST
        default = offsets.list_offsets(self._source, dict.fromkeys(keys, kind))
        group = self._settings.group
        committed = offsets.committed_offsets(self._source, group) if group else {}
        starts = {}
        for topic, number in keys:
            known = self._points[self._routes[topic]].next_offset(number)
            if known is None and (topic, number) in committed:
                known = committed[topic, number].offset
            start = default[topic, number].offset if known is None or known < 0 else known
            first = earliest[topic, number].offset
            if start < first:
                self._note(
                    f"{topic}-{number}: records {start} to {first - 1} were deleted before they were copied."
                )
            starts[topic, number] = max(start, first)
        return starts

    def _ends(self) -> dict[Key, int]:
        ends = offsets.list_offsets(
            self._source,
            dict.fromkeys(self._positions, offsets.LATEST),
            isolation_level=offsets.READ_COMMITTED,
        )
        return {key: row.offset for key, row in ends.items()}

    def _open_producer(self) -> Producer:
        settings: dict[str, str] = {
            "bootstrap.servers": self._target.bootstrap,
            "acks": "all",
            "enable.idempotence": "true",
            **self._settings.producer,
        }
        if self._settings.exactly_once:
            names = ",".join(sorted(f"{item.source}>{item.target}" for item in self._partitions))
            digest = hashlib.sha256(names.encode()).hexdigest()[:16]
            settings.setdefault("transactional.id", f"ottla-mirror-{digest}")
        return Producer(settings)

    def _copy_some(
        self, producer: Producer, consumer: RecordConsumer, goal: Goal, stop: StopSignals
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
                    self._reach(first, goal)
                    return
                with producer.transaction():
                    self._send_all(producer, first, goal)
                    self._fill(producer, consumer, goal, stop)
                    self._store(producer)
                break
            except TransactionAborted:
                if attempt == _ATTEMPTS:
                    raise
                self._read, self._last, self._count, self._failure = {}, {}, 0, None
                consumer.assign(self._positions)
                goal.assign(self._positions)
        self._finish()

    def _fill(
        self, producer: Producer, consumer: RecordConsumer, goal: Goal, stop: StopSignals
    ) -> None:
        deadline = time.monotonic() + self._settings.interval_s
        while not (goal.is_reached or stop.requested):
            events = (
                consumer.poll(_POLL_S, limit=_BATCH)
                if not self._count
                else (consumer.poll(0.02, limit=_BATCH))
            )
            self._send_all(producer, events, goal)
            is_idle = not events and self._count > 0
            if is_idle or self._count >= _RECORDS_MAX or time.monotonic() > deadline:
                return

    def _send_all(
        self, producer: Producer, events: list[ConsumedRecord | EndOfPartition], goal: Goal
    ) -> None:
        for record in events:
            if isinstance(record, EndOfPartition):
                goal.reach(record)
                continue
            if not goal.wants(record):
                continue
            key = record.topic, record.partition
            self._last[key] = producer.send(
                self._routes[record.topic].target,
                record.value,
                key=record.key,
                headers=list(record.headers) or None,
                partition=record.partition,
                timestamp=record.timestamp if record.timestamp > 0 else None,
                on_delivery=self._delivered,
            )
            self._read[key] = record.offset + 1
            self._count += 1

    def _delivered(self, _: RecordMetadata | None, error: Exception | None) -> None:
        self._failure = self._failure or error

    def _reach(self, events: list[ConsumedRecord | EndOfPartition], goal: Goal) -> None:
        for item in events:
            if isinstance(item, EndOfPartition):
                goal.reach(item)

    def _store(self, producer: Producer) -> None:
        """Wait for the records, then write the points that match them."""
        if not self._read:
            return
        producer.flush()
        if self._failure is not None:
            raise self._failure
        for (topic, number), next_offset in self._read.items():
            written = self._last[topic, number].result()
            route = self._routes[topic]
            key, value = Point(number, next_offset, written.offset + 1).encode(topic)
            producer.send(
                route.offsets_topic, value, key=key, partition=0, on_delivery=self._delivered
            )
        producer.flush()
        if self._failure is not None:
            raise self._failure

    def _finish(self) -> None:
        """Take over what is stored."""
        for (topic, number), next_offset in self._read.items():
            written = self._last[topic, number].result()
            point = Point(number, next_offset, written.offset + 1)
            self._points[self._routes[topic]].add(point)
            self._positions[topic, number] = next_offset
        if self._read and self._settings.group:
            self._show_position(self._settings.group)
        self.copied += self._count
        self._read, self._last, self._count = {}, {}, 0

    def _show_position(self, group: str) -> None:
        rows = {key: offsets.CommittedOffset(offset) for key, offset in self._read.items()}
        try:
            offsets.commit_offsets(self._source, group, rows)
        except ApiError as error:
            if error.code is not ErrorCode.UNKNOWN_MEMBER_ID:
                raise
            self._note(
                f"Group {group!r} has members: its offsets do not show this mirror's position."
            )

    def _translate(self) -> None:
        self.moved_groups = translate_groups(
            self._source, self._target, self._points, self._settings.groups
        )
