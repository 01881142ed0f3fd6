"""What a topic accepts, checked before records are sent: a broker refuses whole batches.

The checks are those of Kafka's LogValidator for a record: its size, its time, and its key in a
compacted topic. A caller that may not read the topic's configuration leaves them to the broker.
"""

from collections.abc import Callable, Mapping

from ottla.base.errors import ApiError
from ottla.client.admin.configs import Resource, ResourceType, read_config
from ottla.client.brokers import Brokers
from ottla.tools.files.rows import LoadedRecord, RefusedRow

# Of a batch of one record: its header, and the varints of the record.
OVERHEAD_BYTES = 100
_SIZE = "max.message.bytes"
_BEFORE = "message.timestamp.before.max.ms"
_AFTER = "message.timestamp.after.max.ms"
_TYPE = "message.timestamp.type"
_POLICY = "cleanup.policy"
_UNLIMITED = 2**63 - 1


class TopicLimits:
    """The limits of a topic; `values` are the options that are known."""

    def __init__(self, topic: str, partitions: int, values: Mapping[str, str]) -> None:
        self.topic = topic
        self.partitions = partitions
        self._values = values
        # The largest batch, after compression.
        self.batch_bytes = int(values.get(_SIZE, _UNLIMITED))
        is_append_time = values.get(_TYPE) == "LogAppendTime"
        before, after = (
            _UNLIMITED if is_append_time else int(values.get(name, _UNLIMITED))
            for name in (_BEFORE, _AFTER)
        )
        self._before_ms, self._after_ms = before, after
        self._is_compacted = "compact" in values.get(_POLICY, "")
        # A smaller record needs no exact size.
        self._size = self.batch_bytes - OVERHEAD_BYTES

    def refusal(
        self,
        record: LoadedRecord,
        size: int,
        now_ms: int,
        batch_size: Callable[[LoadedRecord], int],
    ) -> RefusedRow | None:
        """Return the reason why the topic refuses a record; None if it accepts it.

        `size` is an upper bound of the record's size, and `batch_size` returns the exact size as a
        batch, which is compressed.
        """
        key, _, timestamp, partition, _ = record
        if partition is not None and not 0 <= partition < self.partitions:
            reason = (
                f"topic {self.topic!r} has no partition {partition}: the last one is "
                f"{self.partitions - 1}"
            )
            return RefusedRow(reason, "partition")
        if key is None and self._is_compacted:
            return RefusedRow(f"topic {self.topic!r} is compacted, and the record has no key")
        if timestamp is not None and timestamp >= 0:
            age_ms = now_ms - timestamp
            if age_ms > self._before_ms or -age_ms > self._after_ms:
                return self._time_refusal(timestamp, _BEFORE if age_ms > 0 else _AFTER)
        if size > self._size:
            exact = batch_size(record)
            if exact > self.batch_bytes:
                return RefusedRow(
                    f"the record has {exact} bytes, more than {_SIZE} of topic {self.topic!r} "
                    f"({self.batch_bytes}): raise that, or compress with --compression"
                )
        return None

    def _time_refusal(self, timestamp: int, name: str) -> RefusedRow:
        return RefusedRow(
            f"the time of the record, {timestamp} ms, is outside of {name} of topic "
            f"{self.topic!r} ({self._values[name]})"
        )


def limits_of(brokers: Brokers, topic: str, partitions: int) -> TopicLimits:
    """Return the limits of a topic, as far as the caller may read them."""
    names = [_SIZE, _BEFORE, _AFTER, _TYPE, _POLICY]
    try:
        entries = read_config(brokers, Resource(ResourceType.TOPIC, topic), names=names)
    except ApiError:
        entries = []
    values = {entry.name: entry.value for entry in entries if entry.value}
    return TopicLimits(topic, partitions, values)
