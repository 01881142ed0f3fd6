"""Exactly once from topic to topic: a transactional producer and the offsets of its consumer.

The notes describe the parts: an idempotent producer, a transactional id, a coordinator. The first
run fails between output and commit; the second one reads the records again, and each has one
visible result.
"""

import sys

from ottla.client import Consumer, Producer


class Failure(Exception):
    """The application fails in the middle of a transaction."""


def copy(bootstrap: str, source: str, target: str, count: int, *, fails: bool = False) -> None:
    """Write each record of `source` in upper case to `target`, in one transaction."""
    with (
        Producer(
            bootstrap_servers=bootstrap,
            enable_idempotence=True,
            transactional_id=f"notes-{source}",
        ) as producer,
        Consumer(
            source,
            bootstrap_servers=bootstrap,
            group_id=f"notes-{source}",
            enable_auto_commit=False,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
        ) as consumer,
    ):
        copied = 0
        while copied < count:
            records = consumer.poll(1.0)
            with producer.transaction():
                for record in records:
                    producer.send(target, record.value.upper())
                if fails and records:
                    producer.flush()
                    raise Failure
                producer.send_offsets(consumer)
            copied += len(records)


def main(
    bootstrap: str, source: str = "first", target: str = "second", count: int = 4
) -> list[str]:
    """Copy `count` records, with a failure; return the values that are visible in `target`."""
    try:
        copy(bootstrap, source, target, count, fails=True)
    except Failure:
        copy(bootstrap, source, target, count)
    values: list[str] = []
    with Consumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([(target, number) for number in consumer.partitions_for(target)])
        ends = consumer.end_offsets(consumer.assignment)
        while any(consumer.positions().get(key, 0) < end for key, end in ends.items()):
            values += [record.value.decode() for record in consumer.poll(0.2)]
    return sorted(values)


if __name__ == "__main__":
    print(*main(*sys.argv[1:]), sep="\n")
