"""Offsets in the application's own database, through a rebalance listener: exactly once.

Results and offsets are written in one transaction of SQLite. After a crash or a rebalance, reading
resumes at the stored offset, whatever the group has committed. `offset_store=SqliteOffsetStore(…)`
does the same in one line; this is the notes' form.
"""

import sqlite3
import sys

from ottla.client import Consumer, ConsumerRecord, RebalanceListener, TopicPartition


class DatabaseListener(RebalanceListener):
    """Seeks to the stored offsets when partitions are assigned."""

    def __init__(self, consumer: Consumer, database: sqlite3.Connection) -> None:
        self.consumer = consumer
        self.database = database

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """Commit what is open, before other members take over."""
        self.database.commit()

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """Resume at the stored offsets."""
        for partition in partitions:
            self.consumer.seek(partition, self.offset(partition))

    def offset(self, partition: TopicPartition) -> int:
        """Return the next offset to read, 0 at first."""
        query = "SELECT next FROM offsets WHERE topic = ? AND part = ?"
        row = self.database.execute(query, partition).fetchone()
        return int(row[0]) if row else 0


def process(database: sqlite3.Connection, record: ConsumerRecord) -> None:
    """Store a result and its offset in one transaction."""
    with database:
        database.execute(
            "INSERT INTO results VALUES (?, ?, ?, ?)",
            (record.topic, record.partition, record.offset, record.value.decode()),
        )
        database.execute(
            "INSERT INTO offsets VALUES (?, ?, ?) ON CONFLICT (topic, part) "
            "DO UPDATE SET next = excluded.next",
            (record.topic, record.partition, record.offset + 1),
        )


def main(bootstrap: str, topic: str = "first", count: int = 10, file: str = ":memory:") -> int:
    """Process `count` records, restarting after every fourth; return the number of results."""
    database = sqlite3.connect(file)
    # A record that is processed twice would violate the primary key.
    database.execute(
        "CREATE TABLE IF NOT EXISTS results "
        "(topic TEXT, part INTEGER, position INTEGER, value TEXT, "
        "PRIMARY KEY (topic, part, position))"
    )
    database.execute(
        "CREATE TABLE IF NOT EXISTS offsets "
        "(topic TEXT, part INTEGER, next INTEGER, PRIMARY KEY (topic, part))"
    )
    done = 0
    while done < count:
        with Consumer(
            bootstrap_servers=bootstrap, group_id="notes-own-offsets", enable_auto_commit=False
        ) as consumer:
            consumer.subscribe([topic], listener=DatabaseListener(consumer, database))
            for record in consumer:
                process(database, record)
                done += 1
                if done % 4 == 0 or done == count:
                    break
    (results,) = database.execute("SELECT COUNT(*) FROM results").fetchone()
    database.close()
    return int(results)


if __name__ == "__main__":
    print(main(*sys.argv[1:3]))
