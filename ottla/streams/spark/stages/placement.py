"""Finds keys in partitions that Kafka's default partitioner would not choose.

Topics that are read together must be partitioned alike. The producers of Ottla and the Java client
choose a key's partition by its murmur2 hash. librdkafka (confluent-kafka and most clients other
than Java's) uses CRC-32, unless it is configured with `partitioner=murmur2_random`. A join of such
topics misses rows without an error. If such a topic gains partitions, its records may no longer go
to the task that has the state of their keys. Therefore the first keys of each batch are compared
with the partition that murmur2 chooses, and each process reports each misplaced topic once.
"""

import logging
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from ottla.wire.records.murmur2 import murmur2

_log = logging.getLogger(__name__)

# Keys are hashed one by one: 13 microseconds a batch. With another partitioner and two partitions,
# one batch of 256 has all sampled keys in their murmur2 partitions by chance; with more partitions
# it is rarer.
SAMPLE = 8
# Longer keys are not hashed.
_KEY_BYTES_MAX = 1024


class PartitionCounts(NamedTuple):
    """The number of partitions of a topic, and the number of tasks that read it.

    `has_moved` is True if records go to the tasks of their keys, because the topic did not have
    this number of partitions at the first start.
    """

    partitions: int
    tasks: int
    has_moved: bool = False


@dataclass
class KeyPlacement:
    """The number of keys that one process has checked, and the number of misplaced ones."""

    checked: Counter[str] = field(default_factory=Counter)
    """The number of compared keys, by topic."""
    misplaced: Counter[str] = field(default_factory=Counter)
    """The number of keys in another partition than murmur2 chooses, by topic."""
    _warned: set[tuple[str, bool]] = field(default_factory=set)

    def check(self, topic: str, partition: int, keys: pa.Array, counts: PartitionCounts) -> int:
        """Compare the first keys of a partition's batch; log a warning for the first misplaced key
        of a topic. Returns the number of misplaced keys among them.

        A key may be in the partition that was chosen before the topic gained partitions.
        """
        before = self.misplaced[topic]
        head = [key for key in keys.slice(0, SAMPLE).to_pylist() if key is not None]
        for key in head:
            if len(key) > _KEY_BYTES_MAX:
                continue
            self.checked[topic] += 1
            hashed = murmur2(key) & 0x7FFFFFFF
            expected = hashed % counts.partitions
            if partition not in (expected, hashed % counts.tasks):
                self.misplaced[topic] += 1
                if (topic, counts.has_moved) not in self._warned:
                    self._warned.add((topic, counts.has_moved))
                    warn = _warn_of_moved_keys if counts.has_moved else _warn
                    warn(topic, (key, partition, expected), counts)
        return self.misplaced[topic] - before


_Placed = tuple[bytes, int, int]
"""A key, its partition, and the partition that murmur2 chooses."""


def _warn(topic: str, placed: _Placed, _counts: PartitionCounts) -> None:
    _log.warning(
        "Topic %s is read together with other topics by key, but key %r is in partition %d, and Kafka's default "
        "partitioner (murmur2) puts it into partition %d. Rows with such keys do not join, "
        "so results are wrong. Either configure the topic's producers with murmur2 (librdkafka, "
        "confluent-kafka: 'partitioner': 'murmur2_random') and write the topic again, or read it with "
        "builder.stream(%r).repartition(), followed by .to_table() for a table. See docs/partitioning.md.",
        topic,
        *placed,
        topic,
    )


def _warn_of_moved_keys(topic: str, placed: _Placed, counts: PartitionCounts) -> None:
    _log.warning(
        "Topic %s has %d partitions, and %d tasks have its state. Its records therefore go to the tasks that Kafka's "
        "default partitioner (murmur2) chooses for their keys, but key %r is in partition %d, and murmur2 puts it into "
        "partition %d. The state of such keys may be in another task, so their aggregations and tables start again. "
        "Either add partitions until their number is a multiple of %d, or reset the application (ottla streams reset) "
        "and read the topic with builder.stream(%r).repartition(), followed by .to_table() for a table. "
        "See docs/partitioning.md.",
        topic,
        counts.partitions,
        counts.tasks,
        *placed,
        counts.tasks,
        topic,
    )


# Shared by the process: a worker makes a SourceStage for each of its tasks.
PROCESS_PLACEMENT = KeyPlacement()
