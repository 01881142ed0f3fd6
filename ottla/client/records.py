"""The values that producers and consumers exchange with the caller.

Records and metadata are structs of msgspec, which C creates in a third of the time of a class with
`__init__`: there is one for each record. Python's garbage collector does not track them
(`gc=False`): they hold only an object of librdkafka and bytes, so they are in no cycle.
"""

import operator
from collections.abc import Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import msgspec

from ottla.client.config.native_text import is_native_text
from ottla.client.errors import ClientError, SerializationError

Header = tuple[str, bytes | None]
Headers = Sequence[Header] | Mapping[str, bytes | None]

_TIMESTAMP_TYPES = ("unknown", "create", "logappend")
NO_OFFSET = -1
"""The offset of a record that was not stored, or that acks=0 does not report."""
# The largest numbers of the protocol.
_PARTITION_MAX, _OFFSET_MAX = 2**31 - 1, 2**63 - 1


class TopicPartition(NamedTuple):
    """A partition of a topic; a plain tuple (topic, partition) is equal to it."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def partition_of(key: Any) -> TopicPartition:
    """Return a partition; TypeError for anything but a tuple of a topic and a number."""
    try:
        topic, number = key
        partition = operator.index(number)
        is_name = isinstance(topic, str) and is_native_text(topic)
        if is_name and 0 <= partition <= _PARTITION_MAX:
            return TopicPartition(topic, partition)
    except (TypeError, ValueError):
        pass
    raise TypeError(
        f"{key!r} is not a partition: use tuples of a topic and a number, as in ('orders', 0)"
    )


class OffsetAndMetadata(NamedTuple):
    """A committed offset, the next one to read, with a text of the application's own."""

    offset: int
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class ProducerRecord:
    """A record on its way through interceptors; `dataclasses.replace` returns a changed copy.

    `timestamp` is in ms; None is the time of the call. `partition` None leaves the choice to the
    partitioner.
    """

    topic: str
    value: Any
    key: Any = None
    headers: Headers | None = None
    partition: int | None = None
    timestamp: int | None = None


def as_bytes(data: Any) -> Any:
    """Return the contents of a bytearray or a memory view; any other object unchanged."""
    return bytes(data) if isinstance(data, bytearray | memoryview) else data


def native_headers(headers: Headers | None) -> list[Header] | None:
    """Return headers as librdkafka takes them.

    Raises SerializationError for those that the binding would change without an error, or that
    would end the process, as a name with a lone surrogate does.
    """
    if headers is None:
        return None
    rows = headers.items() if isinstance(headers, Mapping) else headers
    if rows is headers and (isinstance(headers, str) or not isinstance(headers, Sequence)):
        raise SerializationError(f"{headers!r} are no headers: use a list of tuples, or a dict")
    return [_native_header(row) for row in rows]


def _native_header(row: Any) -> Header:
    if not (isinstance(row, tuple) and len(row) == 2 and isinstance(row[0], str)):
        text = f"{row!r} is not a header: use tuples of a name and bytes, as in ('source', b'web')"
        raise SerializationError(text)
    name, value = row
    if not is_native_text(name):
        raise SerializationError(
            f"{name!r} is not the name of a header: it has a NUL character or a lone surrogate"
        )
    # The binding would end a text at its first NUL character.
    return name, value.encode() if isinstance(value, str) else as_bytes(value)


def native_names(topics: Iterable[Any]) -> list[str]:
    """Return names or patterns of topics; ClientError for one that librdkafka cannot take."""
    names = list(topics)
    for name in names:
        if isinstance(name, Mapping):
            raise ClientError(
                "settings are not topics: pass them as keywords, or as config=, as in "
                "Consumer('orders', config=settings)"
            )
        if not (isinstance(name, str) and is_native_text(name)):
            raise ClientError(
                f"cannot subscribe to {name!r}: a name is a text without NUL characters and lone "
                "surrogates"
            )
    return names


