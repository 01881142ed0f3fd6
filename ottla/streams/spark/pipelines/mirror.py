"""Mirrors a topic to another one, with the data needed to fail over: matching offsets, and consumer
groups' offsets.

Records keep partition, key, value, headers and timestamp. The source `ottla-mirror` is `ottla` with
one addition: when Spark asks for the latest offsets, the previous micro-batch is completely written
and none is in progress. At that moment the ends of both topics are stored as a point in the topic
of offsets (see `ottla.operations.mirror.translation`).
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import CaseInsensitiveDict, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from ottla.client.admin.offsets import (
    LATEST,
    list_offsets,
)
from ottla.client.arrow_table import read_table_of
from ottla.client.config.access import ClusterAccess
from ottla.client.raw.producer import RecordProducer
from ottla.operations.mirror.routes import Route, prepare, translated
from ottla.operations.mirror.translation import Point, Translation
from ottla.operations.offsets.resets import advance
from ottla.streams.pipelines.model import MirrorSink, TopicSource
from ottla.streams.spark.connector.options import cluster_options, security_in
from ottla.streams.spark.connector.ranges import JsonOffsets, Offsets, from_json
from ottla.streams.spark.connector.source import OttlaSource
from ottla.streams.spark.pipelines.frames import topic_options
from ottla.streams.spark.pipelines.sinks import access_of

_PREFIX = "mirror."
_TOPICS = ("source_topic", "target_topic", "offsets_topic")
# A point costs one record for each partition; this is the interval of points while records arrive
# without a pause.
_INTERVAL_S = 5.0
_COLUMNS = ("key", "value", "headers", "timestamp", "partition")


@dataclass(frozen=True)
class Mirror:
    """One topic and its mirror, with the access to the two clusters, which may be the same."""

    source_topic: str
    source: ClusterAccess
    target_topic: str
    target: ClusterAccess
    offsets_topic: str

    @classmethod
    def of(cls, source: TopicSource, sink: MirrorSink, access: ClusterAccess) -> "Mirror":
        """Return the mirror that a sink describes."""
        target = access_of(sink, access)
        return cls(source.topics[0].text, access, sink.topic.text, target, sink.offsets_topic)

    @property
    def _route(self) -> Route:
        return Route(self.source_topic, self.target_topic, self.offsets_topic)

    def prepare(self) -> None:
        """Create the target as a copy of the source, and the topic of offsets, if they do not
        exist.

        Raises ConfigError if the target has fewer partitions than the source, or is the source.
        """
        with self.source.brokers() as source, self.target.brokers() as target:
            prepare(source, target, self._route)

    def translation(self) -> Translation:
        """Return the current translation of offsets."""
        with self.target.brokers() as brokers:
            table = read_table_of(brokers, self.offsets_topic, columns=["key", "value"])
        result = (
            Point.decode(self.source_topic, row["key"], row["value"]) for row in table.to_pylist()
        )
        return Translation(point for point in result if point is not None)

    def translate(self, group_id: str) -> dict[int, int]:
        """Translate a group's offsets in the source, and commit them in the target; return them by
        partition.

        Offsets are never moved backwards. Nothing is committed while the group has members that
        read the target.
        """
        translations = {self._route: self.translation()}
        is_own = self.source.bootstrap == self.target.bootstrap
        with self.source.brokers() as source, self.target.brokers() as target:
            targets = translated(source, translations, group_id)
            if advance(target, group_id, targets, is_own=is_own) is None:
                return {}
        return {partition: offset for (_, partition), offset in targets.items()}


def mirrored(spark: SparkSession, source: TopicSource, mirror: Mirror, group: str) -> DataFrame:
    """Return the records of a topic in the form that a mirror writes."""
    spark.dataSource.register(MirrorSource)
    options = topic_options(source, mirror.source, group) | {"includeHeaders": "true"}
    # The source's cluster is among the options already; the points need the others.
    own = {name: getattr(mirror, name) for name in _TOPICS} | cluster_options(mirror.target)
    options |= {f"{_PREFIX}{name}": value for name, value in own.items()}
    records = spark.readStream.format(MirrorSource.name()).options(**options).load()
    return records.select(*_COLUMNS)


class MirrorSource(OttlaSource):
    """`ottla`, with points stored between micro-batches."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "ottla-mirror"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of the stream."""
        all_options = dict(self.options.items())
        options = {
            name: value for name, value in all_options.items() if not name.startswith(_PREFIX)
        }
        own = {
            name.removeprefix(_PREFIX): all_options[name]
            for name in set(all_options) - set(options)
        }
        source, target = (
            ClusterAccess(named["kafka.bootstrap.servers"], security_in(named))
            for named in (options, own)
        )
        mirror = Mirror(source=source, target=target, **{name: own[name] for name in _TOPICS})
        reader = OttlaSource(CaseInsensitiveDict(options)).streamReader(schema)
        return MirrorReader(reader, Notes(mirror))


