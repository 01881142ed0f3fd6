"""Offsets outside of Kafka: in the same database transaction as the results, for exactly once.

A consumer with an `offset_store` starts each assigned partition at the stored offset. The
application stores the next offset together with its results, so that both are stored or neither.
"""

import re
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from ottla.base.errors import ConfigError
from ottla.client.config.plain_functions import check_plain_methods
from ottla.client.records import ConsumerRecord, TopicPartition

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class OffsetStore(Protocol):
    """The next offsets to read, stored by the application."""

    def load(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return the next offset of each partition that has one."""
        ...


def checked_store(store: Any) -> OffsetStore | None:
    """Return an offset store or None; ConfigError for an object without its method."""
    if store is not None and not callable(getattr(store, "load", None)):
        raise ConfigError(f"offset_store={store!r} has no method load: see OffsetStore")
    check_plain_methods(store, ["load"], "the consumer calls it in the thread that polls")
    result: OffsetStore | None = store
    return result


class SqliteOffsetStore:
    """Offsets in a table of an SQLite database, which is created if it does not exist.

    `save` takes part in the connection's open transaction: results and offsets are committed by one
    `with connection:`. The consumer calls `load` in the thread that polls.
    """

    def __init__(self, connection: sqlite3.Connection, *, table: str = "kafka_offsets") -> None:
        if not _NAME.fullmatch(table):
            raise ConfigError(f"{table!r} is not a table name of letters, digits and underscores")
        self._connection = connection
        self._select = f"SELECT next FROM {table} WHERE topic = ? AND part = ?"  # noqa: S608
        self._upsert = (
            f"INSERT INTO {table} (topic, part, next) VALUES (?, ?, ?) "  # noqa: S608
            "ON CONFLICT (topic, part) DO UPDATE SET next = excluded.next"
        )
        with connection:
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {table} "
                "(topic TEXT, part INTEGER, next INTEGER, PRIMARY KEY (topic, part))"
            )

    def load(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the stored offsets of these partitions."""
        offsets = {}
        for partition in partitions:
            row = self._connection.execute(self._select, tuple(partition)).fetchone()
            if row is not None:
                offsets[partition] = int(row[0])
        return offsets

    def save(self, *records: ConsumerRecord) -> None:
        """Store that these records are processed, in the open transaction."""
        rows = [(record.topic, record.partition, record.offset + 1) for record in records]
        self._connection.executemany(self._upsert, rows)
