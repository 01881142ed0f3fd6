"""The notes' first consumer: subscribe, poll in a loop, positions committed by themselves.

A new group with `auto.offset.reset=earliest` reads everything again, as the notes do to repeat a
topic. A second run of the same group finds nothing left: its positions were committed.
"""

import sys

from ottla.client import Consumer


def run(bootstrap: str, topic: str, group: str, count: int) -> list[str]:
    """Return a line for each of `count` records; with count 0, what one poll returns."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "enable.auto.commit": "true",
        "auto.commit.interval.ms": "1000",
        "auto.offset.reset": "earliest",
        "key.deserializer": "org.apache.kafka.common.serialization.StringDeserializer",
        "value.deserializer": "org.apache.kafka.common.serialization.StringDeserializer",
    }
    lines: list[str] = []
    with Consumer(topic, config=settings) as consumer:
        while True:
            for record in consumer.poll(1.0):
                lines.append(f"{record.partition}--{record.offset}--{record.value}")
            # A first poll may end before the group has assigned partitions.
            if len(lines) >= count and consumer.assignment:
                return sorted(lines)


def main(bootstrap: str, topic: str = "first", count: int = 10) -> tuple[list[str], list[str]]:
    """Read `count` records with a new group; return them, and what its second run reads."""
    group = f"notes-automatic-{topic}"
    first = run(bootstrap, topic, group, count)
    return first, run(bootstrap, topic, group, 0)


if __name__ == "__main__":
    print(*main(*sys.argv[1:3]), sep="\n")
