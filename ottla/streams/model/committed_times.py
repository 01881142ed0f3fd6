"""The times of a task in the metadata of its committed offsets.

The form is that of Kafka Streams for the partition time and for numbers of processors
(TopicPartitionMetadata, version 2).
"""

import base64
import struct
from collections.abc import Mapping

STREAM_TIME = "t"
"""The name of the stream time among the times of a task."""
_VERSION = 2
_HEAD = struct.Struct(">bqi")
_LENGTH = struct.Struct(">i")
_VALUE = struct.Struct(">q")


def encode(partition_time: int, times: Mapping[str, int]) -> str:
    """Return the metadata of a committed offset."""
    rows = [
        _LENGTH.pack(len(name.encode())) + name.encode() + _VALUE.pack(value)
        for name, value in times.items()
    ]
    head = _HEAD.pack(_VERSION, partition_time, len(rows))
    return base64.b64encode(head + b"".join(rows)).decode()


def decode(metadata: str) -> dict[str, int]:
    """Return the numbers in the metadata of a committed offset; empty for another form."""
    try:
        return _decoded(base64.b64decode(metadata.rstrip("\0"), validate=True))
    except (ValueError, struct.error):
        return {}


def _decoded(data: bytes) -> dict[str, int]:
    version, partition_time, count = _HEAD.unpack_from(data)
    if version != _VERSION:
        return {}
    times, at = {STREAM_TIME: partition_time}, _HEAD.size
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        if length < 0:
            raise ValueError("a name of negative length")
        name = data[at : at + length].decode()
        at += length
        (times[name],) = _VALUE.unpack_from(data, at)
        at += _VALUE.size
    return times
