"""Encode Arrow columns as record batches, the inverse of `columnar`.

The rows of one partition become batches of a limited size, each with its own offset and timestamp
deltas. One Arrow join over precomputed varint columns encodes all rows. A batch is returned as a
header and a payload that refers to the joined bytes, ready for a gathering write. The sender
manages sequence numbers and retries.
"""

import functools
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ottla.base.buffers import Buffer
from ottla.wire.records import batch
from ottla.wire.records.columnar_varints import Integers, encode_varints
from ottla.wire.records.compression import compress
from ottla.wire.records.spans import varint

_PREFIX = struct.Struct(">qiibI")
_REST = struct.Struct(">hiqqqhii")
_SEQUENCE_MASK = 0x7FFFFFFF
# Attributes and the varints of a record, rounded up.
_RECORD_OVERHEAD_BYTES = 24
_HEADER_OVERHEAD_BYTES = 6
# Rows that are joined at a time: Arrow's binary arrays end at 2 GiB.
_GROUP_BYTES = 64 * 1024 * 1024


@functools.cache
def _separator() -> pa.Scalar:
    # Not at import: the first pyarrow value imports pandas, which takes a second.
    return pa.scalar(b"", pa.binary())


class _Part(NamedTuple):
    """A piece of each row's bytes, or the same bytes for all rows; and its length."""

    data: pa.Array | bytes
    lengths: Integers | int


# The varints of 0 and of -1.
_ZERO = _Part(b"\x00", 1)
_NULL = _Part(b"\x01", 1)


@dataclass(frozen=True)
class Rows:
    """The rows for one partition: arrays of equal length; None means null in every row.

    `keys` and `values` are binary, `headers` a list of structs (key, value), `timestamps`
    milliseconds.
    """

    values: pa.Array
    keys: pa.Array | None
    headers: pa.Array | None
    timestamps: Integers

    def slice(self, start: int, end: int) -> "Rows":
        """Return the rows [start, end) without a copy."""
        count = end - start
        return Rows(
            self.values.slice(start, count),
            None if self.keys is None else self.keys.slice(start, count),
            None if self.headers is None else self.headers.slice(start, count),
            self.timestamps[start:end],
        )


class Sender(NamedTuple):
    """An idempotent producer's id, epoch and next sequence number; -1 without idempotence."""

    producer_id: int = batch.NO_PRODUCER_ID
    producer_epoch: int = -1
    next_sequence: int = batch.NO_SEQUENCE

    def after(self, count: int) -> "Sender":
        """Return the sender's state after it has written `count` records."""
        if self.next_sequence == batch.NO_SEQUENCE:
            return self
        return self._replace(next_sequence=(self.next_sequence + count) & _SEQUENCE_MASK)

    def before(self, count: int) -> "Sender":
        """Return the sender's state before it had written `count` records."""
        return self.after(-count)


class EncodedBatch(NamedTuple):
    """One sealed batch in two parts, to be sent one after the other."""

    header: bytes
    payload: Buffer
    records_count: int

    @property
    def size_bytes(self) -> int:
        """Size of the whole batch in bytes."""
        return len(self.header) + len(self.payload)


def encode_rows(
    rows: Rows,
    *,
    batch_bytes: int,
    compression: int = 0,
    sender: Sender | None = None,
    transactional: bool = False,
) -> Iterator[EncodedBatch]:
    """Yield batches of about `batch_bytes` before compression; a larger row gets its own batch."""
    sender = sender or Sender()
    attributes = compression | (batch.TRANSACTIONAL_BIT if transactional else 0)
    sizes = _estimate_sizes(rows)
    for start, end in _split(sizes, _GROUP_BYTES):
        group = rows.slice(start, end)
        bounds = list(_split(sizes[start:end], batch_bytes))
        for encoded in _encode_group(group, bounds, attributes, sender):
            yield encoded
            sender = sender.after(encoded.records_count)


def _estimate_sizes(rows: Rows) -> Integers:
    sizes = _lengths(rows.values) + _RECORD_OVERHEAD_BYTES
    if rows.keys is not None:
        sizes += _lengths(rows.keys)
    if rows.headers is not None:
        parts, counts = _header_parts(rows.headers)
        sizes += _lengths(parts) + counts * _HEADER_OVERHEAD_BYTES
    return sizes


def _lengths(binaries: pa.Array) -> Integers:
    if len(binaries) and not binaries.null_count:
        return np.diff(_offsets_of(binaries))
    lengths = pc.binary_length(binaries).fill_null(0)
    return np.asarray(lengths, np.int64)


