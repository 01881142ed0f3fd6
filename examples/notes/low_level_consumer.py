"""The low-level consumer: one partition from a chosen offset, without a group.

The notes find the partition's leader and send fetch requests to it; today one consumer does both.
"""

import sys

from ottla.client import Consumer, TopicPartition


def main(
    bootstrap: str, topic: str = "first", partition: str = "0", offset: str = "2"
) -> list[str]:
    """Return a line for each record from the offset to the end of the partition."""
    key = TopicPartition(topic, int(partition))
    lines: list[str] = []
    with Consumer(bootstrap_servers=bootstrap) as consumer:
        consumer.assign({key: int(offset)})
        end = consumer.end_offsets([key])[key]
        while consumer.positions().get(key, int(offset)) < end:
            for record in consumer.poll(1.0):
                lines.append(f"{record.offset}--{record.value.decode()}")
    return lines


if __name__ == "__main__":
    print(*main(*sys.argv[1:]), sep="\n")
