"""A custom partitioner: the methods of Java's Partitioner, with the same arguments."""

import sys
from collections.abc import Mapping
from typing import Any

from ottla.client import Producer


class MyPartitioner:
    """Sends records whose value contains "error" to the last partition, others to the rest in turn."""

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Read the producer's settings."""
        self.word = configs.get("client.id", "error")
        self.sent = 0

    def partition(
        self, topic: str, key: Any, key_bytes: bytes | None, value: Any, value_bytes: bytes | None,
        cluster: Any,
    ) -> int:  # fmt: skip
        """Return the partition of a record."""
        partitions: list[int] = cluster.partitions(topic)
        if self.word in value:
            return partitions[-1]
        self.sent += 1
        return partitions[self.sent % (len(partitions) - 1)]

    def close(self) -> None:
        """Release what `configure` acquired: nothing here."""


def main(bootstrap: str, topic: str = "first") -> list[tuple[str, int]]:
    """Send six records; return each value with its partition."""
    values = ["one", "an error", "two", "three", "another error", "four"]
    with Producer(
        bootstrap_servers=bootstrap,
        client_id="error",
        value_serializer="org.apache.kafka.common.serialization.StringSerializer",
        partitioner_class=MyPartitioner,
    ) as producer:
        futures = [producer.send(topic, value) for value in values]
        return [
            (value, future.result(30).partition)
            for value, future in zip(values, futures, strict=True)
        ]


if __name__ == "__main__":
    print(*main(*sys.argv[1:]), sep="\n")
