"""Clients that report each record as an event, for the check that no record was lost or reordered.

They do what VerifiableProducer and VerifiableConsumer of Apache Kafka do; the events have its names
and fields.
"""

import itertools
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ottla.base.errors import OttlaError
from ottla.client.raw.consumer import ConsumedRecord, RecordConsumer
from ottla.client.transport import TopicPartition
from ottla.tools.measuring.measured_producer import MeasuredProducer
from ottla.tools.measuring.pace import Pace
from ottla.tools.signals import StopSignals

# Takes the name and the fields of an event.
OnEvent = Callable[..., None]
_POLL_S = 0.1
_AT_ONCE = 500


def event_line(name: str, **fields: Any) -> str:
    """Return an event as JSON, with the time."""
    event = {"timestamp": time.time_ns() // 1_000_000, "name": name, **fields}
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False)


def text(data: bytes | None) -> str | None:
    """Return a key or a value as text."""
    return None if data is None else data.decode(errors="replace")


def _described(error: OttlaError) -> tuple[str, str]:
    return type(error).__name__, str(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class NumbersPlan:
    """Values are 0, 1, 2, …, up to `limit` (-1: until stopped), `rate` a second (0 or less: no
    limit).

    `prefix` is put before each value. Keys are 0 up to `repeating_keys`, again and again; without
    it, records have no key. `create_time` is the time of the first record in ms since 1970.
    """

    topic: str
    limit: int = -1
    rate: float = -1
    prefix: int | None = None
    repeating_keys: int | None = None
    create_time: int = -1


class NumbersRun:
    """Sends numbers, with an event for each; counts what was sent and acknowledged.

    `described` returns the class and the message of an error, for its event.
    """

    def __init__(
        self,
        plan: NumbersPlan,
        on_event: OnEvent,
        described: Callable[[OttlaError], tuple[str, str]] = _described,
    ) -> None:
        self._plan = plan
        self._on_event = on_event
        self._described = described
        self.sent = self.acked = 0
        self._start = time.monotonic()

    def run(self, producer: MeasuredProducer, stop: StopSignals) -> None:
        """Send until the limit or until stopped; OttlaError after a record that failed.

        The producer calls `report` for each record. Records that a stopped cluster does not
        acknowledge are dropped once `stop` has lost its patience.
        """
        self._start = time.monotonic()
        self._on_event("startup_complete")
        try:
            self._send(producer, stop)
            producer.flush()
        except OttlaError:
            producer.drop()
            raise
        except KeyboardInterrupt:
            producer.drop()

    def _send(self, producer: MeasuredProducer, stop: StopSignals) -> None:
        plan = self._plan
        create_time = plan.create_time
        # Reports are events, which do not wait for the next record.
        pace = Pace(plan.rate, producer.flush)
        for number in itertools.count():
            if stop.requested or (plan.limit >= 0 and number >= plan.limit):
                break
            value = str(number) if plan.prefix is None else f"{plan.prefix}.{number}"
            key = str(number % plan.repeating_keys).encode() if plan.repeating_keys else None
            timestamp = None
            if create_time > 0:
                timestamp = create_time
                # As in Kafka, the time since the start is added for every record.
                create_time += int((time.monotonic() - self._start) * 1000)
            self.sent += 1
            producer.send(plan.topic, value.encode(), key=key, timestamp=timestamp)
            pace.keep(self.sent)

    def report_totals(self) -> None:
        """Report the end, and the counts."""
        self._on_event("shutdown_complete")
        self._on_event("tool_data", sent=self.sent, acked=self.acked, target_throughput=self._plan.rate,
                       avg_throughput=self.records_per_second)  # fmt: skip

    @property
    def records_per_second(self) -> float:
        """The acknowledged records per second since the start."""
        return self.acked / max(time.monotonic() - self._start, 1e-3)

    def report(self, error: OttlaError | None, message: Any) -> None:
        """Report a record, as librdkafka's message, and the error if it was not delivered."""
        key, value, topic = text(message.key()), text(message.value()), self._plan.topic
        if error is None:
            self.acked += 1
            self._on_event("producer_send_success", key=key, value=value, offset=message.offset(),
                           topic=topic, partition=message.partition())  # fmt: skip
        else:
            kind, reason = self._described(error)
            self._on_event("producer_send_error", topic=topic, key=key, value=value,
                           exception=kind, message=reason)  # fmt: skip


class EventsOfConsumer:
    """Reads records as a member of a group, with events for records, commits and assignments."""

    def __init__(self, on_event: OnEvent, *, is_verbose: bool, stores: bool) -> None:
        self._on_event = on_event
        self._is_verbose = is_verbose
        self._stores = stores
        self._mine: set[TopicPartition] = set()

    def run(
        self, consumer: RecordConsumer, topics: Sequence[str], limit: int, stop: StopSignals
    ) -> None:
        """Read until `limit` records (-1: no limit) or until stopped.

        Positions are committed after each poll or, if `stores`, in the background.
        """
        consumer.subscribe(topics, self._change)
        count = 0
        while not stop.requested and (limit < 0 or count < limit):
            room = _AT_ONCE if limit < 0 else min(_AT_ONCE, limit - count)
            events = consumer.poll(_POLL_S, limit=room)
            records = [item for item in events if isinstance(item, ConsumedRecord)]
            if records:
                count += len(records)
                positions = self._report(records)
                if self._stores:
                    consumer.store(positions)
                else:
                    self._commit(consumer, positions)

    def report_end(self, *, is_stopped: bool = False) -> None:
        """Report that the partitions are revoked, and the end; the consumer is closed.

        A Java program that a signal stops (`is_stopped`) reports the request first. Otherwise the
        exit of the program is the request.
        """
        if self._mine:
            self._change(set())
        names = ("shutdown_complete", "shutdown_requested")
        for name in reversed(names) if is_stopped else names:
            self._on_event(name)

    def _change(self, partitions: set[TopicPartition]) -> None:
        mine = self._mine
        for kind, keys in (("assigned", partitions - mine), ("revoked", mine - partitions)):
            if keys:
                rows = [{"topic": topic, "partition": number} for topic, number in sorted(keys)]
                self._on_event(f"partitions_{kind}", partitions=rows)
        mine.clear()
        mine.update(partitions)

    def _report(self, records: list[ConsumedRecord]) -> dict[TopicPartition, int]:
        """Report the records, and return the positions behind them."""
        ranges: dict[TopicPartition, list[int]] = {}
        for record in records:
            if self._is_verbose:
                self._on_event("record_data", key=text(record.key), value=text(record.value),
                               topic=record.topic, partition=record.partition,
                               offset=record.offset)  # fmt: skip
            ranges.setdefault((record.topic, record.partition), []).append(record.offset)
        rows = [
            {"topic": topic, "partition": number, "count": len(span), "minOffset": span[0],
             "maxOffset": span[-1]}
            for (topic, number), span in ranges.items()
        ]  # fmt: skip
        self._on_event("records_consumed", count=len(records), partitions=rows)
        return {key: span[-1] + 1 for key, span in ranges.items()}

    def _commit(self, consumer: RecordConsumer, positions: dict[TopicPartition, int]) -> None:
        failure: dict[str, str] = {}
        try:
            consumer.commit(positions)
        except OttlaError as error:
            failure["error"] = str(error)
        listed = [
            {"topic": topic, "partition": number, "offset": offset}
            for (topic, number), offset in positions.items()
        ]
        self._on_event("offsets_committed", offsets=listed, **failure, success=not failure)
