"""Zigzag varints of many records at once: find record starts, decode, encode.

The numpy half of the columnar codec. Numbers are 64-bit. A position outside the data raises an
IndexError or is rejected, so that hostile lengths never read other memory.
"""

import functools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ottla.base.buffers import Buffer
from ottla.base.errors import ApiError, ErrorCode

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]

_CONTINUES = 0x80
_VARINT_BYTES_MAX = 10
_SMALL = range(-1, 1 << 16)

# Checking for a run of records of equal size costs as much as stepping over a hundred, so only long
# runs pay off. After a check without a run, the next one comes after that many records, then after
# twice as many.
_RUN_MIN = 256
_PATIENCE = (256, 65536)
_LOOK_AHEAD = 4096


def read_varints(data: Bytes, positions: Integers) -> tuple[Integers, Integers]:
    """Return the numbers at `positions`, and the positions after them."""
    byte = data[positions]
    following = positions + 1
    raw = (byte & 0x7F).astype(np.int64)
    longer = np.flatnonzero(byte >= _CONTINUES)
    shift = 7
    while longer.size:
        if shift >= 7 * _VARINT_BYTES_MAX:
            raise _too_long()
        where = following[longer]
        byte = data[where]
        following[longer] = where + 1
        raw[longer] |= (byte & 0x7F).astype(np.int64) << shift
        longer = longer[byte >= _CONTINUES]
        shift += 7
    # The zigzag shift is unsigned.
    return (raw.view(np.uint64) >> np.uint64(1)).view(np.int64) ^ -(raw & 1), following


def read_varint(source: Buffer, position: int) -> tuple[int, int]:
    """Return the number at `position`, and the position after it."""
    raw = 0
    for shift in range(0, 7 * _VARINT_BYTES_MAX, 7):
        byte = source[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < _CONTINUES:
            return (raw >> 1) ^ -(raw & 1), position
    raise _too_long()


def find_starts(
    source: Buffer, data: Bytes, spans: Sequence[tuple[int, int]], counts: Sequence[int]
) -> Integers:
    """Return the start of each record, at its length field.

    `spans` are the byte ranges of each batch's records in `source`; `data` is the same bytes as an
    array, and `counts` are the expected numbers of records. Raises INVALID_RECORD if lengths,
    counts and spans disagree.
    """
    walk = _Walk(source, data)
    expected = 0
    for (position, end), count in zip(spans, counts, strict=True):
        expected += count
        try:
            ended_at = walk.over(position, end)
        except IndexError as error:
            raise _disagreement() from error
        if ended_at != end or len(walk.starts) != expected:
            raise _disagreement()
    return np.fromiter(walk.starts, np.int64, len(walk.starts))


def _too_long() -> ApiError:
    return ApiError(ErrorCode.INVALID_RECORD, "A number is longer than 10 bytes.")


def _disagreement() -> ApiError:
    return ApiError(ErrorCode.INVALID_RECORD, "The lengths of the records do not fit their batch.")


class _Walk:
    """A walk from record to record that reads only the length of each."""

    def __init__(self, source: Buffer, data: Bytes) -> None:
        self.starts: list[int] = []
        self._source = source
        self._data = data
        self._patience, self._patience_max = _PATIENCE
        self._look_at = 0

    def over(self, position: int, end: int) -> int:
        """Walk over one batch and return where its last record ends."""
        while position < end:
            if len(self.starts) >= self._look_at:
                position = self._skip_run(position, end)
            position = self._step(position, end, self._look_at - len(self.starts))
        return position

    def _skip_run(self, position: int, end: int) -> int:
        """Skip a run of records of one size; does nothing if no run follows."""
        size, width = _size_at(self._source, position)
        count = min((end - position) // size, _LOOK_AHEAD)
        if count >= _RUN_MIN:
            rows = self._data[position : position + count * size].reshape(count, size)
            differs = rows[:, 0] != rows[0, 0]
            for column in range(1, width):
                differs |= rows[:, column] != rows[0, column]
            different = int(differs.argmax())
            # By induction: at the end of each record of the run, the next has the same length.
            count = different or count
            if count >= _RUN_MIN:
                self.starts.extend(range(position, position + count * size, size))
                self._patience = _PATIENCE[0]
                # A run that filled the look-ahead may continue.
                self._look_at = len(self.starts) + (0 if not different else 1)
                return position + count * size
        self._look_at = len(self.starts) + self._patience
        self._patience = min(self._patience * 2, self._patience_max)
        return position

    def _step(self, position: int, end: int, steps: int) -> int:
        source = self._source
        append = self.starts.append
        for _ in range(steps):
            if position >= end:
                break
            append(position)
            size = source[position]
            if size < _CONTINUES:
                position += 1 + (size >> 1)
                continue
            following = source[position + 1]
            if following < _CONTINUES:
                position += 2 + ((size & 0x7F | following << 7) >> 1)
            else:
                position += _size_at(source, position)[0]
        return position


def _size_at(source: Buffer, position: int) -> tuple[int, int]:
    """Return the whole size of a record, and the size of its length field in bytes."""
    size, following = read_varint(source, position)
    if size < 0:
        raise _disagreement()
    return following - position + size, following - position


def encode_varints(values: Integers) -> pa.Array:
    """Return the zigzag varint of each number, as a binary array."""
    if not len(values):
        return pa.array([], pa.binary())
    if values.min() >= _SMALL.start and values.max() < _SMALL.stop:
        return _small_varints().take(pa.array(values - _SMALL.start))
    return _encode_any(values)


@functools.cache
def _small_varints() -> pa.Array:
    """Return the varints of common numbers, computed once: a lookup is faster than encoding."""
    return _encode_any(np.arange(_SMALL.start, _SMALL.stop))


def _encode_any(values: Integers) -> pa.Array:
    raw = ((values << 1) ^ (values >> 63)).view(np.uint64)
    lengths = np.ones(len(raw), np.int32)
    for index in range(1, _VARINT_BYTES_MAX):
        lengths += raw >= np.uint64(1 << (7 * index))
    width = int(lengths.max())
    table = np.empty((len(raw), width), np.uint8)
    for index in range(width):
        table[:, index] = (raw >> np.uint64(7 * index)).astype(np.uint8) & 0x7F
        table[:, index] |= np.where(index + 1 < lengths, _CONTINUES, 0).astype(np.uint8)
    used = table[np.arange(width) < lengths[:, None]]
    offsets = np.zeros(len(raw) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.Array.from_buffers(
        pa.binary(), len(raw), [None, pa.py_buffer(offsets), pa.py_buffer(used)]
    )
