"""Records of bytes: the input and output of tasks."""

from collections.abc import Sequence
from typing import NamedTuple

from ottla.streams.model.records import Header


class TopicRecord(NamedTuple):
    """A record of a topic, with key and value as bytes."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Sequence[Header] = ()
    partition: int = 0
    offset: int = 0


class ProducedRecord(NamedTuple):
    """A record that a task wrote; if `partition` is None, the key selects the partition."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Sequence[Header]
    partition: int | None = None
