"""A consumer for each thread, all in one group: each partition is read by exactly one of them.

The notes start as many threads as a topic has partitions. A consumer belongs to one thread.
"""

import sys
import threading
import time
from collections import defaultdict
from collections.abc import Set

from ottla.client import Consumer, TopicPartition


def main(bootstrap: str, topic: str = "first", threads: int = 3) -> dict[int, set[str]]:
    """Read a topic to its end; return the threads that have read each partition."""
    readers: dict[int, set[str]] = defaultdict(set)
    everyone = threading.Barrier(threads)
    names = [f"thread-{number}" for number in range(threads)]
    owned: dict[str, Set[TopicPartition]] = dict.fromkeys(names, frozenset())

    def is_complete() -> bool:
        partitions = [partition for name in names for partition in owned[name]]
        return all(owned.values()) and len(set(partitions)) == len(partitions) == threads

    def read() -> None:
        name = threading.current_thread().name
        deadline = time.monotonic() + 60
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
            # A member that waits must poll: the group cannot rebalance for a later one without it.
            while not is_complete():
                consumer.poll(0.1)
                owned[name] = consumer.assignment
                if time.monotonic() > deadline:
                    raise TimeoutError(f"after 60 s the partitions are divided as {owned}")
            consumer.seek_to_beginning()
            ends = consumer.end_offsets(consumer.assignment)
            while any(consumer.positions().get(key, 0) < end for key, end in ends.items()):
                for record in consumer.poll(0.1):
                    readers[record.partition].add(name)
            # No thread leaves before all have read: another would get its partition.
            everyone.wait(60)

    workers = [threading.Thread(target=read, name=name) for name in names]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return dict(readers)


if __name__ == "__main__":
    print(main(*sys.argv[1:3]))
