"""The batches of a segment file, as Apache Kafka's FileLogInputStream reads them."""

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

from ottla.base.errors import OttlaError
from ottla.wire.records import batch
from ottla.wire.records.batch import BatchHeader

# Offset, size and magic of every format; the offset and the size precede what the size counts.
_HEAD = struct.Struct(">qiib")
_LOG_OVERHEAD = 12
_RECORD_OVERHEAD = 14
_ALL = 2**31 - 1


class Batch(NamedTuple):
    """A batch of a segment."""

    position: int
    header: BatchHeader
    data: bytes


class Segment:
    """An open segment; a context manager. `size` is the part that is read, `limit` at most."""

    def __init__(self, path: Path, limit: int = _ALL) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY)
        self._whole_size = os.fstat(self._descriptor).st_size
        self.size = min(self._whole_size, limit)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def batches(self, position: int = 0) -> Iterator[Batch]:
        """Return the batches from a position on, up to one that is incomplete.

        OttlaError, with Apache Kafka's sentence, for a size that no batch has.
        """
        while self.size - position >= _HEAD.size:
            _, size, _, magic = _HEAD.unpack(os.pread(self._descriptor, _HEAD.size, position))
            if size < _RECORD_OVERHEAD:
                raise OttlaError(
                    f"Found record size {size} smaller than minimum record overhead "
                    f"({_RECORD_OVERHEAD}) in file {self.path}."
                )
            if position > self.size - _LOG_OVERHEAD - size:
                return
            if magic < batch.MAGIC:
                raise OttlaError(
                    f"{self.path} has a batch of format {magic} at position {position}: "
                    "`ottla log dump` reads it"
                )
            if _LOG_OVERHEAD + size < batch.HEADER_SIZE:
                raise OttlaError(
                    f"{self.path} has a batch of {_LOG_OVERHEAD + size} bytes at position {position}, "
                    f"and its header alone has {batch.HEADER_SIZE}: the file is damaged"
                )
            data = os.pread(self._descriptor, _LOG_OVERHEAD + size, position)
            yield Batch(position, batch.parse_header(data), data)
            position += len(data)

    def batch_at(self, position: int) -> Batch:
        """Return the batch at a position that an index contains; OttlaError if no batch is there."""
        if position > self._whole_size:
            raise OttlaError(
                f"Slice from position {position} exceeds end position of FileRecords("
                f"size={self._whole_size}, file={self.path}, start=0, end={_ALL})"
            )
        found = next(self.batches(position), None) if position >= 0 else None
        if found is None:
            raise OttlaError(
                f"{self.path} has no complete batch at position {position}, which is in the index: "
                "a broker rebuilds a missing index at its start"
            )
        return found
