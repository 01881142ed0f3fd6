"""The consumers of a worker: of its tasks' inputs, and of changelogs and global topics.

librdkafka reads partitions that this process assigns to it; it is no member of a group.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ottla.client import transport
from ottla.client.records import TopicPartition
from ottla.streams.local.ports import EnginePorts
from ottla.streams.model.errors import StreamsError
from ottla.streams.model.raw import TopicRecord

_CONSUMER = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    # An offset that retention has deleted is an error, not a reason to skip or repeat records.
    "auto.offset.reset": "error",
    # The end of a partition is reported with an empty response.
    "fetch.wait.max.ms": 50,
}


class Ended(NamedTuple):
    """The report that a partition has no record at or after an offset yet."""

    key: TopicPartition
    offset: int


class Arrived(NamedTuple):
    """A record of a partition."""

    key: TopicPartition
    record: TopicRecord


class PartitionReader:
    """A consumer of assigned partitions. For one thread."""

    def __init__(
        self,
        ports: EnginePorts,
        properties: Mapping[str, Any],
        group_id: str,
        *,
        is_committed: bool,
    ) -> None:
        isolation = "read_committed" if is_committed else "read_uncommitted"
        self._consumer = ports.open_consumer(
            {
                **properties,
                **transport.QUEUE,
                **_CONSUMER,
                "group.id": group_id,
                "isolation.level": isolation,
            }
        )
        self._paused: set[TopicPartition] = set()
        self.assigned: set[TopicPartition] = set()

    def add(self, starts: Mapping[TopicPartition, int]) -> None:
        """Read these partitions, too, from these offsets."""
        if starts:
            self._consumer.incremental_assign(transport.partitions(starts))
            self.assigned |= starts.keys()

    def remove(self, keys: Iterable[TopicPartition]) -> None:
        """Stop reading partitions."""
        left = self.assigned.intersection(keys)
        if left:
            self._consumer.incremental_unassign(transport.partitions(dict.fromkeys(left, 0)))
            self.assigned -= left
            self._paused -= left

    def end(self, key: TopicPartition) -> int | None:
        """Return the high watermark in the last response for a partition; None before the first."""
        (partition,) = transport.partitions({key: 0})
        _, high = self._consumer.get_watermark_offsets(partition, cached=True)
        return high if high >= 0 else None

    def set_paused(self, keys: Iterable[TopicPartition]) -> None:
        """Pause these partitions, and resume all others."""
        wanted = self.assigned.intersection(keys)
        pause, resume = wanted - self._paused, self._paused - wanted
        if pause:
            self._consumer.pause(transport.partitions(dict.fromkeys(pause, 0)))
        if resume:
            self._consumer.resume(transport.partitions(dict.fromkeys(resume, 0)))
        self._paused = wanted

    def poll(self, most: int, timeout_s: float) -> list[Arrived | Ended]:
        """Return up to `most` records and reports; StreamsError if an offset does not exist."""
        results: list[Arrived | Ended] = []
        for message in self._consumer.consume(most, timeout_s):
            key = TopicPartition(message.topic(), message.partition())
            error = message.error()
            if error is None:
                record = TopicRecord(
                    message.key(),
                    message.value(),
                    message.timestamp()[1],
                    message.headers() or (),
                    key.partition,
                    message.offset(),
                )
                results.append(Arrived(key, record))
            elif key in self.assigned and transport.is_end(message):
                results.append(Ended(key, message.offset()))
            elif error.code() == transport.NO_POSITION:
                raise StreamsError(
                    f"the committed position in {key.topic}-{key.partition} does not exist any "
                    f"more: {error.str()}. Run `ottla streams reset`, or reset the group's offsets"
                )
            elif not transport.is_transient(error) and not transport.is_end(message):
                raise transport.translate(error)
        return [row for row in results if row.key in self.assigned]

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()
