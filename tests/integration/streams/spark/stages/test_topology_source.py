"""The ranges of offsets that the tasks of a pipeline read."""

from typing import Any

from pyspark.sql.streaming.datasource import ReadMaxRows

from ottla.streams.spark.connector.options import SparkOptions, Use
from ottla.streams.spark.connector.ranges import OffsetRange, from_json, to_json
from ottla.streams.spark.stages.topology_source import SourceSettings, bundle, topology_reader
from ottla.testing.cluster import Cluster
from tests.integration.streams.spark.rows import write


def test_ranges_are_balanced_by_size() -> None:
    """Small ranges are bundled; a partition's ranges stay in order."""
    ranges = [OffsetRange("t", n, 0, size) for n, size in enumerate((10, 900, 20, 30))]
    ranges.append(OffsetRange("t", 0, 10, 15))
    assert bundle(ranges, 2) == [
        (ranges[1],),
        (ranges[0], ranges[4], ranges[2], ranges[3]),
    ]


def test_there_are_no_empty_bundles() -> None:
    """A task without records is not created."""
    assert bundle([OffsetRange("t", 0, 0, 5)], 4) == [(OffsetRange("t", 0, 0, 5),)]
    assert bundle([], 4) == []


def test_a_stream_does_not_overtake_a_table_in_a_backlog(ottla_cluster: Cluster) -> None:
    """Micro-batches advance by time: older table records are read before newer stream records."""
    cluster = ottla_cluster
    for topic in ("stream", "table"):
        cluster.create_topic(topic, partitions=2)
    for partition in (0, 1):
        write(cluster, "table", partition, 300)
        write(cluster, "stream", partition, 100, first=300)
    write(cluster, "table", 0, 50, first=400)
    settings: Any = None
    options = {
        "bootstrap": cluster.bootstrap,
        "subscribe": "stream,table",
        "startingOffsets": "earliest",
    }
    reader = topology_reader(SparkOptions(options, Use.STREAM_READ), SourceSettings(settings))
    position, seen = reader.initialOffset(), []
    while True:
        end = reader.latestOffset(position, ReadMaxRows(200))
        if end == position:
            break
        position = end
        offsets = to_json(from_json(end))
        seen.append({topic: sum(partitions.values()) for topic, partitions in offsets.items()})
    reader.stop()
    assert seen[-1] == {"stream": 200, "table": 650}
    assert len(seen) < 10
    assert all(record["table"] >= 600 for record in seen if record["stream"])
    assert all(record["stream"] == 200 for record in seen if record["table"] > 600)
