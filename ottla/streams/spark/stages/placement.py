"""Finds keys in partitions that Kafka's default partitioner would not choose.

Topics that are read together must be partitioned alike. The producers of Ottla and the Java client place a key by its
murmur2 hash. librdkafka (confluent-kafka, and most clients that are not Java's) places it by CRC-32, unless it is
configured with `partitioner=murmur2_random`. Then a join misses rows, and nothing fails. So the first keys of each
batch of such topics are compared with where murmur2 puts them, and each process reports a topic with other keys once.
"""

import logging
from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa

from ottla.wire.records.columnar_partitioner import murmur2

_log = logging.getLogger(__name__)

# Hashed one by one: 13 microseconds a batch. Another partitioner puts all of them where murmur2 does in one batch of 256
# if there are two partitions, and more rarely if there are more.
SAMPLE = 8
# Longer keys are not hashed.
_KEY_BYTES_MAX = 1024


@dataclass
class KeyPlacement:
    """The keys that were checked in one process, and those that are misplaced."""

    checked: Counter[str] = field(default_factory=Counter)
    """How many keys were compared, by topic."""
    misplaced: Counter[str] = field(default_factory=Counter)
    """How many of them are in another partition than murmur2 chooses, by topic."""

    def check(self, topic: str, partition: int, keys: pa.Array, partition_count: int) -> None:
        """Compare the first keys of a batch of one partition; warn at the first one of a topic that is misplaced."""
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


def _warn(topic: str, partition: int, key: bytes, expected: int) -> None:
    _log.warning(
        "Topic %s is read together with other topics by key, but key %r is in partition %d, and Kafka's default "
        "partitioner (murmur2) puts it into partition %d. Rows that are partitioned otherwise find no partner, "
        "and results are wrong. Either configure the topic's producers with murmur2 (librdkafka, "
        "confluent-kafka: 'partitioner': 'murmur2_random') and write the topic again, or read it with "
        "builder.stream(%r).repartition(), followed by .to_table() for a table. See docs/partitioning.md.",
        topic,
        key,
        partition,
        expected,
        topic,
    )


# A worker process makes an Entry for each of its tasks.
PROCESS_PLACEMENT = KeyPlacement()