class RecordMetadata(msgspec.Struct, frozen=True, eq=False, gc=False):
    """The position of an acknowledged record: topic, partition, offset and timestamp (ms).

    The offset is -1 for acks=0, and for a record that failed. Comparisons ignore the sizes.
    """

    _report: Any

    @property
    def topic(self) -> str:
        """The topic of the record."""
        return str(self._report.topic())

    @property
    def partition(self) -> int:
        """The partition of the record, or -1 if it failed before one was chosen."""
        partition = self._report.partition()
        return -1 if partition is None else int(partition)

    @property
    def offset(self) -> int:
        """The offset of the record."""
        offset = self._report.offset()
        return NO_OFFSET if offset is None or offset < 0 else int(offset)

    @property
    def timestamp(self) -> int:
        """The timestamp of the record in ms."""
        return int(self._report.timestamp()[1])

    @property
    def serialized_key_size(self) -> int:
        """The length of the serialized key in bytes; -1 without a key."""
        return _size(self._report.key())

    @property
    def serialized_value_size(self) -> int:
        """The length of the serialized value in bytes; -1 without a value."""
        return _size(self._report.value())

    def __iter__(self) -> Any:
        yield from (self.topic, self.partition, self.offset, self.timestamp)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecordMetadata) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return (
            f"RecordMetadata(topic={self.topic!r}, partition={self.partition}, "
            f"offset={self.offset}, timestamp={self.timestamp})"
        )


class _Report(msgspec.Struct, gc=False):
    """The contents of a delivery report, without librdkafka's object.

    That object is tracked by the garbage collector: programs that keep the result of each record
    would have it visit all of them, again and again.
    """

    _topic: str
    _partition: int
    _offset: int | None = NO_OFFSET
    _timestamp: int = -1
    _key: int = -1
    _value: int = -1

    def topic(self) -> str:
        return self._topic

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int | None:
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        return 0, self._timestamp

    def key(self) -> range | None:
        return None if self._key < 0 else range(self._key)

    def value(self) -> range | None:
        return None if self._value < 0 else range(self._value)


def _size(data: Sized | None) -> int:
    return -1 if data is None else len(data)


def metadata_of(report: Any) -> RecordMetadata:
    """Return the metadata of a delivery report, to be kept without the report."""
    key, value = report.key(), report.value()
    return RecordMetadata(
        _Report(
            report.topic(),
            report.partition(),
            report.offset(),
            report.timestamp()[1],
            -1 if key is None else len(key),
            -1 if value is None else len(value),
        )
    )


def unsent(topic: str, partition: int | None) -> RecordMetadata:
    """Return the metadata of a record that was not sent."""
    return RecordMetadata(_Report(topic, -1 if partition is None else partition))


class ConsumerRecord(msgspec.Struct, frozen=True, eq=False, gc=False):
    """One consumed record; `key` and `value` are deserialized, bytes without a deserializer.

    `value` is None for a tombstone.
    """

    _message: Any
    value: Any

    @property
    def topic(self) -> str:
        """The topic of the record."""
        return str(self._message.topic())

    @property
    def partition(self) -> int:
        """The partition of the record."""
        return int(self._message.partition())

    @property
    def topic_partition(self) -> TopicPartition:
        """The topic and the partition of the record."""
        return TopicPartition(self.topic, self.partition)

    @property
    def offset(self) -> int:
        """The offset of the record in its partition."""
        return int(self._message.offset())

    @property
    def key(self) -> Any:
        """The key, or None."""
        return self._message.key()

    @property
    def headers(self) -> Sequence[Header]:
        """The headers in order; a name may occur more than once."""
        return self._message.headers() or ()

    @property
    def timestamp(self) -> int:
        """The timestamp in ms, or -1."""
        return int(self._message.timestamp()[1])

    @property
    def timestamp_type(self) -> str:
        """The origin of the timestamp: "create", "logappend" or "unknown"."""
        return _TIMESTAMP_TYPES[self._message.timestamp()[0]]

    @property
    def leader_epoch(self) -> int | None:
        """The leader epoch of the record's batch, or None."""
        epoch: int | None = self._message.leader_epoch()
        return epoch

    def header(self, name: str) -> bytes | None:
        """Return the last value of a header, or None."""
        return next((value for key, value in reversed(self.headers) if key == name), None)

    def with_values(self, key: Any, value: Any) -> "ConsumerRecord":
        """Return this record with another key and value, as interceptors do."""
        return DeserializedRecord(self._message, value, key)

    def _fields(self) -> tuple[Any, ...]:
        position = self.topic, self.partition, self.offset, self.timestamp
        return (*position, self.key, self.value, tuple(self.headers))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConsumerRecord) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash((self.topic, self.partition, self.offset))

    def __repr__(self) -> str:
        return (
            f"ConsumerRecord(topic={self.topic!r}, partition={self.partition}, "
            f"offset={self.offset}, key={self.key!r}, value={self.value!r})"
        )

    def _repr_html_(self) -> str:
        """Return the record as a table for notebooks."""
        rows = {
            "topic": self.topic_partition,
            "offset": self.offset,
            "timestamp": self.timestamp,
            "key": self.key,
            "value": self.value,
            "headers": list(self.headers),
        }
        return html_table(["field", "value"], rows.items())


