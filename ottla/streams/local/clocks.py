"""The times of a task that its stores do not have: stream time, and those of operators.

They are committed with the offsets (model/committed_times.py), so that a task that continues
elsewhere drops the same late records.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ottla.streams.model.committed_times import STREAM_TIME
from ottla.streams.task.task import Task

# The numbers of stores that are not in their maps.
_OF_STORES = (
    *("_sequence", "_logged", "_latest", "size_bytes"),
    *("stream_time", "min_time", "next_emit_ms"),
)
_OPERATORS = "ottla.streams.operators."


def times_of(task: Task) -> dict[str, int]:
    """Return the stream time of a task, and the numbers of its operators and stores."""
    times = {STREAM_TIME: task.stream_time}
    for part, name, value in _numbers(task):
        times[f"{part}.{name}"] = value
    return times


def set_times(task: Task, times: Mapping[str, int]) -> None:
    """Set what `times_of` returned; a number that the task does not have is ignored."""
    task.stream_time = times.get(STREAM_TIME, task.stream_time)
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
