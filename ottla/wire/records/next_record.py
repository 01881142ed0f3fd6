"""The first record at or after an offset: the one that a consumer at this offset reads next."""

from collections.abc import Iterator
from typing import NamedTuple

from ottla.base.buffers import Buffer
from ottla.wire.records import batch
from ottla.wire.records.batch import BatchHeader
from ottla.wire.records.compression import DECOMPRESSED_BYTES_MAX
from ottla.wire.records.records import iterate_batch


class NextRecord(NamedTuple):
    """The record, with its timestamp in ms (-1: none)."""

    offset: int
    timestamp: int


def whole_batches(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of each whole batch of the current format; stops at anything else."""
    position = 0
    while position + batch.HEADER_SIZE <= len(buffer):
        header = batch.parse_header(buffer, position)
        size = header.size_bytes
        if header.magic != batch.MAGIC or size < batch.HEADER_SIZE:
            return
        if position + size > len(buffer):
            return
        yield position, header
        position += size


def next_record(
    buffer: Buffer, offset: int, *, max_bytes: int = DECOMPRESSED_BYTES_MAX
) -> tuple[NextRecord | None, int]:
    """Return the first record at or after `offset`, and the offset behind the batches that were
    read.

    Control batches are skipped. ApiError if a batch cannot be decoded.
    """
    after = offset
    for position, header in whole_batches(buffer):
        after = header.last_offset + 1
        if header.is_control or after <= offset:
            continue
        for record in iterate_batch(buffer, position, header, max_bytes=max_bytes):
            if record.offset >= offset:
                return NextRecord(record.offset, record.timestamp), after
    return None, after