class DeserializedRecord(ConsumerRecord, frozen=True, eq=False, gc=True):
    """A consumed record with its deserialized key and value, which may be objects of any kind."""

    key: Any


Offsets = ConsumerRecord | Iterable[ConsumerRecord] | Mapping[Any, int | OffsetAndMetadata]
"""The offsets to commit: records (the next offset of each is committed), or next offsets by
partition.
"""
Committed = dict[TopicPartition, OffsetAndMetadata]


def next_offsets(offsets: Offsets) -> Committed:
    """Return the offsets to commit: those after records, or the caller's own.

    Raises ClientError for a negative offset, TypeError for a value of another form.
    """
    if isinstance(offsets, ConsumerRecord):
        offsets = [offsets]
    committed: Committed = {}
    if isinstance(offsets, Mapping):
        for partition, value in offsets.items():
            key = partition_of(partition)
            metadata = value.metadata if isinstance(value, OffsetAndMetadata) else ""
            committed[key] = OffsetAndMetadata(
                checked_offset(key, value), _checked_metadata(key, metadata)
            )
        return committed
    for record in offsets if isinstance(offsets, Iterable) else [offsets]:
        if not isinstance(record, ConsumerRecord):
            raise TypeError(
                f"{record!r} is not a record: commit records, or a dict of partitions and next "
                "offsets, as in {('orders', 0): 5}"
            )
        key = record.topic_partition
        if key not in committed or committed[key].offset <= record.offset:
            committed[key] = OffsetAndMetadata(record.offset + 1)
    return committed


def _checked_metadata(key: TopicPartition, metadata: Any) -> str:
    if metadata is None:
        # As in Java.
        return ""
    if isinstance(metadata, str) and is_native_text(metadata):
        return metadata
    raise TypeError(
        f"the metadata {metadata!r} of the offset of {key} is no text without NUL characters and "
        "lone surrogates"
    )


def checked_offset(
    key: TopicPartition, offset: int | OffsetAndMetadata, others: Collection[int] = ()
) -> int:
    """Return the number of an offset; ClientError if it is negative and not one of `others`."""
    number = operator.index(offset.offset if isinstance(offset, OffsetAndMetadata) else offset)
    if number < 0 and number not in others:
        raise ClientError(f"{number} is not an offset of {key}: offsets begin with 0")
    if number > _OFFSET_MAX:
        raise ClientError(f"{number} is not an offset of {key}: use at most {_OFFSET_MAX}")
    return number


def html_table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return an HTML table; every text is escaped."""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_shown(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _shown(cell: Any) -> str:
    text = cell.decode("utf-8", "backslashreplace") if isinstance(cell, bytes) else str(cell)
    return text if len(text) <= 200 else text[:199] + "…"
