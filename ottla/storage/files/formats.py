"""The entries of the files beside a segment, in big-endian order.

It imports nothing of Ottla, so that a tool that reads one file starts fast.
"""

import struct
from typing import Any

OFFSET_ENTRY = struct.Struct(">ii")
"""Relative offset, position."""
TIME_ENTRY = struct.Struct(">qi")
"""Timestamp, relative offset."""
TRANSACTION_ENTRY = struct.Struct(">hqqqq")
"""Version, producer id, first offset, last offset, last stable offset."""
SNAPSHOT_HEADER = struct.Struct(">hIi")
"""Version, checksum, number of producers."""
SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")
"""Producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, and
the first offset of the open transaction.
"""
SNAPSHOT_VERSION = 1
SNAPSHOT_CRC_START = 6
"""The checksum of a snapshot covers the bytes after it: the count and the entries."""


def whole_entries(entry: struct.Struct, data: bytes) -> list[tuple[Any, ...]]:
    """Return the entries of a file, without an incomplete one at its end."""
    return list(entry.iter_unpack(data[: len(data) // entry.size * entry.size]))
