"""A client of kafka-python in a process of its own: writes half, waits for a line, writes the rest,
reads.

In the test's process, the sockets that it leaves open after it failed to connect to a dead broker
would be reported as leaks. Arguments: the bootstrap servers, the topic, the number of records.
"""

import sys
import time

from kafka import KafkaConsumer, KafkaProducer

PATIENCE_S = 60.0


def main() -> None:
    """Print `half`, then the number of different records that were read."""
    bootstrap, topic, text = sys.argv[1:]
    count = int(text)
    producer = KafkaProducer(
        bootstrap_servers=bootstrap.split(","), acks="all", retries=20, linger_ms=5
    )
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap.split(","),
        group_id="readers",
        auto_offset_reset="earliest",
        consumer_timeout_ms=500,
    )
    pending = [producer.send(topic, b"%d" % number) for number in range(count // 2)]
    producer.flush(PATIENCE_S)
    sys.stdout.write("half\n")
    sys.stdout.flush()
    sys.stdin.readline()
    pending += [producer.send(topic, b"%d" % number) for number in range(count // 2, count)]
    for future in pending:
        future.get(PATIENCE_S)
    names: set[int] = set()
    deadline = time.monotonic() + PATIENCE_S
    while len(names) < count and time.monotonic() < deadline:
        names.update(int(record.value) for record in consumer)
    sys.stdout.write(f"{len(names)}\n")
    consumer.close()
    producer.close()


if __name__ == "__main__":
    main()
