"""Producer and consumer configured by one .properties file with Java class names."""

import sys
import tempfile
from pathlib import Path

from ottla.client import Consumer, Producer

FILE = """
bootstrap.servers={bootstrap}
key.serializer=org.apache.kafka.common.serialization.StringSerializer
value.serializer=org.apache.kafka.common.serialization.IntegerSerializer
key.deserializer=org.apache.kafka.common.serialization.StringDeserializer
value.deserializer=org.apache.kafka.common.serialization.IntegerDeserializer
partition.assignment.strategy=org.apache.kafka.clients.consumer.RoundRobinAssignor
group.id=notes-properties
auto.offset.reset=earliest
enable.auto.commit=true
auto.commit.interval.ms=1000
"""


def main(bootstrap: str, topic: str = "numbers") -> list[tuple[str, int]]:
    """Send five numbers and read them back."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "client.properties")
        file.write_text(FILE.format(bootstrap=bootstrap), encoding="utf-8")
        with Producer(file) as producer:
            for number in range(5):
                producer.send(topic, number, key=f"key-{number}")
        found: list[tuple[str, int]] = []
        with Consumer(topic, config=file) as consumer:
            while len(found) < 5:
                found += [(record.key, record.value) for record in consumer.poll(1.0)]
    return sorted(found)


if __name__ == "__main__":
    print(*main(*sys.argv[1:]), sep="\n")
