"""Partitioners: Kafka's own by name, or a function or object of yours (Partitioner, KIP-480).

librdkafka places records with murmur2 of the key, as the Java client does, and keeps records
without a key together in one partition for a batch (sticky). Any other partitioner runs here.
"""

import itertools
import operator
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client.errors import ClientError
from ottla.wire.records.murmur2 import murmur2

_CREATION_S = 5.0
_PAUSE_S = 0.05
_PASSING = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE)


class Topology:
    """The partitions of topics, for partitioners; looked up on first use and every five minutes."""

    def __init__(self, look_up: Callable[[str], Sequence[int]], max_age_s: float = 300.0) -> None:
        self._look_up = look_up
        self._max_age_s = max_age_s
        self._found: dict[str, tuple[float, list[int]]] = {}

    def is_known(self, topic: str) -> bool:
        """Return True if `partitions` returns without a request."""
        return topic in self._found and time.monotonic() < self._found[topic][0]

    def partitions(self, topic: str) -> list[int]:
        """Return the partitions of a topic in order; ApiError if it does not exist after five
        seconds.
        """
        if not self.is_known(topic):
            self._found[topic] = (
                time.monotonic() + self._max_age_s,
                sorted(self._existing(topic)),
            )
        return self._found[topic][1]

    def _existing(self, topic: str) -> Sequence[int]:
        # The look-up creates the topic, and a KRaft cluster confirms that a moment later.
        deadline = time.monotonic() + _CREATION_S
        while True:
            try:
                return self._look_up(topic)
            except ApiError as error:
                if error.code not in _PASSING or time.monotonic() >= deadline:
                    raise
            time.sleep(_PAUSE_S)


class Partitioner(Protocol):
    """The methods of a partitioner object; `configure` and `close` are optional."""

    def partition(
        self, topic: str, key: Any, key_bytes: bytes | None, value: Any, value_bytes: bytes | None,
        topology: Topology,
    ) -> int:  # fmt: skip
        """Return the partition of a record."""
        ...


class RoundRobin:
    """Distributes the records of a topic over its partitions in turn, whatever their keys."""

    def __init__(self) -> None:
        self._turns: dict[str, itertools.count[int]] = defaultdict(itertools.count)
        self._lock = threading.Lock()

    def partition(self, topic: str, *arguments: Any) -> int:
        """Return the next partition."""
        partitions = arguments[-1].partitions(topic)
        with self._lock:
            turn = next(self._turns[topic])
        chosen: int = partitions[turn % len(partitions)]
        return chosen


class FunctionPartitioner:
    """A function of (key bytes, partitions), such as `lambda key, partitions: partitions[0]`."""

    def __init__(self, function: Callable[[bytes | None, Sequence[int]], int]) -> None:
        self._function = function

    def partition(self, topic: str, *arguments: Any) -> int:
        """Return the function's choice."""
        _, key_bytes, _, _, topology = arguments
        return self._function(key_bytes, topology.partitions(topic))


def murmur2_partition(key: bytes, partitions: Sequence[int]) -> int:
    """Return the partition in which every Kafka client places a key."""
    return partitions[(murmur2(key) & 0x7FFFFFFF) % len(partitions)]


def partitioner_from(value: Any, configs: Mapping[str, Any]) -> Any:
    """Return a partitioner object; None if librdkafka is to choose."""
    if value in (None, "murmur2", "sticky"):
        return None
    if value == "round_robin":
        return RoundRobin()
    partitioner = value() if isinstance(value, type) else value
    if not hasattr(partitioner, "partition"):
        if not callable(partitioner):
            raise ConfigError(f"a partitioner is a function or has `partition`: {value!r} has not")
        return FunctionPartitioner(partitioner)
    if hasattr(partitioner, "configure"):
        partitioner.configure(configs)
    return partitioner


def checked(partition: Any, topic: str, partitions: Sequence[int]) -> int:
    """Return a partitioner's result; ClientError if the topic has no such partition."""
    try:
        # Also numpy's integers.
        number = operator.index(partition)
    except TypeError:
        number = -1
    if number not in partitions:
        raise ClientError(
            f"the partitioner returned {partition!r} for topic {topic!r}, which has the partitions "
            f"{partitions[0]} to {partitions[-1]}"
        )
    return number
