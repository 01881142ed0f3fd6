"""A member of a group as a process of its own: reads, commits, and prints its events as JSON lines.

    python -m tests.process.group_member BOOTSTRAP TOPIC GROUP '{"group.protocol": …}'

SIGTERM makes it leave the group. Each event has the time of the clock that all processes share.
"""

import json
import signal
import sys
import threading
import time
from typing import Any

import confluent_kafka

_stopped = threading.Event()


def report(event: str, **fields: object) -> None:
    """Print one event."""
    print(json.dumps({"time": time.monotonic(), "event": event, **fields}), flush=True)


def _numbers(partitions: list[Any]) -> list[int]:
    return [item.partition for item in partitions]


def assigned(_: Any, partitions: list[Any]) -> None:
    """Report partitions that this member owns from now on."""
    report("assigned", partitions=_numbers(partitions))


def lost(_: Any, partitions: list[Any]) -> None:
    """Report partitions that were given to others without this member."""
    report("lost", partitions=_numbers(partitions))


def revoked(consumer: Any, partitions: list[Any]) -> None:
    """Commit, and report partitions that this member gives back."""
    commit(consumer)
    report("revoked", partitions=_numbers(partitions))


def commit(consumer: Any) -> None:
    """Commit the positions, and report the offsets that the coordinator has acknowledged."""
    try:
        committed = consumer.commit(asynchronous=False)
    except confluent_kafka.KafkaException as error:
        report("not committed", error=error.args[0].name())
        return
    offsets = {
        item.partition: item.offset for item in committed if item.error is None and item.offset >= 0
    }
    report("committed", offsets=offsets)


def consume(consumer: Any) -> None:
    """Report the offsets of the records of one poll, and commit them."""
    messages = [item for item in consumer.consume(500, timeout=0.3) if item.error() is None]
    if not messages:
        return
    offsets: dict[int, list[int]] = {}
    for message in messages:
        offsets.setdefault(message.partition(), []).append(message.offset())
    report("records", offsets=offsets)
    commit(consumer)


def main() -> None:
    """Consume until SIGTERM."""
    bootstrap, topic, group, config = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: _stopped.set())
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
            **json.loads(config),
        }
    )
    consumer.subscribe([topic], on_assign=assigned, on_revoke=revoked, on_lost=lost)
    while not _stopped.is_set():
        consume(consumer)
    consumer.close()
    report("left")


if __name__ == "__main__":
    main()
