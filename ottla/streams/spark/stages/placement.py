"""Finds keys in partitions that Kafka's default partitioner would not choose.

Topics that are read together must be partitioned alike. The producers of Ottla and the Java client
choose a key's partition by its murmur2 hash. librdkafka (confluent-kafka and most clients other
than Java's) uses CRC-32, unless it is configured with `partitioner=murmur2_random`. A join of such
topics misses rows without an error. Therefore the first keys of each batch are compared with the
partition that murmur2 chooses, and each process reports each misplaced topic once.
"""

import logging
from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa

from ottla.wire.records.murmur2 import murmur2

_log = logging.getLogger(__name__)

# Keys are hashed one by one: 13 microseconds a batch. With another partitioner and two partitions,
# one batch of 256 has all sampled keys in their murmur2 partitions by chance; with more partitions
# it is rarer.
SAMPLE = 8
# Longer keys are not hashed.
_KEY_BYTES_MAX = 1024


@dataclass
class KeyPlacement:
    """The number of keys that one process has checked, and the number of misplaced ones."""

    checked: Counter[str] = field(default_factory=Counter)
    """The number of compared keys, by topic."""
    misplaced: Counter[str] = field(default_factory=Counter)
    """The number of keys in another partition than murmur2 chooses, by topic."""

    def check(self, topic: str, partition: int, keys: pa.Array, partition_count: int) -> int:
        """Compare the first keys of a partition's batch; log a warning for the first misplaced key
        of a topic. Returns the number of misplaced keys among them.
        """
        before = self.misplaced[topic]
        head = [key for key in keys.slice(0, SAMPLE).to_pylist() if key is not None]
        for key in head:
            if len(key) > _KEY_BYTES_MAX:
                continue
            self.checked[topic] += 1
            expected = (murmur2(key) & 0x7FFFFFFF) % partition_count
            if expected != partition:
                self.misplaced[topic] += 1
                if self.misplaced[topic] == 1:
                    _warn(topic, partition, key, expected)
        return self.misplaced[topic] - before


def _warn(topic: str, partition: int, key: bytes, expected: int) -> None:
    _log.warning(
        "Topic %s is read together with other topics by key, but key %r is in partition %d, and Kafka's default "
        "partitioner (murmur2) puts it into partition %d. Rows with such keys do not join, "
        "so results are wrong. Either configure the topic's producers with murmur2 (librdkafka, "
        "confluent-kafka: 'partitioner': 'murmur2_random') and write the topic again, or read it with "
        "builder.stream(%r).repartition(), followed by .to_table() for a table. See docs/partitioning.md.",
        topic,
        key,
        partition,
        expected,
        topic,
    )


# Shared by the process: a worker makes a SourceStage for each of its tasks.
PROCESS_PLACEMENT = KeyPlacement()
