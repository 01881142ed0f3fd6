"""Arrow arrays built from record bytes: keys, values, and headers as lists of structs.

Part of `columnar`. Positions come from numpy and have been checked there; positions inside the
headers are checked here. Every array owns its bytes: nothing refers to the source afterwards.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ottla.base.buffers import Buffer
from ottla.base.errors import ApiError, ErrorCode
from ottla.wire.records.columnar_varints import Bytes, Integers, read_varint, read_varints

# As in Spark's Kafka connector; null if a record has no headers.
HEADERS_TYPE = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))

# Headers are read in passes: the first header of all records, then the second, and so on. A record
# with more headers than this would need passes of its own, so it is read separately.
_ROUNDS_MAX = 32


def slices(
    source: Buffer, starts: Integers, ends: Integers, is_null: npt.NDArray[np.bool_]
) -> pa.Array:
    """Return the binary array of the byte ranges [starts, ends) of `source`, which must be
    ascending.

    The ranges and the gaps between them are one Arrow array over the source; a single `take` then
    copies the ranges.
    """
    count = len(starts)
    if count == 0:
        return pa.array([], pa.binary())
    bounds = np.empty((count, 2), np.int32)
    bounds[:, 0] = starts
    bounds[:, 1] = ends
    alternating = pa.Array.from_buffers(
        pa.binary(), 2 * count - 1, [None, pa.py_buffer(bounds), pa.py_buffer(source)]
    )
    indexes = np.arange(0, 2 * count, 2)
    return alternating.take(pa.array(indexes, mask=is_null if is_null.any() else None))


class _HeaderPositions:
    """The positions of the names and values of all headers, in the order of the records."""

    def __init__(self, total: int) -> None:
        self.name_starts = np.zeros(total, np.int64)
        self.name_ends = np.zeros(total, np.int64)
        self.value_starts = np.zeros(total, np.int64)
        self.value_ends = np.zeros(total, np.int64)
        self.value_is_null = np.zeros(total, bool)

    def read(self, data: Bytes, slots: Integers, position: Integers, ends: Integers) -> Integers:
        """Read one header at each position into its slot; return the positions after them."""
        name_sizes, name_starts = read_varints(data, position)
        if (name_sizes < 0).any() or (name_sizes >= ends - name_starts).any():
            raise _invalid("a header's name does not fit")
        name_ends = name_starts + name_sizes
        value_sizes, value_starts = read_varints(data, name_ends)
        if (value_sizes > ends - value_starts).any():
            raise _invalid("a header's value does not fit")
        value_ends = value_starts + np.maximum(value_sizes, 0)
        self.name_starts[slots] = name_starts
        self.name_ends[slots] = name_ends
        self.value_starts[slots] = value_starts
        self.value_ends[slots] = value_ends
        self.value_is_null[slots] = value_sizes < 0
        return value_ends

    def read_alone(self, source: Buffer, slots: range, position: int, end: int) -> int:
        """Read the headers of one record; return the position after them."""
        for slot in slots:
            name_size, name_start = read_varint(source, position)
            name_end = name_start + name_size
            if name_size < 0 or name_end >= end:
                raise _invalid("a header's name does not fit")
            value_size, value_start = read_varint(source, name_end)
            position = value_start + max(value_size, 0)
            if position > end:
                raise _invalid("a header's value does not fit")
            self.name_starts[slot], self.name_ends[slot] = name_start, name_end
            self.value_starts[slot], self.value_ends[slot] = value_start, position
            self.value_is_null[slot] = value_size < 0
        return position


def _invalid(reason: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_RECORD, f"The records of a batch are damaged: {reason}.")


def decode_headers(source: Buffer, data: Bytes, position: Integers, ends: Integers) -> pa.Array:
    """Return the headers column for records whose header counts are at `position`."""
    try:
        counts, position = read_varints(data, position)
        # A header takes at least two bytes.
        if (counts < 0).any() or (counts > (ends - position) // 2).any():
            raise _invalid("more headers are counted than fit")
        positions = _HeaderPositions(int(counts.sum()))
        slots = np.cumsum(counts) - counts
        for row in np.flatnonzero(counts > _ROUNDS_MAX).tolist():
            own = range(int(slots[row]), int(slots[row] + counts[row]))
            position[row] = positions.read_alone(source, own, int(position[row]), int(ends[row]))
        rows = np.flatnonzero((counts > 0) & (counts <= _ROUNDS_MAX))
        for number in range(_ROUNDS_MAX):
            if not rows.size:
                break
            position[rows] = positions.read(data, slots[rows] + number, position[rows], ends[rows])
            rows = rows[counts[rows] > number + 1]
    except IndexError as error:
        raise _invalid("a header goes past the end") from error
    if (position != ends).any():
        raise _invalid("bytes follow the headers")
    return _header_lists(source, positions, counts)


def _header_lists(source: Buffer, positions: _HeaderPositions, counts: Integers) -> pa.Array:
    none_null = np.zeros(len(positions.name_starts), bool)
    raw_names = slices(source, positions.name_starts, positions.name_ends, none_null)
    try:
        names = raw_names.cast(pa.string())
    except pa.ArrowInvalid:
        # As in Kafka's clients, bytes that are not UTF-8 become U+FFFD.
        texts = [name.decode(errors="replace") for name in raw_names.to_pylist()]
        names = pa.array(texts, pa.string())
    values = slices(source, positions.value_starts, positions.value_ends, positions.value_is_null)
    pairs = pa.StructArray.from_arrays([names, values], fields=list(HEADERS_TYPE.value_type))
    bounds = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=bounds[1:])
    # A masked bound makes the list that starts there a null.
    is_null = np.append(counts == 0, False)
    return pa.ListArray.from_arrays(pa.array(bounds, mask=is_null), pairs).cast(HEADERS_TYPE)
