"""A consumer for each thread, all in one group: each partition is read by exactly one of them.

The notes start as many threads as a topic has partitions. A consumer belongs to one thread.
"""

import sys
import threading
from collections import defaultdict

from ottla.client import Consumer


def main(
    bootstrap: str, topic: str = "first", threads: int = 3, count: int = 12
) -> dict[int, set[str]]:
    """Read `count` records; return the threads that have read each partition."""
    readers: dict[int, set[str]] = defaultdict(set)
    everyone = threading.Barrier(threads)
    seen: list[str] = []

    def read() -> None:
        consumer = Consumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=f"notes-threads-{topic}",
            auto_offset_reset="earliest",
            heartbeat_interval_ms=100,
            enable_auto_commit=False,
        )
        with consumer:
            # Wait until the group is complete; then read what each thread owns from its beginning.
            while len(consumer.assignment) != 1:
                consumer.poll(0.1)
            everyone.wait(60)
            consumer.seek_to_beginning()
            while len(seen) < count:
                for record in consumer.poll(0.1):
                    readers[record.partition].add(threading.current_thread().name)
                    seen.append(record.value)

    workers = [threading.Thread(target=read, name=f"thread-{n}") for n in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return dict(readers)


if __name__ == "__main__":
    print(main(*sys.argv[1:3]))
