"""Record batches to Arrow columns, without a Python object for each record.

Each call converts the bytes of a Fetch response to one Arrow record batch. One pass in Python finds
the start of each record, numpy reads the varints of all records at once, and Arrow copies keys and
values with one `take` over the fetched bytes. Bulk readers use it (`ottla.client.read_table`, the
Spark source); it does not use sockets. Semantics follow `records.decode_batch` and
org.apache.kafka.clients.consumer.internals.CompletedFetch: control batches and aborted transactions
are left out. Damage raises the same ApiErrors; no bytes outside the given ones are read.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ottla.base.buffers import Buffer
from ottla.base.errors import ApiError, ErrorCode
from ottla.wire.records import batch
from ottla.wire.records.batch import BatchHeader
from ottla.wire.records.columnar_arrays import HEADERS_TYPE, decode_headers, slices
from ottla.wire.records.columnar_varints import Bytes, Integers, find_starts, read_varints
from ottla.wire.records.compression import DECOMPRESSED_BYTES_MAX
from ottla.wire.records.control import ControlType, parse_marker
from ottla.wire.records.records import decode_batch, read_body

# Names and types as in Spark's Kafka connector; Spark's timestamps are in microseconds. Later times
# of a log are the last one that 64 bits of them have.
_TIMESTAMP_MAX_MS = 2**63 // 1000 - 1
COLUMNS = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("timestampType", pa.int32()),
        pa.field("headers", HEADERS_TYPE),
    ]
)

# A group of batches that becomes one Arrow batch; its size bounds memory if the data is compressed.
_GROUP_BYTES = 64 * 1024 * 1024


class AbortedTransaction(NamedTuple):
    """An entry of a Fetch response: skip this producer's transactional batches from this offset on."""

    producer_id: int
    first_offset: int


class Extent(NamedTuple):
    """The size of the whole batches in a Fetch response, and the offset after the last of them."""

    size_bytes: int
    next_offset: int


def measure(records: Buffer) -> Extent | None:
    """Find the end of the last whole batch; None if there is no whole batch.

    Cheap enough to be called before decoding, so that the next Fetch request can be sent first.
    """
    position = 0
    last = -1
    size = len(records)
    while size - position >= batch.HEADER_SIZE:
        following = position + batch.peek_size(records, position)
        if following > size:
            break
        if following < position + batch.HEADER_SIZE:
            raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"There is no batch at byte {position}.")
        last, position = position, following
    if last < 0:
        return None
    return Extent(position, batch.parse_header(records, last).last_offset + 1)


class _Group(NamedTuple):
    """Batches whose records are in one buffer: `spans` are the byte ranges of each batch's records."""

    source: Buffer
    headers: list[BatchHeader]
    spans: list[tuple[int, int]]


