"""Copy a topic: partitions and options, optionally its records.

Not done: exactly once. A copy that fails in between leaves the target with a part of the records.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ottla.base.errors import ConfigError
from ottla.client.admin import topics as admin
from ottla.client.admin.configs import ConfigSource, Resource, ResourceType
from ottla.client.admin.offsets import EARLIEST, LATEST, FoundOffset
from ottla.client.raw.producer import RecordProducer
from ottla.console.model.messages.masking import MaskingRule, require_unmasked
from ottla.console.model.messages.scanning import Scan, Span
from ottla.console.model.messages.values import Cancelled, never
from ottla.operations.changes import Change
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.metadata import Key, leaders_of, read_topic
from ottla.operations.survey.offsets import find_offsets
from ottla.operations.survey.options import read_options
from ottla.operations.survey.records import FetchLimits

Report = Callable[[int, int], None]


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
        for row in read_options(connection, Resource(ResourceType.TOPIC, source))
        if row.source == ConfigSource.DYNAMIC_TOPIC_CONFIG and row.value is not None
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
    options = {**connection.producer_options(), "linger.ms": 20, "compression.type": "lz4"}
    written = 0
    with RecordProducer(connection.bootstrap, options) as producer:
        while not scan.is_done and not cancelled():
            for part in scan.step():
                for record in part.records:
                    producer.send(
                        target,
                        record.value,
                        key=record.key,
                        partition=part.partition,
                        headers=record.headers,
                        timestamp=max(record.timestamp, 0),
                    )
                    written += 1
            on_progress(scan.scanned, total)
    return written


def _spans(starts: dict[Key, FoundOffset], ends: dict[Key, FoundOffset]) -> dict[int, Span]:
    return {
        key[1]: Span(starts[key].offset, row.offset)
        for key, row in ends.items()
        if key in starts and starts[key].offset < row.offset
    }
