"""Records of formats v0 and v1, written by kafka-python: decoded, and distinguished from garbage."""

import struct
from typing import Any

import pytest
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from ottla.base.errors import ApiError, ErrorCode
from ottla.wire.records import batch, legacy, records
from ottla.wire.records.compression import CODECS

ROWS = [(b"k", b"one"), (None, b"two"), (b"k", None), (b"", b"x" * 2000)]
FORMATS = [
    (magic, codec) for magic in (0, 1) for codec in ("none", "gzip", "snappy", "lz4")
    if (magic, codec) != (0, "lz4")
]  # fmt: skip


def build(magic: int, codec: str, rows: Any = ROWS) -> bytes:
    """Return entries as an old producer sends them, with offsets from 0 and timestamps from 1000."""
    builder = LegacyRecordBatchBuilder(magic, CODECS[codec], 1 << 20)
    for offset, (key, value) in enumerate(rows):
        builder.append(offset, timestamp=1000 + offset if magic else None, key=key, value=value)
    data = builder.build()
    if magic and codec != "none":
        # The broker sets the offset of the last record.
        struct.pack_into(">q", data, 0, len(rows) - 1)
    return bytes(data)


def entries(data: bytes) -> list[tuple[int, batch.BatchHeader]]:
    """Return the position and the header of each entry."""
    result, position = [], 0
    while position < len(data):
        header = legacy.parse_header(data, position)
        assert header is not None
        result.append((position, header))
        position += header.size_bytes
    assert position == len(data)
    return result


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_every_record_is_read(magic: int, codec: str) -> None:
    """Keys, values, offsets and timestamps are decoded with every codec."""
    data = build(magic, codec)
    result: list[records.Record] = []
    for position, header in entries(data):
        assert legacy.is_crc_valid(data, position, header)
        assert (header.magic, header.compression) == (magic, CODECS[codec])
        assert header.leader_epoch == header.producer_id == -1
        result += records.decode_batch(data, position, header=header)
    assert [(record.key, record.value) for record in result] == ROWS
    times = [1000, 1001, 1002, 1003] if magic else [-1] * 4
    assert [record.timestamp for record in result] == times
    assert [record.offset for record in result] == [0, 1, 2, 3]


def test_offsets_in_a_compressed_entry_count_to_its_own() -> None:
    """A broker of format v1 wrote the last offset into the outer entry, and left the inner ones
    relative.
    """
    data = bytearray(build(1, "gzip"))
    struct.pack_into(">q", data, 0, 103)
    ((_, header),) = entries(bytes(data))
    assert (header.base_offset, header.last_offset) == (103, 103)
    actual = records.decode_batch(data, header=header)
    assert [record.offset for record in actual] == [100, 101, 102, 103]
    assert batch.end_offset(data) == 104


def test_log_append_time_applies_to_all_records() -> None:
    """An entry with LogAppendTime has one timestamp for all its records."""
    data = bytearray(build(1, "gzip"))
    data[17] |= batch.LOG_APPEND_TIME_BIT
    struct.pack_into(">q", data, 18, 5000)
    ((_, header),) = entries(bytes(data))
    assert header.has_log_append_time
    assert {record.timestamp for record in records.decode_batch(data, header=header)} == {5000}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        bytes(200),
        b"\xff" * 200,
        build(1, "none")[:25],
        build(0, "none")[:16] + b"\x02" + build(0, "none")[17:],
        # A codec that these formats do not have, and a bit without meaning in v0.
        build(1, "none")[:17] + b"\x04" + build(1, "none")[18:],
        build(0, "none")[:17] + b"\x08" + build(0, "none")[18:],
    ],
)
def test_invalid_bytes_are_no_entry(data: bytes) -> None:
    """Zeros, garbage, too few bytes and another format are no entry."""
    assert legacy.parse_header(data) is None


def test_every_flipped_bit_is_detected() -> None:
    """The checksum or an impossible header detects it, except in offset and size, which have no
    checksum.
    """
    data = build(1, "none", ROWS[:1])
    for at in range(12, len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 1
        header = legacy.parse_header(damaged)
        assert header is None or not legacy.is_crc_valid(damaged, 0, header), at


@pytest.mark.parametrize(
    "inner",
    [b"", b"\0" * 30, build(0, "none")[:-1], build(1, "none", [(b"k" * 50, None)])[:60]],
)
def test_damage_inside_a_compressed_entry_is_corruption(inner: bytes) -> None:
    """The error is CORRUPT_MESSAGE, not a crash."""
    packed = records.compress(CODECS["gzip"], inner)
    body = struct.pack(">BBqii", 1, 1, 1000, -1, len(packed)) + packed
    data = struct.pack(">qiI", 5, len(body) + 4, 0) + body
    header = legacy.parse_header(data)
    assert header is not None
    with pytest.raises(ApiError) as refused:
        records.decode_batch(data, header=header)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
