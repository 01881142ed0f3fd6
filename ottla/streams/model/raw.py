"""Records of topics as bytes: what tasks are given and what they write."""

from collections.abc import Sequence
from typing import NamedTuple

from ottla.streams.model.records import Header


class TopicRecord(NamedTuple):
    """A record of a topic, as bytes."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Sequence[Header] = ()
    partition: int = 0
    offset: int = 0


class ProducedRecord(NamedTuple):
    """A record that a task wrote; partition None: as the key says."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Sequence[Header]
    partition: int | None = None
