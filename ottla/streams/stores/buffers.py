"""Buffers of operators that delay records: suppress, joins with grace, outer stream joins.

These buffers cannot be queried. Their keys are serialized, so that equal keys match regardless of
their Python type.

Not done: changelogs of buffers; a stage that keeps its state elsewhere keeps them with it.
"""

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from ottla.streams.model.packing import pack, unpack
from ottla.streams.model.records import Change, Header, Record, RecordMetadata
from ottla.streams.serdes import Serde
from ottla.streams.stores.ordered import OpenMap, open_memory

_FOREVER = (1 << 63) - 1
_TIME = struct.Struct(">q")
_OUTER_KEY = struct.Struct(">qb")


class BufferedRecord(NamedTuple):
    """A buffered record, and the topic, partition and offset it was read from."""

    record: Record[Any, Any]
    metadata: RecordMetadata | None


def _context_size(buffered: BufferedRecord) -> int:
    # Kafka's ProcessorRecordContext estimates its own size like this.
    topic = "" if buffered.metadata is None else buffered.metadata.topic
    return 8 + 8 + len(topic) + 4 + sum(_header_size(header) for header in buffered.record.headers)


def _header_size(header: Header) -> int:
    return len(header[0]) + len(header[1] or b"")


def _context(buffered: BufferedRecord) -> tuple[Any, ...]:
    """Return the fields of a record other than key and value, as plain values."""
    record, metadata = buffered
    headers = [tuple(header) for header in record.headers]
    return record.timestamp, headers, None if metadata is None else tuple(metadata)


def _buffered(key: Any, value: Any, context: tuple[Any, ...]) -> BufferedRecord:
    timestamp, headers, metadata = context
    record = Record(key, value, timestamp, tuple(headers))
    return BufferedRecord(record, None if metadata is None else RecordMetadata(*metadata))


class SuppressBuffer:
    """The latest change of each key, ordered by the time at which the key was first buffered."""

    def __init__(
        self, name: str, key: Serde[Any], value: Serde[Any], open_map: OpenMap = open_memory
    ) -> None:
        self.name = name
        self._key = key
        self._value = value
        # The buffered changes, by time and key; and for each key its time, its size and the prior
        # value.
        self._order = open_map("order")
        self._keys = open_map("keys")
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def min_timestamp(self) -> int:
        """Return the time of the first change, or the largest time if the buffer is empty."""
        first = self._order.first()
        return _FOREVER if first is None else int(_TIME.unpack_from(first[0])[0])

    def put(self, time: int, buffered: BufferedRecord) -> None:
        """Add a change; a later change of a key keeps the position of the first one."""
        key = self._key.serialize(buffered.record.key)
        change: Change[Any] = buffered.record.value
        old, new = self._value.to_bytes(change.old_value), self._value.to_bytes(change.new_value)
        stored = self._keys.get(key)
        time, size_before, prior = (time, 0, old) if stored is None else unpack(stored)
        shared = old if old != prior else None
        size = 8 + len(key) + _context_size(buffered)
        size += sum(len(encoded or b"") for encoded in (prior, shared, new))
        self.size_bytes += size - size_before
        self._keys.put(key, pack((time, size, prior)))
        waiting = pack((old, new, change.is_latest, _context(buffered)))
        self._order.put(_TIME.pack(time) + key, waiting)

    def pop(self) -> BufferedRecord:
        """Remove and return the first change."""
        first = self._order.first()
        assert first is not None
        time_and_key, waiting = first
        key = time_and_key[_TIME.size :]
        stored = self._keys.get(key)
        assert stored is not None
        self.size_bytes -= unpack(stored)[1]
        self._order.put(time_and_key, None)
        self._keys.put(key, None)
        old, new, is_latest, context = unpack(waiting)
        change = Change(self._value.from_bytes(new), self._value.from_bytes(old), is_latest)
        return _buffered(self._key.deserialize(key), change, context)

    def prior_value(self, key: Any) -> tuple[bool, Any]:
        """Return True if a key is buffered, and the value that readers of the table still see for
        it.
        """
        stored = self._keys.get(self._key.serialize(key))
        return (
            (False, None) if stored is None else (True, self._value.from_bytes(unpack(stored)[2]))
        )

    def remember(self) -> int:
        """Return the size, for `recall`."""
        return self.size_bytes

    def recall(self, remembered: int) -> None:
        """Restore the state that `remember` returned."""
        self.size_bytes = remembered

    def close(self) -> None:
        """Do nothing: no resource is open."""