@dataclass(frozen=True)
class ColumnDecoder:
    """A decoder of one partition's fetched batches into the requested columns, in their order."""

    topic: str
    partition: int
    columns: Sequence[str]
    checks_crc: bool = True
    max_bytes: int = DECOMPRESSED_BYTES_MAX
    schema: pa.Schema = field(init=False)

    def __post_init__(self) -> None:
        fields = [COLUMNS.field(name) for name in self.columns]
        object.__setattr__(self, "schema", pa.schema(fields))

    def decode(
        self,
        records: Buffer,
        start: int,
        end: int,
        aborted: Sequence[AbortedTransaction] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the records with offsets in [start, end) as Arrow batches, none of them empty.

        `aborted` is the list of a read_committed Fetch response. The Arrow batches do not refer to
        `records`.
        """
        selected = list(self._select(records, start, end, aborted or ()))
        for group in self._groups(records, selected):
            columns = _decode_group(self, group, start, end)
            if columns is not None:
                yield columns

    def _select(
        self, records: Buffer, start: int, end: int, aborted: Sequence[AbortedTransaction]
    ) -> Iterator[tuple[int, BatchHeader]]:
        filtered = _AbortedFilter(aborted)
        position = 0
        while len(records) - position >= batch.HEADER_SIZE:
            header = batch.parse_header(records, position)
            if header.magic != batch.MAGIC or header.size_bytes < batch.HEADER_SIZE:
                raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"There is no batch at byte {position}.")
            if position + header.size_bytes > len(records) or header.base_offset >= end:
                return
            if self.checks_crc:
                batch.check_crc(records, position, header)
            is_visible = filtered.admits(records, position, header)
            if is_visible and header.last_offset >= start and header.records_count:
                yield position, header
            position += header.size_bytes

    def _groups(
        self, records: Buffer, selected: Sequence[tuple[int, BatchHeader]]
    ) -> Iterator[_Group]:
        if not any(header.compression for _, header in selected):
            spans = [
                (position + batch.HEADER_SIZE, position + header.size_bytes)
                for position, header in selected
            ]
            yield _Group(records, [header for _, header in selected], spans)
            return
        bodies: list[bytes] = []
        headers: list[BatchHeader] = []
        for position, header in selected:
            bodies.append(read_body(records, position, header, max_bytes=self.max_bytes))
            headers.append(header)
            if sum(map(len, bodies)) >= _GROUP_BYTES:
                yield _joined(bodies, headers)
                bodies, headers = [], []
        yield _joined(bodies, headers)


def _joined(bodies: Sequence[bytes], headers: list[BatchHeader]) -> _Group:
    ends = np.cumsum([len(body) for body in bodies]).tolist()
    spans = list(zip([0, *ends], ends, strict=False))
    return _Group(b"".join(bodies), headers, spans)


class _AbortedFilter:
    """A filter for control batches and the batches of aborted transactions."""

    def __init__(self, aborted: Sequence[AbortedTransaction]) -> None:
        self._waiting = sorted(
            aborted, key=lambda transaction: transaction.first_offset, reverse=True
        )
        self._aborting: set[int] = set()

    def admits(self, records: Buffer, position: int, header: BatchHeader) -> bool:
        """Return True if a consumer sees the batch; call it for every batch, in order."""
        while self._waiting and self._waiting[-1].first_offset <= header.last_offset:
            self._aborting.add(self._waiting.pop().producer_id)
        if header.is_control:
            if header.producer_id in self._aborting and _is_abort(records, position, header):
                self._aborting.discard(header.producer_id)
            return False
        return not (header.is_transactional and header.producer_id in self._aborting)


def _is_abort(records: Buffer, position: int, header: BatchHeader) -> bool:
    markers = [parse_marker(record) for record in decode_batch(records, position, header=header)]
    return any(marker is not None and marker.type is ControlType.ABORT for marker in markers)


def _invalid(reason: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_RECORD, f"The records of a batch are damaged: {reason}.")


class _Fields(NamedTuple):
    """Positions in the source of the fields of all records, and the decoded numbers."""

    timestamp_deltas: Integers
    offset_deltas: Integers
    key_sizes: Integers
    key_starts: Integers
    key_ends: Integers
    value_sizes: Integers
    value_starts: Integers
    value_ends: Integers
    ends: Integers


def _read_fields(data: Bytes, starts: Integers) -> _Fields:
    try:
        sizes, position = read_varints(data, starts)
        ends = position + sizes
        # One unused byte of attributes comes first.
        timestamp_deltas, position = read_varints(data, position + 1)
        offset_deltas, position = read_varints(data, position)
        key_sizes, key_starts = read_varints(data, position)
        _check_sizes(key_sizes, key_starts, ends)
        key_ends = key_starts + np.maximum(key_sizes, 0)
        value_sizes, value_starts = read_varints(data, key_ends)
        _check_sizes(value_sizes, value_starts, ends)
        value_ends = value_starts + np.maximum(value_sizes, 0)
    except IndexError as error:
        raise _invalid("a field goes past the end") from error
    return _Fields(
        timestamp_deltas,
        offset_deltas,
        key_sizes,
        key_starts,
        key_ends,
        value_sizes,
        value_starts,
        value_ends,
        ends,
    )


def _check_sizes(sizes: Integers, starts: Integers, ends: Integers) -> None:
    # Subtracting cannot overflow; adding a hostile size could. The byte at the end of the record's
    # second-last field must exist, hence the strict comparison.
    if (sizes >= ends - starts).any():
        raise _invalid("a field is longer than its record")


def _decode_group(
    decoder: ColumnDecoder, group: _Group, start: int, end: int
) -> pa.RecordBatch | None:
    if not group.headers:
        return None
    data = np.frombuffer(group.source, np.uint8)
    counts = [header.records_count for header in group.headers]
    starts = find_starts(group.source, data, group.spans, counts)
    fields = _read_fields(data, starts)
    columns = _Columns(decoder, group, data, np.array(counts), fields)
    arrays = [columns.build(name) for name in decoder.columns]
    offsets = columns.offsets
    batch = pa.RecordBatch.from_arrays(arrays, schema=decoder.schema)
    first, last = np.searchsorted(offsets, (start, end)).tolist()
    if (first, last) == (0, len(offsets)):
        return batch
    return batch.slice(first, last - first) if last > first else None


class _Columns:
    """The columns of one group, each built on request."""

    def __init__(
        self, decoder: ColumnDecoder, group: _Group, data: Bytes, counts: Integers, fields: _Fields
    ) -> None:
        self._decoder = decoder
        self._source = group.source
        self._headers = group.headers
        self._data = data
        self._counts = counts
        self._fields = fields
        self.offsets = self._per_batch("base_offset") + fields.offset_deltas

    def _per_batch(self, name: str) -> Integers:
        """Return a field of the batch header, repeated for each record of the batch."""
        values = np.array([getattr(header, name) for header in self._headers], np.int64)
        return np.repeat(values, self._counts)

    def build(self, name: str) -> pa.Array:
        """Return the column with this name."""
        return _BUILDERS[name](self)

    def _key(self) -> pa.Array:
        fields = self._fields
        return slices(self._source, fields.key_starts, fields.key_ends, fields.key_sizes < 0)

    def _value(self) -> pa.Array:
        fields = self._fields
        return slices(self._source, fields.value_starts, fields.value_ends, fields.value_sizes < 0)

    def _topic(self) -> pa.Array:
        return pa.repeat(pa.scalar(self._decoder.topic, pa.string()), len(self.offsets))

    def _partition(self) -> pa.Array:
        return pa.array(np.full(len(self.offsets), self._decoder.partition, np.int32))

    def _offset(self) -> pa.Array:
        return pa.array(self.offsets)

    def _timestamp(self) -> pa.Array:
        times = self._per_batch("base_timestamp") + self._fields.timestamp_deltas
        if any(header.has_log_append_time for header in self._headers):
            appended = self._per_batch("has_log_append_time").astype(bool)
            times = np.where(appended, self._per_batch("max_timestamp"), times)
        kind = COLUMNS.field("timestamp").type
        times = np.minimum(times, _TIMESTAMP_MAX_MS) * 1000
        return pa.Array.from_buffers(kind, len(times), [None, pa.py_buffer(times)])

    def _timestamp_type(self) -> pa.Array:
        # The flag is the type: 0 for CreateTime, 1 for LogAppendTime.
        return pa.array(self._per_batch("has_log_append_time").astype(np.int32))

    def _record_headers(self) -> pa.Array:
        return decode_headers(self._source, self._data, self._fields.value_ends, self._fields.ends)


_BUILDERS: dict[str, Callable[[_Columns], pa.Array]] = {
    "key": _Columns._key,
    "value": _Columns._value,
    "topic": _Columns._topic,
    "partition": _Columns._partition,
    "offset": _Columns._offset,
    "timestamp": _Columns._timestamp,
    "timestampType": _Columns._timestamp_type,
    "headers": _Columns._record_headers,
}
