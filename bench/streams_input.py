"""The input of the contenders: the same records for all, generated from a seed.

Keys are `key0000042`, values 100 letters, in four partitions by the number of the key; the
timestamp of each record is 50 µs after the previous record's. The table has every key once,
before all records.
"""

import time
from dataclasses import dataclass
from itertools import count

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ottla.client.admin.topics import create_topic, delete_topic, list_topics
from ottla.client.brokers import Brokers
from ottla.client.sender import ColumnSender
from ottla.wire.records.columnar_encoding import Rows

PARTITIONS = 4
VALUE_BYTES = 100
_CHUNK = 20_000
_RECORDS_PER_MS = 20
# The input begins so long before now that no record is in the future.
_AGO_MS = 200_000
_APPEND_TIME = {"message.timestamp.type": "LogAppendTime"}
_numbers = count(1)


def _noise() -> bytes:
    chance = np.random.default_rng(1)
    return chance.integers(97, 122, _CHUNK + VALUE_BYTES, np.uint8).tobytes()


_NOISE = _noise()


@dataclass(frozen=True)
class Names:
    """The topics of one turn."""

    application: str
    source: str
    table: str
    sink: str


class Input:
    """The topics of one turn, and the records that were written to them."""

    def __init__(self, brokers: Brokers, keys: int) -> None:
        self._brokers = brokers
        self._keys = keys
        # Each turn has its own topic names, so that nothing of an earlier turn can interfere.
        name = f"turn{next(_numbers)}"
        self.names = Names(f"{name}-app", f"{name}-in", f"{name}-table", f"{name}-out")
        self._start_ms = time.time_ns() // 1_000_000 - _AGO_MS
        self.records = 0
        """How many records the source has so far."""
        self.passing = 0
        """How many of them do not begin with b."""
        for topic in (self.names.source, self.names.table):
            create_topic(brokers, topic, partitions=PARTITIONS)
        # The brokers' append time is the same clock for all contenders.
        create_topic(brokers, self.names.sink, partitions=PARTITIONS, config=_APPEND_TIME)

    def fill_table(self) -> None:
        """Write every key to the table."""
        with ColumnSender(self._brokers) as sender:
            for chunk in _chunks(np.arange(self._keys)):
                times = np.full(len(chunk), self._start_ms - 1000)
                self._send(sender, self.names.table, chunk, times)
            sender.flush()

    def fill(self, keys: NDArray[np.int64]) -> None:
        """Write a record for each key."""
        with ColumnSender(self._brokers) as sender:
            for chunk in _chunks(keys):
                numbers = self.records + np.arange(len(chunk))
                times = self._start_ms + numbers // _RECORDS_PER_MS
                self._send(sender, self.names.source, chunk, times)
                self.records += len(chunk)
                self.passing += sum(_NOISE[index] != ord("b") for index in range(len(chunk)))
            sender.flush()

    def _send(
        self, sender: ColumnSender, topic: str, keys: NDArray[np.int64], times: NDArray[np.int64]
    ) -> None:
        for partition in range(PARTITIONS):
            # Any partitioner works, as long as all topics use the same one.
            chosen = np.flatnonzero(keys % PARTITIONS == partition)
            values = [_NOISE[each : each + VALUE_BYTES] for each in chosen.tolist()]
            names = [name_of(key) for key in keys[chosen].tolist()]
            rows = Rows(
                pa.array(values, pa.binary()), pa.array(names, pa.binary()), None, times[chosen]
            )
            sender.send(topic, partition, rows)

    def delete(self) -> None:
        """Delete the topics, and those that the application created."""
        names = self.names
        for topic in list_topics(self._brokers):
            if topic.name in (names.source, names.table, names.sink) or (
                names.application in topic.name
            ):
                delete_topic(self._brokers, topic.name)


def _chunks(keys: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    return [keys[start : start + _CHUNK] for start in range(0, len(keys), _CHUNK)]


def name_of(key: int) -> bytes:
    """Return the bytes of a key."""
    return b"key%07d" % key


def each_key_once(keys: int, records: int) -> NDArray[np.int64]:
    """Return `records` keys in random order, all of them before any key repeats."""
    chance = np.random.default_rng(2)
    rounds = -(-records // keys)
    return np.concatenate([chance.permutation(keys) for _ in range(rounds)])[:records]


def random_keys(keys: int, records: int) -> NDArray[np.int64]:
    """Return random keys."""
    return np.random.default_rng(3).integers(0, keys, records)
