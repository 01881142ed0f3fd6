"""What a worker asks the brokers: committed positions, the ends of changelogs, and topics."""

from collections.abc import Iterable, Mapping

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.client import transport
from ottla.client.admin.configs import Resource, ResourceType, read_config
from ottla.client.admin.offsets import EARLIEST, LATEST, list_offsets
from ottla.client.admin.records import delete_records
from ottla.client.admin.topics import describe_topic
from ottla.client.brokers import Brokers
from ottla.client.group.offset_requests import fetch_offsets
from ottla.client.records import OffsetAndMetadata, TopicPartition
from ottla.streams.local.layout import TaskLayout
from ottla.streams.local.running import Offsets
from ottla.streams.model import committed_times

_MAX_MESSAGE_BYTES = "max.message.bytes"


class TopicPositions:
    """The committed positions of an application's inputs.

    The requests to the brokers are for one thread, and all other methods are for one thread.
    `resets` has the start (earliest or latest) of the topics that have one of their own.
    """

    def __init__(
        self, brokers: Brokers, group_id: str, resets: Mapping[str, str], default_reset: str
    ) -> None:
        self._brokers = brokers
        self._group_id = group_id
        self._resets = resets
        self._default_reset = default_reset
        self._committed: Offsets = {}

    def committed(self, keys: Iterable[TopicPartition]) -> Offsets | None:
        """Read committed positions; return None if an open transaction may change them."""
        wanted = list(keys)
        found = self._brokers.retry(lambda: self._stable(wanted)) if wanted else {}
        if found is None:
            return None
        return {key: (row.offset, row.metadata) for key, row in found.items()}

    def _stable(self, keys: list[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata] | None:
        try:
            return fetch_offsets(self._brokers, self._group_id, keys, require_stable=True)
        except ApiError as error:
            if error.code is ErrorCode.UNSTABLE_OFFSET_COMMIT:
                return None
            raise

    def adopt(self, keys: Iterable[TopicPartition], offsets: Offsets) -> None:
        """Note the committed positions of a task that is opened."""
        for key in keys:
            self._committed.pop(key, None)
        self._committed |= offsets

    def note(self, offsets: Offsets) -> None:
        """Note what this worker has committed."""
        self._committed |= offsets

    def starts(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where to read from: the committed position, or the start of the topic's option."""
        return {key: self._start(key) for key in keys}

    def _start(self, key: TopicPartition) -> int:
        if key in self._committed:
            return self._committed[key][0]
        reset = self._resets.get(key.topic, self._default_reset)
        return transport.LATEST if reset == "latest" else transport.EARLIEST

    def times(self, keys: Iterable[TopicPartition]) -> dict[str, int]:
        """Return the times that a task had at its last commit."""
        times: dict[str, int] = {}
        for key in keys:
            if key in self._committed:
                for name, value in committed_times.decode(self._committed[key][1]).items():
                    times[name] = max(value, times.get(name, value))
        return times

    def partitions(self, topics: Iterable[str]) -> list[TopicPartition]:
        """Return all partitions of topics."""
        rows = {topic: describe_topic(self._brokers, topic).partitions for topic in topics}
        return [
            TopicPartition(topic, partition)
            for topic, partitions in rows.items()
            for partition in range(len(partitions))
        ]

    def spans(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        """Return the first offset and the high watermark of partitions."""
        return spans_of(self._brokers, keys)

    def max_message_bytes(self, topic: str) -> int:
        """Return the maximum size of a batch of a topic."""
        resource = Resource(ResourceType.TOPIC, topic)
        (entry,) = read_config(self._brokers, resource, names=[_MAX_MESSAGE_BYTES])
        return int(entry.value or "0")

    def purgeable(self, layout: TaskLayout) -> dict[tuple[str, int], int]:
        """Return the committed positions in repartition topics."""
        changelogs = {key.topic for task in layout.inputs for key in layout.changelogs(task)}
        repartitions = {topic.name for topic in layout.topics} - changelogs
        return {
            key: offset
            for key, (offset, _) in self._committed.items()
            if key.topic in repartitions and offset > 0
        }

    def purge(self, before: Mapping[tuple[str, int], int]) -> None:
        """Delete the records before these offsets."""
        try:
            delete_records(self._brokers, before)
        except ApiError as error:
            # Another worker has deleted more.
            if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
        except OttlaError:
            # The next round deletes them.
            return

    def close(self) -> None:
        """Close the connections."""
        self._brokers.close()


def spans_of(
    brokers: Brokers, keys: Iterable[TopicPartition]
) -> dict[TopicPartition, tuple[int, int]]:
    """Return the first offset and the high watermark of partitions."""
    wanted = list(keys)
    if not wanted:
        return {}
    firsts = list_offsets(brokers, dict.fromkeys(wanted, EARLIEST))
    ends = list_offsets(brokers, dict.fromkeys(wanted, LATEST))
    return {key: (firsts[key].offset, ends[key].offset) for key in wanted}
