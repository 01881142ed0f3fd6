"""Requests of a consumer that change nothing: partitions, ends, offsets by time, committed offsets.

While a new leader or coordinator takes over, a lookup is repeated with fresh metadata.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from ottla.base.errors import ApiError, ErrorCode
from ottla.client import transport
from ottla.client.errors import NotReachable, RecordsDenied, TimedOut
from ottla.client.group.coordinator_thread import CoordinatorThread
from ottla.client.records import OffsetAndMetadata, TopicPartition, partition_of

T = TypeVar("T")
Partitions = Iterable[tuple[str, int]]
_PAUSE_S = 0.02
_PAUSE_S_MAX = 0.5
# librdkafka waits for the leader that it knows. The time of an attempt doubles each time.
_FIRST_ATTEMPT_S = 1.0
_log = logging.getLogger("ottla.client")


class Lookups:
    """Looks up facts about the cluster with a consumer's connection.

    During a rebalance librdkafka serves only the thread that calls the listener: a lookup runs in
    the caller's thread if `is_in_callback` returns True. Committed offsets come from `coordinator`,
    if there is one: librdkafka's binding reads their metadata beyond its end.
    """

    def __init__(
        self,
        consumer: Any,
        timeout_s: float,
        waits: transport.Waits,
        is_in_callback: Callable[[], bool] = lambda: False,
        coordinator: CoordinatorThread | None = None,
    ) -> None:
        self._consumer = consumer
        self._waits = waits
        self._timeout_s = timeout_s
        self._is_in_callback = is_in_callback
        self._coordinator = coordinator

    def partitions_for(self, topic: str) -> list[int]:
        """Return the partitions of a topic; ApiError if it does not exist."""

        def request(timeout_s: float) -> list[int]:
            metadata = self._consumer.list_topics(topic, timeout_s).topics[topic]
            if metadata.error is None:
                return sorted(metadata.partitions)
            error = transport.translate(metadata.error)
            if _is_unknown(error):
                raise error
            raise transport.LibrdkafkaError(metadata.error)

        return self._call(request)

    def refused(self, topics: Iterable[str]) -> RecordsDenied | None:
        """Return the error of a topic that the user may not read, None without such a topic.

        librdkafka itself waits until the topic is described.
        """
        for topic in sorted(topics):
            try:
                self.partitions_for(topic)
            except ApiError as error:
                if error.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                    return RecordsDenied(topic, transport.READ)
        return None

    def ends(self, partitions: Partitions) -> dict[TopicPartition, tuple[int, int]]:
        """Return the first offset, and the offset after the last record, of each partition."""
        keys = list(map(partition_of, partitions))
        rows = transport.partitions(dict.fromkeys(keys, transport.STORED))
        return dict(zip(keys, map(self._ends, rows), strict=True))

    def _ends(self, row: Any) -> tuple[int, int]:
        first, last = self._call(
            lambda timeout_s: self._consumer.get_watermark_offsets(row, timeout_s), [row]
        )
        return int(first), int(last)

    def offsets_for_times(
        self, times: Mapping[tuple[str, int], float]
    ) -> dict[TopicPartition, int | None]:
        """Return the first offset at or after a time (ms) in each partition, None without such a
        record.
        """
        rows = transport.partitions(
            {partition_of(key): _milliseconds(at) for key, at in times.items()}
        )
        positions = self._call(
            lambda timeout_s: _checked(self._consumer.offsets_for_times(rows, timeout_s)), rows
        )
        return {
            TopicPartition(row.topic, row.partition): row.offset if row.offset >= 0 else None
            for row in positions
        }

    def committed(self, partitions: Partitions) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of the group; partitions without one are missing."""
        keys = list(map(partition_of, partitions))
        if not keys:
            return {}
        if self._coordinator is not None:
            return self._waits.result(self._coordinator.committed(keys), self._timeout_s)
        rows = transport.partitions(dict.fromkeys(keys, transport.STORED))
        committed = self._call(
            lambda timeout_s: _checked(self._consumer.committed(rows, timeout_s))
        )
        return {
            TopicPartition(row.topic, row.partition): OffsetAndMetadata(
                row.offset, row.metadata or ""
            )
            for row in committed
            if row.offset >= 0
        }

    def _call(self, request: Callable[[float], T], rows: Sequence[Any] = ()) -> T:
        """Return the result of a request with a time-out, repeated while its errors may pass."""
        begin = time.monotonic()
        attempt_s, pause_s = _FIRST_ATTEMPT_S, _PAUSE_S
        while True:
            remaining_s = max(begin + self._timeout_s - time.monotonic(), _PAUSE_S)
            try:
                return self._wait(partial(request, min(attempt_s, remaining_s)))
            except transport.LibrdkafkaError as error:
                cause = error.args[0]
                patience_s = min(self._timeout_s, transport.lookup_patience_s(cause))
                if time.monotonic() - begin >= patience_s:
                    raise self._final(cause, error.args[1:] or rows) from error
            self._waits.suspect()
            time.sleep(pause_s)
            attempt_s, pause_s = attempt_s * 2, min(pause_s * 2, _PAUSE_S_MAX)
            # A request for a topic that librdkafka does not know would create it.
            if not transport.is_missing(cause):
                self._refresh({row.topic for row in rows})

    def _wait(self, request: Callable[[], T]) -> T:
        return request() if self._is_in_callback() else self._waits.call(request)

    def _final(self, cause: Any, rows: Sequence[Any]) -> Exception:
        error = transport.translate(cause)
        if isinstance(error, TimedOut):
            return TimedOut(self._waits.because("no broker responded in time"))
        if isinstance(error, NotReachable):
            return NotReachable(self._waits.because(str(error)))
        if rows and (transport.is_missing(cause) or _is_unknown(error)):
            text = f"There is no partition {rows[0].topic}-{rows[0].partition}."
            return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        return error

    def _refresh(self, topics: Iterable[str]) -> None:
        """Update librdkafka's metadata, which may name a dead leader for minutes."""
        for topic in topics:
            try:
                self._wait(partial(self._consumer.list_topics, topic, _FIRST_ATTEMPT_S))
            except transport.LibrdkafkaError as error:
                _log.info("the metadata of topic %r cannot be updated: %s", topic, error)


def _milliseconds(moment: Any) -> int:
    if not isinstance(moment, int | float):
        raise TypeError(
            f"a time is a number of milliseconds since 1970, not {moment!r}: of a datetime it is "
            "`int(moment.timestamp() * 1000)`"
        )
    return int(moment)


def _is_unknown(error: Exception) -> bool:
    return isinstance(error, ApiError) and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _checked(rows: Sequence[Any]) -> Sequence[Any]:
    """Raise the error of the first row that has one, as librdkafka's error, with its row."""
    for row in rows:
        if row.error is not None:
            raise transport.LibrdkafkaError(row.error, row)
    return rows
