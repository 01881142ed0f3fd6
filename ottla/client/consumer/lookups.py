"""Requests of a consumer that change nothing: partitions, ends, offsets by time, committed offsets.

While a new leader or coordinator takes over, a lookup is repeated.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from ottla.base.errors import ApiError, ErrorCode
from ottla.client import transport
from ottla.client.errors import ClientError, TimedOut
from ottla.client.records import OffsetAndMetadata, TopicPartition

T = TypeVar("T")
Partitions = Iterable[tuple[str, int]]
_PAUSE_S = 0.02


class Lookups:
    """Answers questions about the cluster with a consumer's connection.

    During a rebalance librdkafka serves only the thread that calls the listener: a lookup runs in
    the caller's thread if `is_in_callback` returns True.
    """

    def __init__(
        self,
        consumer: Any,
        timeout_s: float,
        waits: transport.Waits,
        is_in_callback: Callable[[], bool] = lambda: False,
    ) -> None:
        self._consumer = consumer
        self._waits = waits
        self._timeout_s = timeout_s
        self._is_in_callback = is_in_callback

    def partitions_for(self, topic: str) -> list[int]:
        """Return the partitions of a topic; ApiError if there is none."""
        metadata = self._call(lambda: self._consumer.list_topics(topic, self._timeout_s)).topics[
            topic
        ]
        if metadata.error is not None:
            raise transport.translate(metadata.error)
        return sorted(metadata.partitions)

    def ends(self, partitions: Partitions) -> dict[TopicPartition, tuple[int, int]]:
        """Return the first offset, and the offset after the last record, of each partition."""
        keys = [TopicPartition(*key) for key in partitions]
        rows = transport.partitions(dict.fromkeys(keys, transport.STORED))
        return dict(zip(keys, map(self._ends, rows), strict=True))

    def _ends(self, row: Any) -> tuple[int, int]:
        try:
            first, last = self._call(
                lambda: self._consumer.get_watermark_offsets(row, self._timeout_s)
            )
        except ClientError as error:
            cause = error.__cause__
            if not isinstance(cause, transport.LibrdkafkaError):
                raise
            if cause.args[0].code() != transport.UNKNOWN_PARTITION:
                raise
            text = f"There is no partition {row.topic}-{row.partition}."
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text) from error
        return int(first), int(last)

    def offsets_for_times(
        self, times: Mapping[tuple[str, int], float]
    ) -> dict[TopicPartition, int | None]:
        """Return the first offset at or after a time (ms) in each partition; None if there is none."""
        rows = transport.partitions({key: int(at) for key, at in times.items()})
        positions = self._call(lambda: self._consumer.offsets_for_times(rows, self._timeout_s))
        return {key: offset if offset >= 0 else None for key, offset in _checked(positions).items()}

    def committed(self, partitions: Partitions) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of the group; partitions without one are missing."""
        rows = transport.partitions(dict.fromkeys(partitions, transport.STORED))
        if not rows:
            return {}
        committed = self._call(lambda: self._consumer.committed(rows, self._timeout_s))
        _checked(committed)
        return {
            TopicPartition(row.topic, row.partition): OffsetAndMetadata(
                row.offset, row.metadata or ""
            )
            for row in committed
            if row.offset >= 0
        }

    def _call(self, request: Callable[[], T]) -> T:
        begin = time.monotonic()
        while True:
            try:
                return request() if self._is_in_callback() else self._waits.call(request)
            except transport.LibrdkafkaError as error:
                cause = error.args[0]
                patience_s = min(self._timeout_s, transport.lookup_patience_s(cause))
                if time.monotonic() - begin >= patience_s:
                    raise _timed_out(transport.translate(cause)) from error
            time.sleep(_PAUSE_S)


def _timed_out(error: Exception) -> Exception:
    return TimedOut("no broker answered in time") if isinstance(error, TimedOut) else error


def _checked(rows: Iterable[Any]) -> dict[TopicPartition, int]:
    offsets = {}
    for row in rows:
        if row.error is not None:
            error = transport.translate(row.error)
            if isinstance(error, ApiError) and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                text = f"There is no partition {row.topic}-{row.partition}."
                raise ApiError(error.code, text)
            raise error
        offsets[TopicPartition(row.topic, row.partition)] = int(row.offset)
    return offsets
