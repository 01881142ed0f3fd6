"""Buffers of operators that wait: suppress, joins with a grace, and the unjoined records of outer joins.

They are no stores a user asks; they keep serialized keys, so that equal keys meet whatever their type.

Not done: changelogs of buffers; a stage that keeps its state elsewhere keeps them with it.
"""

from bisect import bisect_right, insort
from collections.abc import Iterator
from typing import Any, NamedTuple

from ottla.streams.records import Change, Header, Record, RecordMetadata
from ottla.streams.serdes import Serde

_FOREVER = (1 << 63) - 1


class Held(NamedTuple):
    """A record that waits, and where it was read."""

    record: Record[Any, Any]
    metadata: RecordMetadata | None


def _context_size(held: Held) -> int:
    # As Kafka's ProcessorRecordContext estimates itself.
    topic = "" if held.metadata is None else held.metadata.topic
    return 8 + 8 + len(topic) + 4 + sum(_header_size(each) for each in held.record.headers)


def _header_size(header: Header) -> int:
    return len(header[0]) + len(header[1] or b"")


class SuppressBuffer:
    """The latest change of each key, in the order of the time at which the first was buffered."""

    def __init__(self, name: str, key: Serde[Any], value: Serde[Any]) -> None:
        self.name = name
        self._key = key
        self._value = value
        self._order: list[tuple[int, bytes]] = []
        self._times: dict[bytes, int] = {}
        self._held: dict[bytes, Held] = {}
        self._prior: dict[bytes, Any] = {}
        self._sizes: dict[bytes, int] = {}
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._order)

    @property
    def min_timestamp(self) -> int:
        """The time of the first change; forever if there is none."""
        return self._order[0][0] if self._order else _FOREVER

    def put(self, time: int, held: Held) -> None:
        """Take a change; a key keeps the place of its first one."""
        key = self._key.serialize(held.record.key)
        if key not in self._times:
            self._times[key] = time
            insort(self._order, (time, key))
            self._prior[key] = held.record.value.old_value
        self._held[key] = held
        size = 8 + len(key) + self._size(key, held)
        self.size_bytes += size - self._sizes.get(key, 0)
        self._sizes[key] = size

    def _size(self, key: bytes, held: Held) -> int:
        change: Change[Any] = held.record.value
        prior = self._value.to_bytes(self._prior[key])
        old = self._value.to_bytes(change.old_value)
        new = self._value.to_bytes(change.new_value)
        shared = old if old != prior else None
        return sum(len(each or b"") for each in (prior, shared, new)) + _context_size(held)

    def pop(self) -> Held:
        """Take out the first change."""
        _, key = self._order.pop(0)
        del self._times[key], self._prior[key]
        self.size_bytes -= self._sizes.pop(key)
        return self._held.pop(key)

    def prior_value(self, key: Any) -> tuple[bool, Any]:
        """Return whether a key waits and, if so, what readers of the table still see for it."""
        stored = self._key.serialize(key)
        return stored in self._times, self._prior.get(stored)

    def close(self) -> None:
        """Nothing is open."""


class JoinBuffer:
    """Records of a stream that wait for a table to catch up, in the order of their time.

    Its time is that of the records it took: what a join drops does not count.
    """

    def __init__(self, name: str, key: Serde[Any], value: Serde[Any], grace_ms: int) -> None:
        self.name = name
        self._key = key
        self._grace_ms = grace_ms
        self._held: list[tuple[int, bytes, int, Held]] = []
        self._sequence = 0
        self._latest = -1

    def put(self, held: Held) -> bool:
        """Take a record; return False for one that is too late to wait."""
        if self._latest - self._grace_ms > held.record.timestamp:
            return False
        self._latest = max(self._latest, held.record.timestamp)
        self._sequence += 1
        key = self._key.serialize(held.record.key)
        entry = (held.record.timestamp, key, self._sequence, held)
        # The sequence is unique, so records themselves are never compared.
        self._held.insert(bisect_right(self._held, entry[:3], key=lambda each: each[:3]), entry)
        return True

    def due(self) -> Iterator[Held]:
        """Take out the records whose grace is over."""
        while self._held and self._held[0][0] <= self._latest - self._grace_ms:
            yield self._held.pop(0)[3]

    def close(self) -> None:
        """Nothing is open."""


class OuterKey(NamedTuple):
    """Where an unjoined record stands: time, side (left is 1, after right) and key."""

    timestamp: int
    side: int
    key: bytes


class OuterJoinStore:
    """Records of either side that found no partner yet, in the order of their time."""

    def __init__(self, name: str, key: Serde[Any]) -> None:
        self.name = name
        self._key = key
        self._order: list[OuterKey] = []
        self._values: dict[OuterKey, list[Record[Any, Any]]] = {}
        # What both sides of the join know of time.
        self.stream_time = -1
        self.min_time = _FOREVER
        self.next_emit_ms = 0

    def place(self, timestamp: int, side: int, key: Any) -> OuterKey:
        """Return where a record of a side stands."""
        return OuterKey(timestamp, side, self._key.serialize(key))

    def put(self, place: OuterKey, record: Record[Any, Any]) -> None:
        """Add a record."""
        if place not in self._values:
            insort(self._order, place)
            self._values[place] = []
        self._values[place].append(record)

    def delete(self, place: OuterKey) -> None:
        """Remove what stands there: it is joined, or gone."""
        if self._values.pop(place, None) is not None:
            self._order.remove(place)

    def all(self) -> Iterator[tuple[OuterKey, Record[Any, Any]]]:
        """Walk the records, as they are when the walk starts."""
        for place in list(self._order):
            for record in self._values.get(place, ()):
                yield place, record

    def close(self) -> None:
        """Nothing is open."""
