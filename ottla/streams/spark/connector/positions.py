"""Resolves the source's options against the cluster: the partitions, and the offsets to start and
end at.

Used where Spark plans (the driver's planner process), never in tasks. Errors name the topic and say
what to change. Semantics follow Spark's Kafka connector (KafkaOffsetReaderAdmin): a timestamp
takes precedence over JSON by timestamp, which takes precedence over offsets; JSON must name every
partition.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from types import TracebackType

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client.admin.answers import check
from ottla.client.admin.offsets import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    TopicPartition,
    list_offsets,
)
from ottla.client.admin.replicas import directories_of
from ottla.streams.spark.connector.options import SparkOptions, Use
from ottla.streams.spark.connector.ranges import OffsetRange, Offsets
from ottla.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)

_PATIENCE_S = 15.0


class Positions:
    """The partitions of a source and their offsets; a context manager that keeps connections."""

    def __init__(self, options: SparkOptions) -> None:
        self._options = options
        self._isolation_level = READ_COMMITTED if options.reads_committed else READ_UNCOMMITTED
        # A batch fails soon if brokers are unreachable; a stream retries for as long as its options
        # allow.
        patience_s = options.timeout_s if options.use is Use.STREAM_READ else _PATIENCE_S
        self._brokers = options.brokers(timeout_s=patience_s)
        self.known: frozenset[TopicPartition] = frozenset()
        """The last result of `partitions`."""
        self.topic_ids: dict[str, bytes] = {}
        """The ids of the topics when `partitions` was called last."""

    def __enter__(self) -> "Positions":
        """Return this object; connections are opened when they are needed."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections; idempotent."""
        self._brokers.close()

    def partitions(self) -> list[TopicPartition]:
        """Return the partitions that exist now: topics and partitions may be created later."""
        result = self._brokers.retry(self._partitions)
        self.known = frozenset(result)
        return result

    def sizes(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the size of each partition in bytes, as stored (DescribeLogDirs)."""
        keys = list(partitions)
        return self._brokers.retry(lambda: self._sizes(keys))

    def rows_of(self, max_bytes: int, new: Offsets) -> int:
        """Return the number of new records that have about `max_bytes` bytes in total, at least
        one.

        Assumes that each record has the average size of its partition's records.
        """
        filled = {key: count for key, count in new.items() if count > 0}
        if not filled:
            return 1
        first, last, sizes = self.earliest(filled), self.latest(filled), self.sizes(filled)
        total = sum(
            sizes.get(key, 0) * count / max(last[key] - first[key], count)
            for key, count in filled.items()
        )
        return max(1, int(sum(filled.values()) * min(1.0, max_bytes / max(total, 1))))

    def _sizes(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        sizes: dict[TopicPartition, int] = {}
        by_leader: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for (topic, partition), leader in self._brokers.leaders(partitions).items():
            by_leader[leader][topic].append(partition)
        for leader, by_topic in by_leader.items():
            topics = [
                DescribableLogDirTopic(topic=name, partitions=rows)
                for name, rows in by_topic.items()
            ]
            request = DescribeLogDirsRequest(topics=topics)
            response = self._brokers.ask_node(leader, request, DescribeLogDirsResponse)
            for directory in directories_of(response):
                check(directory.error_code, subject=directory.path)
                rows = directory.replicas.items()
                sizes |= {key: row.size for key, row in rows if not row.is_future}
        return sizes

    def _partitions(self) -> list[TopicPartition]:
        assigned: tuple[TopicPartition, ...] | None = self._options.get("assign")
        pattern = self._options.get("subscribePattern")
        if assigned is not None:
            existing = set(self._of_topics(sorted({topic for topic, _ in assigned})))
            missing = [key for key in assigned if key not in existing]
            if missing:
                topic, partition = missing[0]
                raise ConfigError(f"Option assign: topic {topic!r} has no partition {partition}.")
            return list(assigned)
        if pattern is not None:
            rows = self._brokers.metadata(None).topics
            names = [row.name for row in rows if row.name and not row.is_internal]
            return self._of_topics(sorted(name for name in names if pattern.fullmatch(name)))
        return self._of_topics(self._options.get("subscribe"))

    def _of_topics(self, names: Sequence[str]) -> list[TopicPartition]:
        if not names:
            return []
        results: list[TopicPartition] = []
        for row in self._brokers.metadata(names).topics:
            if row.error_code:
                code = ErrorCode(row.error_code)
                raise ApiError(code, f"Topic {row.name!r}: {code.message}")
            results += [(row.name or "", partition.partition_index) for partition in row.partitions]
            self.topic_ids[row.name or ""] = row.topic_id
        return sorted(results)

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Return the first offset of each partition."""
        return self._list(dict.fromkeys(partitions, EARLIEST))

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Return the end offset of each partition: the last stable offset if the source reads
        committed.
        """
        return self._list(dict.fromkeys(partitions, LATEST))

    def at(self, partitions: Iterable[TopicPartition], time_ms: int) -> Offsets:
        """Return the offset of each partition's first record at or after a time; -1 if no record
        follows.
        """
        return self._list(dict.fromkeys(partitions, time_ms))

    def _list(self, timestamps: Offsets) -> Offsets:
        result = list_offsets(self._brokers, timestamps, isolation_level=self._isolation_level)
        return {key: listed.offset for key, listed in result.items()}

    def starting(self, partitions: Sequence[TopicPartition]) -> Offsets:
        """Return the starting offsets that the options specify."""
        default = EARLIEST if self._options.use is Use.BATCH_READ else LATEST
        return self._resolve("starting", partitions, default)

    def ending(self, partitions: Sequence[TopicPartition]) -> Offsets:
        """Return the ending offsets that the options specify."""
        return self._resolve("ending", partitions, LATEST)

    def _resolve(self, bound: str, partitions: Sequence[TopicPartition], default: int) -> Offsets:
        moment = self._options.get(f"{bound}Timestamp")
        if moment is not None:
            return self._at_moments(bound, dict.fromkeys(partitions, moment))
        moments = self._options.get(f"{bound}OffsetsByTimestamp")
        if moments is not None:
            _check_names(f"{bound}OffsetsByTimestamp", moments, partitions)
            return self._at_moments(bound, moments)
        offsets = self._options.get(f"{bound}Offsets", default)
        if isinstance(offsets, int):
            return self._list(dict.fromkeys(partitions, offsets))
        _check_names(f"{bound}Offsets", offsets, partitions)
        numbers: Offsets = dict(offsets)
        named = {key: offset for key, offset in numbers.items() if offset in (EARLIEST, LATEST)}
        return numbers | self._list(named)

    def _at_moments(self, bound: str, moments: Offsets) -> Offsets:
        result = self._list(moments)
        late = [key for key, offset in result.items() if offset < 0]
        strategy = self._options.get("startingOffsetsByTimestampStrategy", "error")
        if late and bound == "starting" and strategy == "error":
            topic, partition = late[0]
            raise ConfigError(
                f"{topic}-{partition} has no record of {moments[late[0]]} (ms) or later. Set the "
                "option startingOffsetsByTimestampStrategy=latest to start at its end."
            )
        return result | self.latest(late)

    def ranges(self, starts: Offsets, ends: Offsets) -> list[OffsetRange]:
        """Return the ranges that a batch reads, checked against the offsets that the partitions
        have.

        Raises ApiError OFFSET_OUT_OF_RANGE if the partitions do not have all of these offsets. With
        failOnDataLoss=false, returns the part that exists.
        """
        earliest, latest = self.earliest(ends), self.latest(ends)
        results = []
        for key in sorted(ends):
            start, end = max(starts[key], earliest[key]), min(ends[key], latest[key])
            if (start, end) != (starts[key], ends[key]) and starts[key] < ends[key]:
                reason = (
                    f"{key[0]}-{key[1]} has offsets {earliest[key]} to {latest[key]}, not all "
                    f"from {starts[key]} to {ends[key]}."
                )
                self.report_data_loss(reason)
            results.append(OffsetRange(*key, start, max(start, end)))
        return results

    def report_data_loss(self, reason: str) -> None:
        """Raise ApiError OFFSET_OUT_OF_RANGE unless failOnDataLoss is false."""
        if self._options.get("failOnDataLoss", True):
            advice = (
                "Set the option failOnDataLoss=false (in a pipeline fail_on_data_loss: false of the "
                "source) to read the records that are left."
            )
            if self._options.use is Use.STREAM_READ:
                advice += " Or start again with another checkpointLocation and startingOffsets."
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{reason} {advice}")


def _check_names(option: str, named: Offsets, partitions: Sequence[TopicPartition]) -> None:
    missing, unknown = set(partitions) - set(named), set(named) - set(partitions)
    for keys, problem in (
        (missing, "does not name"),
        (unknown, "names, but the query does not read,"),
    ):
        if keys:
            topic, partition = min(keys)
            raise ConfigError(f"Option {option} {problem} partition {partition} of {topic!r}.")
