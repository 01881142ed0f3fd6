"""Copy a topic: partitions and options, optionally its records.

Not done: exactly once. A copy that fails in between leaves the target with a part of the records.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ottla.base.errors import ConfigError, OttlaError
from ottla.client.admin import topics as admin
from ottla.client.admin.configs import ConfigSource, ResourceType
from ottla.client.admin.offsets import EARLIEST, LATEST, FoundOffset
from ottla.client.transport import LibrdkafkaError, translate
from ottla.console.model.connections import ClusterConnection
from ottla.console.model.messages.masking import MaskingRule, require_unmasked
from ottla.console.model.messages.scanning import Scan, Scanned, Span
from ottla.console.model.messages.values import Cancelled, never
from ottla.console.model.requests.metadata import Key, leaders_of, read_topic
from ottla.console.model.requests.offsets import find_offsets
from ottla.console.model.requests.options import read_options
from ottla.console.model.requests.records import FetchLimits
from ottla.operations.changes import Change

Report = Callable[[int, int], None]

_FLUSH_S = 1.0


def ignore_progress(copied: int, total: int) -> None:
    """Ignore the progress of a copy."""


@dataclass(frozen=True, slots=True)
class RecordCopy:
    """A copy with records: `masking` are the rules that apply to the user.

    `before` is called when the target exists, before its first record.
    """

    masking: Sequence[MaskingRule]
    before: Callable[[], None]


def copy_topic(
    connection: ClusterConnection,
    source: str,
    target: str,
    *,
    records: RecordCopy | None = None,
    cancelled: Cancelled = never,
    on_progress: Report = ignore_progress,
) -> Change:
    """Create `target` with the partitions and overrides of `source`, optionally with its records.

    Records keep partition, key, headers and timestamp, not their offsets; uncommitted ones are left
    out. `cancelled` is polled between batches; `on_progress` receives passed and all offsets.
    ApiError TOPIC_ALREADY_EXISTS if the target exists; MaskedTopic if the user may not read all of
    the records.
    """
    if records is not None:
        require_unmasked(records.masking, source, "copy its records")
    if source == target:
        raise ConfigError(f"{target!r} is the topic itself: choose another name for the copy")
    topic = read_topic(connection, source)
    overrides = {
        row.name: row.value
        for row in read_options(connection, ResourceType.TOPIC, source)
        if row.config_source == ConfigSource.DYNAMIC_TOPIC_CONFIG and row.value is not None
    }
    with connection.brokers() as brokers:
        created = admin.create_topic(
            brokers,
            target,
            partitions=len(topic.partitions),
            replication_factor=topic.replication_factor,
            config=overrides,
        )
    connection.forget()
    after = {
        "partitions": str(created.partitions),
        "replication_factor": str(created.replication_factor),
        **overrides,
    }
    notes: tuple[str, ...] = (f"copied from {source}",)
    if records is not None:
        records.before()
        copied = _copy_records(connection, topic, target, cancelled, on_progress)
        notes = (*notes, f"{copied} records" + (", cancelled" if cancelled() else ""))
    return Change(connection.name, "topic.copy", target, after=after, notes=notes)


def _copy_records(
    connection: ClusterConnection,
    topic: admin.Topic,
    target: str,
    cancelled: Cancelled,
    on_progress: Report,
) -> int:
    leaders = leaders_of(topic)
    starts = find_offsets(connection, leaders, EARLIEST)
    ends = find_offsets(connection, leaders, LATEST, is_committed=True)
    limits = FetchLimits(is_committed=True)
    scan = Scan(connection, topic.name, _spans(starts, ends), limits)
    total = sum(span.end - span.start for span in scan.spans.values())
    writer = _Writer(connection, target)
    try:
        while not scan.is_done and not cancelled():
            for part in scan.step():
                writer.write(part)
            on_progress(scan.scanned, total)
        writer.flush()
    finally:
        writer.close()
    return writer.written


def _spans(starts: dict[Key, FoundOffset], ends: dict[Key, FoundOffset]) -> dict[int, Span]:
    return {
        key[1]: Span(starts[key].offset, row.offset)
        for key, row in ends.items()
        if key in starts and starts[key].offset < row.offset
    }


class _Writer:
    """Writes records to the same partitions of another topic; raises the first failure."""

    def __init__(self, connection: ClusterConnection, topic: str) -> None:
        self.written = 0
        self._topic = topic
        self._failure: OttlaError | None = None
        self._producer = connection.open_producer({"linger.ms": 20, "compression.type": "lz4"})

    def write(self, part: Scanned) -> None:
        for record in part.records:
            while True:
                try:
                    self._producer.produce(
                        self._topic,
                        record.value,
                        record.key,
                        part.partition,
                        on_delivery=self._delivered,
                        timestamp=max(record.timestamp, 0),
                        headers=list(record.headers) or None,
                    )
                    break
                except BufferError:
                    self._producer.poll(_FLUSH_S)
                except LibrdkafkaError as error:
                    raise translate(error.args[0]) from error
            self.written += 1
        self._producer.poll(0)
        self._raise_failure()

    def flush(self) -> None:
        while self._producer.flush(_FLUSH_S):
            self._raise_failure()
        self._raise_failure()

    def close(self) -> None:
        self._producer.purge()
        self._producer.flush(_FLUSH_S)

    def _delivered(self, error: Any, message: object) -> None:
        if error is not None and self._failure is None:
            self._failure = translate(error)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure
