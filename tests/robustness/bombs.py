"""Batches that are small when they are sent and huge when they are decompressed, in every codec."""

import functools
import struct
import zlib
from collections.abc import Iterator

import cramjam
import lz4.frame
import zstandard

from ottla.wire.primitives import encode_uvarint
from ottla.wire.records import batch
from ottla.wire.records.batch import HEADER, HEADER_SIZE, LOG_OVERHEAD, BatchHeader, seal
from ottla.wire.records.compression import GZIP, LZ4, SNAPPY, ZSTD
from ottla.wire.records.records import Record, encode_batch

MIB = 1024 * 1024
# Below max.message.bytes when compressed.
PACKED_BYTES_MAX = MIB


def _zeros(total_bytes: int) -> Iterator[bytes]:
    piece = bytes(MIB)
    for _ in range(total_bytes // MIB):
        yield piece


def _gzip(total_bytes: int) -> bytes:
    stream = zlib.compressobj(9, wbits=31)
    return b"".join(map(stream.compress, _zeros(total_bytes))) + stream.flush()


def _zstd(total_bytes: int) -> bytes:
    stream = zstandard.ZstdCompressor().compressobj()
    return b"".join(map(stream.compress, _zeros(total_bytes))) + stream.flush()


def _lz4(total_bytes: int) -> bytes:
    stream = lz4.frame.LZ4FrameCompressor(block_linked=False)
    parts = [stream.begin(), *map(stream.compress, _zeros(total_bytes)), stream.flush()]
    return b"".join(parts)


def _snappy(total_bytes: int) -> bytes:
    return bytes(cramjam.snappy.compress_raw(bytes(total_bytes)))


def _xerial(total_bytes: int) -> bytes:
    block = _snappy(2 * MIB)
    parts = [b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)]
    for _ in range(total_bytes // (2 * MIB)):
        parts.append(struct.pack(">i", len(block)) + block)
    return b"".join(parts)


def _headers(count: int) -> bytes:
    """Return one record with many headers, each with an empty name and no value."""
    few = Record(b"k", None, (("", None),) * 3, 1_790_000_000_000)
    assert _record(3) == bytes(encode_batch([few]))[HEADER_SIZE:]
    return zstandard.ZstdCompressor().compress(_record(count))


def _record(headers_count: int) -> bytes:
    # Attributes, deltas of timestamp and offset, key, and no value; numbers are doubled (zigzag).
    start = b"\0\0\0\x02k\x01" + encode_uvarint(2 * headers_count)
    content = start + b"\0\x01" * headers_count
    return encode_uvarint(2 * len(content)) + content


# Their decompressed size is the maximum that fits into a request.
BOMBS = {
    "gzip": (GZIP, lambda: _gzip(256 * MIB)),
    "snappy": (SNAPPY, lambda: _snappy(20 * MIB)),
    "snappy-java": (SNAPPY, lambda: _xerial(20 * MIB)),
    "snappy that lies": (SNAPPY, lambda: b"\xff\xff\xff\xff\x0f" + _snappy(MIB)[3:]),
    "lz4": (LZ4, lambda: _lz4(240 * MIB)),
    "zstd": (ZSTD, lambda: _zstd(2048 * MIB)),
    "headers": (ZSTD, lambda: _headers(4_000_000)),
}


def packed(codec: int, payload: bytes, records_count: int = 1) -> bytes:
    """Return a batch of `payload` with a valid checksum and header."""
    model = batch.parse_header(encode_batch([Record(b"k", b"v", (), 1_790_000_000_000)]))
    header: BatchHeader = model._replace(
        attributes=codec,
        records_count=records_count,
        last_offset_delta=records_count - 1,
        batch_length=HEADER_SIZE - LOG_OVERHEAD + len(payload),
    )
    data = bytearray(HEADER.pack(*header)) + payload
    seal(data, 0, len(data))
    return bytes(data)


@functools.cache
def payload(name: str) -> bytes:
    """Return the compressed bytes of a bomb. The tests share them: making them takes a second."""
    return BOMBS[name][1]()


def bomb(name: str) -> bytes:
    """Return a batch that decompresses to far more bytes than its record says."""
    data = packed(BOMBS[name][0], payload(name))
    assert len(data) <= PACKED_BYTES_MAX, len(data)
    return data


@functools.cache
def swarm(count: int, codec: int = ZSTD) -> bytes:
    """Return a valid batch of `count` tiny records that compresses very well."""
    records = [Record(b"k", None, (), 1_790_000_000_000)] * count
    return bytes(encode_batch(records, compression=codec))
