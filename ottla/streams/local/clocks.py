"""The times of a task that its stores do not have: stream time, and those of operators.

They are committed with the offsets, in the form that Kafka Streams has for the partition time and
for numbers of processors (TopicPartitionMetadata, version 2), so that a task that continues
elsewhere drops the same late records.
"""

import base64
import binascii
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from ottla.streams.task.task import Task

_VERSION = 2
_HEAD = struct.Struct(">bqi")
_LENGTH = struct.Struct(">i")
_VALUE = struct.Struct(">q")
_STREAM_TIME = "t"
# The numbers of stores that are not in their maps.
_OF_STORES = (
    *("_sequence", "_logged", "_latest", "size_bytes"),
    *("stream_time", "min_time", "next_emit_ms"),
)
_OPERATORS = "ottla.streams.operators."


def times_of(task: Task) -> dict[str, int]:
    """Return the stream time of a task, and the numbers of its operators and stores."""
    times = {_STREAM_TIME: task.stream_time}
    for part, name, value in _numbers(task):
        times[f"{part}.{name}"] = value
    return times


def set_times(task: Task, times: Mapping[str, int]) -> None:
    """Set what `times_of` returned; a number that the task does not have is ignored."""
    task.stream_time = times.get(_STREAM_TIME, task.stream_time)
    owners = _owners(task)
    for part, name, _ in list(_numbers(task)):
        if (value := times.get(f"{part}.{name}")) is not None:
            setattr(owners[part], name, value)
            if name == "_logged":
                # Restored records of a join have the sequence numbers of the changelog.
                owners[part]._sequence = value


def _owners(task: Task) -> dict[str, Any]:
    """Return operators and stores by short names: metadata of a commit may have 4 096 bytes."""
    operators = {}
    for number, processor in enumerate(task.processors.values()):
        if _is_operator(processor):
            operators[f"p{number}"] = processor
            # The schedule of emission on close is an object of its own.
            parts = {name: part for name, part in vars(processor).items() if _is_operator(part)}
            operators |= {f"p{number}{name}": part for name, part in parts.items()}
    return operators | {f"s{number}": store for number, store in enumerate(task.stores.values())}


def _is_operator(part: object) -> bool:
    return type(part).__module__.startswith(_OPERATORS)


def _numbers(task: Task) -> Iterator[tuple[str, str, int]]:
    for part, owner in _owners(task).items():
        for name, value in vars(owner).items():
            if type(value) is int and (part.startswith("p") or name in _OF_STORES):
                yield part, name, value


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
        data = base64.b64decode(metadata.rstrip("\0"), validate=True)
        version, partition_time, count = _HEAD.unpack_from(data)
    except (binascii.Error, struct.error):
        return {}
    if version != _VERSION:
        return {}
    times, at = {_STREAM_TIME: partition_time}, _HEAD.size
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        name = data[at : at + length].decode()
        at += length
        (times[name],) = _VALUE.unpack_from(data, at)
        at += _VALUE.size
    return times
