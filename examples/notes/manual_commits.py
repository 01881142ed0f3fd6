"""Manual commits: asynchronous in the loop, for speed; synchronous at the end, to be sure."""

import sys

from ottla.client import Consumer
from ottla.client.errors import ClientError


def main(bootstrap: str, topic: str = "first", count: int = 10) -> dict[int, int]:
    """Process `count` records; return the committed offset of each partition."""
    consumer = Consumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id="notes-manual",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        value_deserializer="org.apache.kafka.common.serialization.StringDeserializer",
    )
    processed = 0
    try:
        while processed < count:
            records = consumer.poll(1.0)
            for record in records:
                processed += bool(record.value)
            # Not repeated if it fails: the next commit has a higher offset.
            consumer.commit_async(callback=_report)
    finally:
        try:
            consumer.commit()
            committed = consumer.committed()
        finally:
            consumer.close()
    return {key.partition: row.offset for key, row in committed.items()}


def _report(offsets: object, error: ClientError | Exception | None) -> None:
    if error is not None:
        print(f"commit of {offsets} failed: {error}", file=sys.stderr)


if __name__ == "__main__":
    print(main(*sys.argv[1:3]))