def _split(sizes: Integers, limit: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows whose total size is within the limit, each with at least one row."""
    sums = np.cumsum(sizes)
    start = 0
    before = 0
    while start < len(sizes):
        end = max(start + 1, int(np.searchsorted(sums, before + limit, "right")))
        yield start, end
        start, before = end, int(sums[end - 1])


def _encode_group(
    rows: Rows, bounds: list[tuple[int, int]], attributes: int, sender: Sender
) -> Iterator[EncodedBatch]:
    starts = np.array([start for start, _ in bounds], np.int64)
    counts = np.array([end - start for start, end in bounds], np.int64)
    offset_deltas = np.arange(len(rows.values)) - np.repeat(starts, counts)
    base_timestamps = rows.timestamps[starts]
    timestamp_deltas = rows.timestamps - np.repeat(base_timestamps, counts)
    newest = np.maximum.reduceat(rows.timestamps, starts)
    joined = _encode(rows, offset_deltas, timestamp_deltas)
    positions = _offsets_of(joined)
    data = memoryview(joined.buffers()[2] or b"")
    for index, (start, end) in enumerate(bounds):
        payload: Buffer = data[positions[start] : positions[end]]
        if attributes & batch.COMPRESSION_MASK:
            payload = compress(attributes & batch.COMPRESSION_MASK, payload)
        times = int(base_timestamps[index]), int(newest[index])
        yield _seal(payload, end - start, attributes, times, sender)
        sender = sender.after(end - start)


def _seal(
    payload: Buffer, count: int, attributes: int, times: tuple[int, int], sender: Sender
) -> EncodedBatch:
    rest = _REST.pack(attributes, count - 1, *times, *sender, count)
    checksum = batch.crc32c(payload, batch.crc32c(rest))
    length = batch.HEADER_SIZE - batch.LOG_OVERHEAD + len(payload)
    prefix = _PREFIX.pack(0, length, batch.NO_LEADER_EPOCH, batch.MAGIC, checksum)
    return EncodedBatch(prefix + rest, payload, count)


def _offsets_of(binaries: pa.Array) -> Integers:
    offsets = np.frombuffer(binaries.buffers()[1], np.int32)
    return offsets[binaries.offset : binaries.offset + len(binaries) + 1].astype(np.int64)


def _encode(rows: Rows, offset_deltas: Integers, timestamp_deltas: Integers) -> pa.Array:
    """Return the encoded records with their length prefix, as one binary array."""
    # Attributes come first; they are always zero.
    parts = [_ZERO, _varints(timestamp_deltas), _varints(offset_deltas)]
    parts += [_NULL] if rows.keys is None else _sized(rows.keys)
    parts += _sized(rows.values)
    if rows.headers is None:
        parts.append(_ZERO)
    else:
        headers, counts = _header_parts(rows.headers)
        parts += [_varints(counts), _Part(headers, _lengths(headers))]
    lengths = np.zeros(len(rows.values), np.int64)
    for part in parts:
        lengths += part.lengths
    return _join([_varints(lengths), *parts])


def _join(parts: list[_Part]) -> pa.Array:
    """Return the concatenated parts of each row; at least one part is an array."""
    merged: list[pa.Array | bytes] = []
    for part, _ in parts:
        if isinstance(part, bytes) and merged and isinstance(merged[-1], bytes):
            merged[-1] += part
        else:
            merged.append(part)
    columns = [
        pa.scalar(column, pa.binary()) if isinstance(column, bytes) else column for column in merged
    ]
    return pc.binary_join_element_wise(*columns, _separator())


def _varints(values: Integers) -> _Part:
    """Return the varint of each number; only one if all numbers are equal, which is much cheaper."""
    if len(values) and (values == values[0]).all():
        alone = varint(int(values[0]))
        return _Part(alone, len(alone))
    encoded = encode_varints(values)
    return _Part(encoded, _lengths(encoded))


def _sized(binaries: pa.Array) -> list[_Part]:
    """Return the length of each value (-1 for null) and the bytes."""
    lengths = sizes = _lengths(binaries)
    if binaries.null_count:
        sizes = np.where(pc.is_null(binaries).to_numpy(zero_copy_only=False), -1, lengths)
        binaries = binaries.fill_null(b"")
    return [_varints(sizes), _Part(binaries, lengths)]


def _header_parts(headers: pa.Array) -> tuple[pa.Array, Integers]:
    """Return the encoded headers of each row as one binary array, and the number of headers per
    row.
    """
    counts = pc.list_value_length(headers).fill_null(0).to_numpy(zero_copy_only=False)
    counts = counts.astype(np.int64)
    pairs = headers.flatten()
    names = pairs.field("key").cast(pa.binary())
    if names.null_count:
        raise ValueError("a header has no name")
    values = pairs.field("value").cast(pa.binary())
    encoded = _join([*_sized(names), *_sized(values)])
    # Consecutive headers are adjacent, so that the headers of a row are one range of bytes.
    bounds = np.zeros(len(headers) + 1, np.int64)
    np.cumsum(counts, out=bounds[1:])
    offsets = _offsets_of(encoded)[bounds].astype(np.int32)
    data = encoded.buffers()[2] or pa.py_buffer(b"")
    return pa.Array.from_buffers(
        pa.binary(), len(headers), [None, pa.py_buffer(offsets), data]
    ), counts
