"""Which requests a fault affects, and how often. Pure, except for a lock: brokers are threads."""

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from ottla.base.errors import ErrorCode
from ottla.wire.api_keys import ApiKey

_TOPICS = ("topics", "topic_data", "v3_and_below_topics", "topic_names")
_PARTITIONS = ("partitions", "partition_data", "partition_indexes", "partition_indices")
_NUMBERS = ("partition_index", "index", "partition")


class Cut(Enum):
    """When a connection is closed instead of a response."""

    BEFORE = "the request has no effect"
    AFTER = "the request has taken effect"


class Effect(NamedTuple):
    """The effect of a fault on a request."""

    delay_seconds: float = 0.0
    code: ErrorCode | None = None
    cut: Cut | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestFilter:
    """The requests that a fault may affect; a field that is None does not matter."""

    api: ApiKey | None = None
    topic: str | None = None
    partition: int | None = None
    client_id: str | None = None
    broker: int | None = None

    @property
    def names_partitions(self) -> bool:
        """True if it depends on the topics of a request."""
        return self.topic is not None or self.partition is not None

    def may_match(self, broker: int, api: ApiKey) -> bool:
        """Return False if no request of an API to a broker matches."""
        return self.broker in (None, broker) and self.api in (None, api)

    def matches(self, client_id: str | None, partitions: Iterable[tuple[str, int | None]]) -> bool:
        """Return True if a request of this client, for these partitions, matches."""
        if self.client_id not in (None, client_id):
            return False
        return not self.names_partitions or any(
            self.topic in (None, topic) and (self.partition is None or number == self.partition)
            for topic, number in partitions
        )


class ClientFault:
    """A fault that is in effect for `count` requests, or without a limit; `hits` counts them."""

    def __init__(self, requests: RequestFilter, effect: Effect, count: int | None) -> None:
        self.requests = requests
        self.effect = effect
        self.hits = 0
        """The number of requests that it has affected."""
        self._count = count
        self._lock = threading.Lock()

    @property
    def is_over(self) -> bool:
        """True if it has affected as many requests as it should."""
        return self._count is not None and self.hits >= self._count

    def take(self, client_id: str | None, partitions: Iterable[tuple[str, int | None]]) -> bool:
        """Return True if it affects a request, which is counted."""
        if not self.requests.matches(client_id, partitions):
            return False
        with self._lock:
            if self.is_over:
                return False
            self.hits += 1
            return True


def named_partitions(
    request: Any, topic_names: Mapping[bytes, str]
) -> Iterator[tuple[str, int | None]]:
    """Yield topic and partition of each part of a request; None for a topic without partitions.

    `topic_names` are the names of topics by id, which newer requests have in place of names.
    """
    for group in getattr(request, "groups", ()):
        yield from named_partitions(group, topic_names)
    for topic in _first(request, _TOPICS):
        name = topic if isinstance(topic, str) else _name(topic, topic_names)
        if name:
            numbers = [_number(item) for item in _first(topic, _PARTITIONS)]
            for number in numbers or [None]:
                yield name, number


def _first(value: Any, names: Iterable[str]) -> Iterable[Any]:
    return next((rows for name in names if (rows := getattr(value, name, None))), ())


def _name(topic: Any, topic_names: Mapping[bytes, str]) -> str | None:
    name = getattr(topic, "name", None) or getattr(topic, "topic", None)
    return name or topic_names.get(getattr(topic, "topic_id", b""))


def _number(item: Any) -> int | None:
    if isinstance(item, int):
        return item
    return next((getattr(item, name) for name in _NUMBERS if hasattr(item, name)), None)
