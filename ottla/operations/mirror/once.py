"""The copy of a topic under a new name in its cluster: partitions and options, optionally the
records, which are compressed with lz4. The console's pages and its REST API run it.

Not done: exactly once. A copy that fails in between leaves the target with a part of the records.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ottla.base.errors import ConfigError
from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from ottla.operations.changes import Change
from ottla.operations.mirror.copying import Mirror, MirrorSettings
from ottla.operations.mirror.routes import Route
from ottla.operations.mirror.targets import target_options
from ottla.operations.survey.connections import ClusterConnection

_PRODUCER = {"compression.type": "lz4", "linger.ms": "20"}


def never() -> bool:
    """Return False: the copy is not cancelled."""
    return False


def ignore(_: int) -> None:
    """Ignore the progress of a copy."""


@dataclass(frozen=True, slots=True)
class RecordCopy:
    """A copy with records.

    `permit` raises an error if the user may not read all records of a topic. `before` is called
    when the target exists, before its first record. `advance` receives numbers of copied records;
    `cancelled` is polled. Records of open and aborted transactions are left out unless
    `is_read_committed` is False.
    """

    permit: Callable[[str], None]
    before: Callable[[], None]
    advance: Callable[[int], None] = ignore
    cancelled: Callable[[], bool] = never
    is_read_committed: bool = True


def copy_topic(
    connection: ClusterConnection, source: str, target: str, records: RecordCopy | None = None
) -> Change:
    """Create `target` with the partitions and overrides of `source`, optionally with its records.

    Raises ApiError TOPIC_ALREADY_EXISTS if the target exists, and the error of `permit`, before
    anything is created.
    """
    if records is not None:
        records.permit(source)
    if source == target:
        raise ConfigError(f"{target!r} is the topic itself: choose another name for the copy")
    with connection.brokers() as brokers:
        after = _create(brokers, source, target, has_records=records is not None)
        connection.forget()
        notes: tuple[str, ...] = (f"copied from {source}",)
        if records is not None:
            records.before()
            notes += tuple(_copy_records(connection, brokers, Route(source, target), records))
    return Change(connection.name, "topic.copy", target, after=after, notes=notes)


def _create(brokers: Brokers, source: str, target: str, *, has_records: bool) -> Mapping[str, str]:
    described = topics.describe_topic(brokers, source)
    options = target_options(brokers, source, has_records=has_records, keeps_replication=True)
    created = topics.create_topic(
        brokers,
        target,
        partitions=len(described.partitions),
        replication_factor=described.replication_factor,
        config=options,
    )
    numbers = {
        "partitions": str(created.partitions),
        "replication_factor": str(created.replication_factor),
    }
    return {**numbers, **options}


def _copy_records(
    connection: ClusterConnection, brokers: Brokers, route: Route, records: RecordCopy
) -> list[str]:
    """Copy the records; return the notes of the change."""
    timeout_ms = str(int(connection.timeout_s * 1000))
    settings = MirrorSettings(
        has_points=False,
        is_read_committed=records.is_read_committed,
        patience_s=_patience_s(connection),
        producer={**_PRODUCER, "delivery.timeout.ms": timeout_ms},
    )
    notes: list[str] = []
    mirror = Mirror(brokers, brokers, [route], settings, notes.append)
    mirror.run(_Stop(connection, records.cancelled), records.advance)
    if not records.is_read_committed:
        notes.append("also uncommitted records")
    return [f"{mirror.copied} records" + (", cancelled" if records.cancelled() else ""), *notes]


def _patience_s(connection: ClusterConnection) -> float:
    # Looking up a new leader takes librdkafka some of its retries.
    return 2 * connection.timeout_s


class _Stop:
    """Ends a copy if the caller cancels it; raises Closed if the connection is closed."""

    def __init__(self, connection: ClusterConnection, cancelled: Callable[[], bool]) -> None:
        self._connection = connection
        self._cancelled = cancelled

    @property
    def requested(self) -> bool:
        """True if the copy is cancelled."""
        self._connection.pause(0)
        return self._cancelled()

    def wait(self, seconds: float) -> None:
        """Pause."""
        self._connection.pause(seconds)