class JoinBuffer:
    """Stream records that wait until a table has caught up, ordered by time.

    The buffer's time is the largest time of the records added to it. Records that the join drops do
    not advance it.
    """

    def __init__(
        self,
        name: str,
        key: Serde[Any],
        value: Serde[Any],
        grace_ms: int,
        open_map: OpenMap = open_memory,
    ) -> None:
        self.name = name
        self._key = key
        self._value = value
        self._grace_ms = grace_ms
        self._held = open_map("held")
        self._sequence = 0
        self._latest = -1

    def put(self, buffered: BufferedRecord) -> bool:
        """Add a record; return False if it is too late to be buffered."""
        record = buffered.record
        if self._latest - self._grace_ms > record.timestamp:
            return False
        self._latest = max(self._latest, record.timestamp)
        self._sequence += 1
        key = self._key.serialize(record.key)
        stored_key = _TIME.pack(record.timestamp) + key + _TIME.pack(self._sequence)
        self._held.put(stored_key, pack((self._value.to_bytes(record.value), _context(buffered))))
        return True

    def due(self) -> Iterator[BufferedRecord]:
        """Remove and return the records whose grace period is over."""
        while (first := self._held.first()) is not None:
            stored_key, waiting = first
            if _TIME.unpack_from(stored_key)[0] > self._latest - self._grace_ms:
                return
            self._held.put(stored_key, None)
            value, context = unpack(waiting)
            key = self._key.deserialize(stored_key[_TIME.size : -_TIME.size])
            yield _buffered(key, self._value.from_bytes(value), context)

    def remember(self) -> tuple[int, int]:
        """Return the buffer's time, for `recall`."""
        return self._sequence, self._latest

    def recall(self, remembered: tuple[int, int]) -> None:
        """Restore the state that `remember` returned."""
        self._sequence, self._latest = remembered

    def close(self) -> None:
        """Do nothing: no resource is open."""


class OuterKey(NamedTuple):
    """The key of an unjoined record: time, side (left is 1, which sorts after right), record key."""

    timestamp: int
    side: int
    key: bytes


class OuterJoinStore:
    """Records of either side that have not been joined yet, ordered by time."""

    def __init__(
        self,
        name: str,
        key: Serde[Any],
        values: tuple[Serde[Any], Serde[Any]],
        open_map: OpenMap = open_memory,
    ) -> None:
        self.name = name
        self._key = key
        self._values = values
        """The serdes of the left and of the right side."""
        self._waiting = open_map("waiting")
        # The time that both sides of the join share.
        self.stream_time = -1
        self.min_time = _FOREVER
        self.next_emit_ms = 0

    def _value(self, outer_key: OuterKey) -> Serde[Any]:
        return self._values[0 if outer_key.side == 1 else 1]

    def outer_key(self, timestamp: int, side: int, key: Any) -> OuterKey:
        """Return the store key for a record of a side."""
        return OuterKey(timestamp, side, self._key.serialize(key))

    def put(self, outer_key: OuterKey, record: Record[Any, Any]) -> None:
        """Add a record."""
        stored = _OUTER_KEY.pack(outer_key.timestamp, outer_key.side) + outer_key.key
        result = self._waiting.get(stored)
        waiting = [] if result is None else unpack(result)
        waiting.append(
            (self._value(outer_key).to_bytes(record.value), _context(BufferedRecord(record, None)))
        )
        self._waiting.put(stored, pack(waiting))

    def delete(self, outer_key: OuterKey) -> None:
        """Remove the record of a store key: it has been joined or emitted."""
        self._waiting.put(
            _OUTER_KEY.pack(outer_key.timestamp, outer_key.side) + outer_key.key, None
        )

    def all(self) -> Iterator[tuple[OuterKey, Record[Any, Any]]]:
        """Iterate over the records by time; changes during the iteration may or may not be seen."""
        for stored, waiting in self._waiting.walk():
            timestamp, side = _OUTER_KEY.unpack_from(stored)
            outer_key = OuterKey(timestamp, side, stored[_OUTER_KEY.size :])
            key, serde = self._key.deserialize(outer_key.key), self._value(outer_key)
            for value, context in unpack(waiting):
                yield outer_key, _buffered(key, serde.from_bytes(value), context).record

    def remember(self) -> tuple[int, int, int]:
        """Return the store's time, for `recall`."""
        return self.stream_time, self.min_time, self.next_emit_ms

    def recall(self, remembered: tuple[int, int, int]) -> None:
        """Restore the state that `remember` returned."""
        self.stream_time, self.min_time, self.next_emit_ms = remembered

    def close(self) -> None:
        """Do nothing: no resource is open."""