class Notes:
    """Stores new points; lives in the planner process, between micro-batches."""

    def __init__(self, mirror: Mirror, interval_s: float = _INTERVAL_S) -> None:
        self._mirror = mirror
        self._settings = mirror.target.librdkafka_settings()
        self._interval_s = interval_s
        self._noted: Offsets = {}
        self._noted_at = -interval_s

    def note(self, start: Offsets, *, is_idle: bool) -> None:
        """Store the point that everything before `start`, and nothing else, is in the target."""
        changed = {key: offset for key, offset in start.items() if self._noted.get(key) != offset}
        now = time.monotonic()
        if not changed or not (is_idle or now - self._noted_at >= self._interval_s):
            return
        mirror = self._mirror
        latest = {(mirror.target_topic, partition): LATEST for _, partition in changed}
        with mirror.target.brokers() as brokers:
            ends = list_offsets(brokers, latest)
        with RecordProducer(mirror.target.bootstrap, self._settings) as producer:
            for (topic, partition), offset in sorted(changed.items()):
                point = Point(partition, offset, ends[mirror.target_topic, partition].offset)
                key, value = point.encode(topic)
                producer.send(mirror.offsets_topic, value, key=key)
        self._noted |= changed
        self._noted_at = now


class MirrorReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Delegates to the reader of `ottla`; `latestOffset` stores points first."""

    def __init__(self, reader: DataSourceStreamReader, notes: Notes) -> None:
        self._reader = reader
        self._notes = notes

    def latestOffset(self, start: Mapping[str, Mapping[str, int]], limit: ReadLimit) -> JsonOffsets:
        """Return the end of the next batch; the batch that ended at `start` is written, which makes
        a point.
        """
        self._notes.note(from_json(start), is_idle=False)
        result: JsonOffsets = self._reader.latestOffset(dict(start), limit)
        if from_json(result) == from_json(start):
            # No batch is in progress, and none starts before the next call.
            self._notes.note(from_json(start), is_idle=True)
        return result

    def initialOffset(self) -> JsonOffsets:
        """Delegate to the reader."""
        result: JsonOffsets = self._reader.initialOffset()
        return result

    def getDefaultReadLimit(self) -> ReadLimit:
        """Delegate to the reader."""
        return self._reader.getDefaultReadLimit()

    def reportLatestOffset(self) -> JsonOffsets | None:
        """Delegate to the reader."""
        result: JsonOffsets | None = self._reader.reportLatestOffset()
        return result

    def prepareForTriggerAvailableNow(self) -> None:
        """Delegate to the reader."""
        assert isinstance(self._reader, SupportsTriggerAvailableNow)
        self._reader.prepareForTriggerAvailableNow()

    def partitions(
        self, start: Mapping[str, Mapping[str, int]], end: Mapping[str, Mapping[str, int]]
    ) -> Sequence[InputPartition]:
        """Delegate to the reader."""
        result: Sequence[InputPartition] = self._reader.partitions(dict(start), dict(end))
        return result

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Delegate to the reader."""
        result: Iterator[pa.RecordBatch] = self._reader.read(partition)
        return result

    def commit(self, end: Mapping[str, Mapping[str, int]]) -> None:
        """Delegate to the reader."""
        self._reader.commit(dict(end))

    def stop(self) -> None:
        """Delegate to the reader."""
        self._reader.stop()
