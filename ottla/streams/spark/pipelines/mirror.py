"""Mirrors a topic to another one, with the data needed to fail over: matching offsets, and consumer
groups' offsets.

`ottla.operations.mirror` decides which copies are refused, creates the target, names the topic of
offsets, and translates offsets, as for `ottla topic copy`. These facts differ, because Spark's
executors move the records:

* The position is the query's checkpoint; points only translate offsets of groups.
* The range is the `start` of the pipeline's source, and it always follows.
* Records are written in one transaction per micro-batch (exactly once), points without one: when
  Spark asks for the latest offsets, the previous micro-batch is completely written and none is in
  progress. At that moment the source `ottla-mirror`, which is `ottla` with this addition, stores
  the ends of both topics as a point.
* New partitions are found as `ottla` finds them; a target that lacks them fails the query.
* A second mirror of the same checkpoint is fenced. A new checkpoint continues at the last points
  if the target ends there, and is refused otherwise: it would copy records twice.
* Progress, cancelling and limits (`max_records`) are Spark's.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import CaseInsensitiveDict, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from ottla.base.errors import ConfigError
from ottla.client.admin.offsets import EARLIEST, LATEST, list_offsets
from ottla.client.admin.topics import describe_topic
from ottla.client.config.access import ClusterAccess
from ottla.client.raw.producer import RecordProducer
from ottla.operations.mirror.routes import (
    Points,
    Route,
    prepare,
    read_points,
    refuse_recreated,
    translate_group,
)
from ottla.operations.mirror.targets import KEPT, cluster_id
from ottla.operations.mirror.translation import Point
from ottla.streams.pipelines.model import MirrorSink, TopicSource
from ottla.streams.spark.connector.options import cluster_options, security_in
from ottla.streams.spark.connector.ranges import (
    JsonOffsets,
    Offsets,
    StoredOffsets,
    from_json,
)
from ottla.streams.spark.connector.source import OttlaSource
from ottla.streams.spark.pipelines.frames import topic_options
from ottla.streams.spark.pipelines.sinks import access_of

_PREFIX = "mirror."
_TOPICS = ("source_topic", "target_topic", "offsets_topic")
# A point costs one record for each partition; this is the interval of points while records arrive
# without a pause.
_INTERVAL_S = 5.0


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
    def route(self) -> Route:
        """The topics of the mirror."""
        return Route(self.source_topic, self.target_topic, self.offsets_topic)

    def prepare(self) -> None:
        """Create the target as a copy of the source, and the topic of offsets, if they do not
        exist.

        Raises ConfigError if the target has fewer partitions than the source, is the source, or is
        mirrored to the source.
        """
        with self.source.brokers() as source, self.target.brokers() as target:
            source.settings, target.settings = self._settings()
            prepare(source, target, self.route, follows=True)

    def next_offsets(self, *, is_new: bool) -> dict[int, int]:
        """Return the offsets of the source at which a new checkpoint continues, by partition.

        Raises ConfigError if the target was created again, or has records after its last points,
        which only the checkpoint that wrote them can continue.
        """
        with self.source.brokers() as source, self.target.brokers() as target:
            source.settings, target.settings = self._settings()
            points = Points(read_points(target, self.route, cluster_id(source))[0])
            ends = refuse_recreated(target, self.route, points)
        last = points.last() if is_new else {}
        for partition, point in sorted(last.items()):
            if ends[partition] != point.target_offset:
                raise ConfigError(
                    f"{self.target_topic}-{partition} has records after offset "
                    f"{point.target_offset}, up to which it is known to be a copy of "
                    f"{self.source_topic!r}: a new checkpoint would copy records twice. Continue "
                    "with the checkpoint that wrote them, or delete the topics "
                    f"{self.target_topic!r} and {self.offsets_topic!r} to copy all again."
                )
        return {partition: point.source_offset for partition, point in last.items()}

    def translate(self, group_id: str) -> dict[int, int]:
        """Translate a group's offsets in the source, and commit them in the target; return them by
        partition.

        Offsets are never moved backwards. Nothing is committed while the group has members that
        read the target.
        """
        with self.source.brokers() as source, self.target.brokers() as target:
            source.settings, target.settings = self._settings()
            points, _ = read_points(target, self.route, cluster_id(source))
            result = translate_group(source, target, {self.route: Points(points)}, group_id)
        return {partition: offset for (_, partition), offset in result.offsets.items()}

    def _settings(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return librdkafka's options of both clusters, with which points are read."""
        return self.source.librdkafka_settings(), self.target.librdkafka_settings()


def mirrored(
    spark: SparkSession,
    source: TopicSource,
    mirror: Mirror,
    group: str,
    starts: Mapping[int, int],
) -> DataFrame:
    """Return the records of a topic in the form that a mirror writes.

    A new checkpoint begins at the offsets `starts`, in other partitions at the source's `start`.
    """
    spark.dataSource.register(MirrorSource)
    options = topic_options(source, mirror.source, group) | {"includeHeaders": "true"}
    if starts:
        with mirror.source.brokers() as brokers:
            count = len(describe_topic(brokers, mirror.source_topic).partitions)
        default = EARLIEST if source.start.end == "earliest" else LATEST
        rows = {str(number): starts.get(number, default) for number in range(count)}
        options["startingOffsets"] = json.dumps({mirror.source_topic: rows})
    # The source's cluster is among the options already; the points need the others.
    own = {name: getattr(mirror, name) for name in _TOPICS} | cluster_options(mirror.target)
    options |= {f"{_PREFIX}{name}": value for name, value in own.items()}
    records = spark.readStream.format(MirrorSource.name()).options(**options).load()
    return records.select(*KEPT)


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
        self._cluster_id: str | None = None
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
        source_id = self._source_id()
        with RecordProducer(mirror.target.bootstrap, self._settings) as producer:
            for (topic, partition), offset in sorted(changed.items()):
                point = Point(partition, offset, ends[mirror.target_topic, partition].offset)
                key, value = point.encode(topic, source_id)
                producer.send(mirror.offsets_topic, value, key=key)
        self._noted |= changed
        self._noted_at = now

    def _source_id(self) -> str:
        if self._cluster_id is None:
            with self._mirror.source.brokers() as brokers:
                self._cluster_id = cluster_id(brokers)
        return self._cluster_id


class MirrorReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Delegates to the reader of `ottla`; `latestOffset` stores points first."""

    def __init__(self, reader: DataSourceStreamReader, notes: Notes) -> None:
        self._reader = reader
        self._notes = notes

    def latestOffset(self, start: StoredOffsets, limit: ReadLimit) -> JsonOffsets:
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

    def partitions(self, start: StoredOffsets, end: StoredOffsets) -> Sequence[InputPartition]:
        """Delegate to the reader."""
        result: Sequence[InputPartition] = self._reader.partitions(dict(start), dict(end))
        return result

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Delegate to the reader."""
        result: Iterator[pa.RecordBatch] = self._reader.read(partition)
        return result

    def commit(self, end: StoredOffsets) -> None:
        """Delegate to the reader."""
        self._reader.commit(dict(end))

    def stop(self) -> None:
        """Delegate to the reader."""
        self._reader.stop()
