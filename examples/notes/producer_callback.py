"""Send asynchronously with a callback, then synchronously with `result()` (the notes' first
producer).
"""

import sys
from typing import Any

from ottla.client import Producer, RecordMetadata


def main(bootstrap: str, topic: str = "first") -> list[str]:
    """Send ten records each way; return a line for each acknowledged record."""
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "acks": "all",
        "retries": 3,
        "batch.size": 16384,
        "linger.ms": 1,
        "buffer.memory": 33554432,
        "key.serializer": "org.apache.kafka.common.serialization.StringSerializer",
        "value.serializer": "org.apache.kafka.common.serialization.StringSerializer",
    }
    lines: list[str] = []

    def on_completion(metadata: RecordMetadata | None, error: Exception | None) -> None:
        if error is None and metadata is not None:
            lines.append(f"success -> {metadata.partition}:{metadata.offset}")
        else:
            lines.append(f"failure -> {error}")

    with Producer(settings) as producer:
        for number in range(10):
            producer.send(topic, f"message-{number}", on_delivery=on_completion)
    with Producer(settings) as producer:
        for number in range(10):
            metadata = producer.send(topic, f"message-{number}", key=str(number)).result(30)
            lines.append(f"sent -> {metadata.partition}:{metadata.offset}")
    return lines


if __name__ == "__main__":
    print(*main(*sys.argv[1:]), sep="\n")
