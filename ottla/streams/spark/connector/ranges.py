"""The offset ranges that a batch reads: limits, splits, and the JSON form in Spark's checkpoint.

Pure functions from offsets to offsets. The JSON has the format of Spark's Kafka connector,
{"topic": {"0": 23}}, and the ids of the topics under a key that no topic has: "@topic_ids". Other
keys with @ are ignored, as Spark ignores unknown keys of its own files. Limits follow Spark's
KafkaOffsetReader: each partition gets a share in proportion to its new records.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ottla.base.uuids import ZERO_UUID, parse_uuid, uuid_text
from ottla.client.admin.offsets import TopicPartition

Offsets = dict[TopicPartition, int]
TopicIds = Mapping[str, bytes]
JsonOffsets = dict[str, dict[str, Any]]
StoredOffsets = Mapping[str, Mapping[str, Any]]
"""Offsets in JSON, as Spark passes them from its checkpoint."""

_NO_TOPIC = "@"
_TOPIC_IDS = "@topic_ids"


@dataclass(frozen=True)
class OffsetRange:
    """The offsets of one partition from `start` up to but not including `end`."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """The number of offsets; there may be fewer records."""
        return self.end - self.start


def to_json(
    offsets: Mapping[TopicPartition, int], topic_ids: TopicIds | None = None
) -> JsonOffsets:
    """Return the offsets by topic and partition, and the known ids of these topics, in a fixed
    order.
    """
    results: JsonOffsets = {}
    for (topic, partition), offset in sorted(offsets.items()):
        results.setdefault(topic, {})[str(partition)] = offset
    # Brokers that are older than topic ids return zeros.
    known = {topic: (topic_ids or {}).get(topic, ZERO_UUID) for topic in results}
    ids = {topic: uuid_text(known[topic]) for topic in known if known[topic] != ZERO_UUID}
    return results | {_TOPIC_IDS: ids} if ids else results


def from_json(offsets: StoredOffsets) -> Offsets:
    """Return the offsets that `to_json` encoded."""
    return {
        (topic, int(partition)): offset
        for topic, partitions in offsets.items()
        for partition, offset in partitions.items()
        if not topic.startswith(_NO_TOPIC)
    }


def topic_ids_in(offsets: StoredOffsets) -> dict[str, bytes]:
    """Return the topic ids that `to_json` encoded; empty for offsets of earlier versions."""
    return {topic: parse_uuid(text) for topic, text in offsets.get(_TOPIC_IDS, {}).items()}


def created_again(former: TopicIds, current: TopicIds) -> frozenset[str]:
    """Return the topics that have another id than before: offsets of the former topic say nothing
    about them.
    """
    shared = former.keys() & current.keys()
    return frozenset(topic for topic in shared if former[topic] != current[topic])


def least(*limits: int | None) -> int | None:
    """Return the smallest of the limits that are not None."""
    return min((limit for limit in limits if limit is not None), default=None)


def limit_offsets(start: Offsets, end: Offsets, max_rows: int) -> Offsets:
    """Return an end at most about `max_rows` after the start, shared in proportion to the new
    records.

    Shares below one row are rounded up, so that every partition with records advances.
    """
    sizes = {key: max(offset - start.get(key, offset), 0) for key, offset in end.items()}
    total = sum(sizes.values())
    if total <= max_rows:
        return end
    limited = {}
    for key, offset in end.items():
        share = max_rows * sizes[key] / total
        rows = math.ceil(share) if share < 1 else math.floor(share)
        limited[key] = min(offset, start.get(key, offset) + rows)
    return limited


def split(
    ranges: Sequence[OffsetRange], min_partitions: int | None, max_records: int | None
) -> list[OffsetRange]:
    """Split ranges into at least `min_partitions` ranges of at most `max_records`; keeps their
    order.
    """
    filled = [offset_range for offset_range in ranges if offset_range.size > 0]
    if max_records is not None:
        filled = [
            part
            for offset_range in filled
            for part in _cut(offset_range, -(-offset_range.size // max_records))
        ]
    if min_partitions is None or min_partitions <= len(filled):
        return filled
    total = sum(offset_range.size for offset_range in filled)
    # The last shares receive the remainder of rounding, so that the minimum is reached if there are
    # enough rows.
    part_counts = [
        max(1, math.ceil(min_partitions * offset_range.size / total)) for offset_range in filled
    ]
    return [
        part
        for offset_range, count in zip(filled, part_counts, strict=True)
        for part in _cut(offset_range, count)
    ]


def _cut(offset_range: OffsetRange, count: int) -> Iterable[OffsetRange]:
    count = min(count, offset_range.size)
    bounds = [offset_range.start + offset_range.size * index // count for index in range(count + 1)]
    for start, end in itertools.pairwise(bounds):
        yield OffsetRange(offset_range.topic, offset_range.partition, start, end)
