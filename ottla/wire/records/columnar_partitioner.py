"""Kafka's default partitioner for a whole column of keys.

murmur2 as in org.apache.kafka.common.utils.Utils: every client that hashes keys this way sends a
key to the same partition, which joins and compaction rely on.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ottla.wire.records.columnar_varints import Bytes, Integers
from ottla.wire.records.murmur2 import MULTIPLIER as _MULTIPLIER
from ottla.wire.records.murmur2 import SEED as _SEED
from ottla.wire.records.murmur2 import murmur2

# Keys are hashed word by word, all at once; long keys separately, so that one does not slow down
# all.
_WORDS_MAX = 64

Hashes = npt.NDArray[np.uint32]


def partitions_of(keys: pa.Array, partition_count: int, partition_of_null: int) -> Integers:
    """Return the partition of each key of a binary array; all rows without a key have the same one."""
    hashes = murmur2_column(keys) & np.uint32(0x7FFFFFFF)
    partitions = hashes.astype(np.int64) % partition_count
    if keys.null_count:
        partitions[keys.is_null().to_numpy(zero_copy_only=False)] = partition_of_null
    return partitions


def murmur2_column(keys: pa.Array) -> Hashes:
    """Return the hash of each key; a null is hashed like an empty key."""
    offsets = np.frombuffer(keys.buffers()[1], np.int32)
    offsets = offsets[keys.offset : keys.offset + len(keys) + 1]
    starts = offsets[:-1].astype(np.int64)
    lengths = np.diff(offsets).astype(np.int64)
    # Words are read four bytes wide, past the end of the last key.
    data = np.concatenate(
        [np.frombuffer(keys.buffers()[2] or b"", np.uint8), np.zeros(4, np.uint8)]
    )
    result = np.uint32(_SEED) ^ lengths.astype(np.uint32)
    words_counts = lengths // 4
    rows = np.flatnonzero(words_counts)
    for index in range(_WORDS_MAX):
        rows = rows[words_counts[rows] > index]
        if not rows.size:
            break
        word = _words(data, starts[rows] + 4 * index) * np.uint32(_MULTIPLIER)
        word = (word ^ word >> np.uint32(24)) * np.uint32(_MULTIPLIER)
        result[rows] = result[rows] * np.uint32(_MULTIPLIER) ^ word
    result = _finish(result, data, starts + 4 * words_counts, lengths - 4 * words_counts)
    for row in np.flatnonzero(words_counts > _WORDS_MAX).tolist():
        result[row] = murmur2(data[starts[row] : starts[row] + lengths[row]].tobytes())
    return result


def _words(data: Bytes, positions: Integers) -> Hashes:
    """Return the little-endian words at these positions."""
    wide = np.ndarray((len(data) - 3,), "<u4", data, strides=(1,))
    return wide[positions]


def _finish(result: Hashes, data: Bytes, positions: Integers, left: Integers) -> Hashes:
    """Add the last one to three bytes, and do the final mixing."""
    multiplier = np.uint32(_MULTIPLIER)
    rows = np.flatnonzero(left)
    mask = (np.uint64(1) << (8 * left[rows]).astype(np.uint64)) - np.uint64(1)
    tail = _words(data, positions[rows]) & mask.astype(np.uint32)
    result[rows] = (result[rows] ^ tail) * multiplier
    result ^= result >> np.uint32(13)
    result *= multiplier
    return result ^ result >> np.uint32(15)
