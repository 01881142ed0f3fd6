"""Checkpoints and targets of pipelines on a real Spark: both know the same progress, or the
pipeline is refused.
"""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest
from pyspark.sql import SparkSession

from ottla.base.errors import ConfigError
from ottla.client.admin.topics import delete_topic
from ottla.client.arrow_table import read_table
from ottla.client.config.access import ClusterAccess
from ottla.client.raw.producer import RecordProducer
from ottla.streams.pipelines import check
from ottla.streams.spark.pipelines.progress import check_progress
from ottla.streams.spark.pipelines.run import RunSettings, start
from ottla.streams.spark.pipelines.sinks import SinkSettings
from ottla.testing.cluster import Cluster
from tests.spark.test_pipeline_files import url as url

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300), pytest.mark.slow, pytest.mark.alone]

Run = Callable[..., None]


@pytest.fixture
def run(spark: SparkSession, broker: Cluster, tmp_path: Path) -> Run:
    """A function that runs a pipeline with one sink until all existing records are read."""

    def run(source: str, sink: str, checkpoint: str = "c", name: str = "progress") -> None:
        text = (
            f"name: {name}\nsources: {{rows: {source}}}\nsinks: {{out: {{from: rows, {sink}}}}}\n"
        )
        pipeline = check(text).pipeline
        assert pipeline is not None
        settings = RunSettings(broker.bootstrap, str(tmp_path / checkpoint), once=True)
        with start(pipeline, spark, settings) as running:
            assert running.await_termination(timeout_s=120)

    return run


def _produce(broker: Cluster, topic: str, numbers: range) -> None:
    with RecordProducer(broker.bootstrap) as producer:
        for number in numbers:
            producer.send(topic, json.dumps({"n": number}).encode(), partition=0)


def _source(topic: str) -> str:
    return f"{{topic: {topic}, format: json, schema: n int}}"


def _numbers(spark: SparkSession, folder: Path) -> list[int]:
    return sorted(row.n for row in spark.read.parquet(str(folder)).select("n").collect())


def test_a_folder_belongs_to_one_checkpoint(
    spark: SparkSession, broker: Cluster, tmp_path: Path, run: Run
) -> None:
    """Another checkpoint and another pipeline are refused; a moved checkpoint continues."""
    broker.create_topic("owned")
    folder = tmp_path / "lake"
    _produce(broker, "owned", range(10))
    run(_source("owned"), f"files: {folder}")
    _produce(broker, "owned", range(10, 15))
    words = f"belongs to the checkpoint {tmp_path}/c.*Continue with that checkpoint, or write to"
    for checkpoint, name in (("other", "progress"), ("second", "second")):
        with pytest.raises(ConfigError, match=words):
            run(_source("owned"), f"files: {folder}", checkpoint, name)
    assert _numbers(spark, folder) == list(range(10))
    (tmp_path / "c").rename(tmp_path / "moved")
    run(_source("owned"), f"files: {folder}", "moved")
    assert _numbers(spark, folder) == list(range(15))


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_table_of_files_belongs_to_one_checkpoint(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    """Another checkpoint would write all rows again; needs no package of the format."""
    text = f"""
        name: table
        settings: {{spark.jars: '/jars/delta-spark.jar,/jars/iceberg-spark-runtime.jar'}}
        sources: {{rows: {{topic: any}}}}
        sinks: {{out: {{from: rows, files: {tmp_path}/lake, format: {kind}}}}}
        """
    pipeline = check(dedent(text)).pipeline
    assert pipeline is not None
    sink = pipeline.sinks["out"]
    first, other = (
        SinkSettings(ClusterAccess("unused:1"), f"{tmp_path}/{name}", "", True)
        for name in ("first", "other")
    )
    for _ in range(2):
        assert check_progress(spark, sink, first).is_new
    with pytest.raises(ConfigError, match=f"belongs to the checkpoint {tmp_path}/first. Another"):
        check_progress(spark, sink, other)


def test_a_folder_and_its_checkpoint_have_the_same_batches(
    spark: SparkSession, broker: Cluster, tmp_path: Path, run: Run
) -> None:
    """A folder without an owner is adopted; a lost folder and an old checkpoint are refused."""
    broker.create_topic("batches")
    folder = tmp_path / "lake"
    _produce(broker, "batches", range(3))
    run(_source("batches"), f"files: {folder}")
    shutil.copytree(tmp_path / "c", tmp_path / "old")
    (folder / "_ottla_checkpoint").unlink()
    _produce(broker, "batches", range(3, 5))
    with pytest.raises(ConfigError, match="belongs to another checkpoint"):
        run(_source("batches"), f"files: {folder}", "new")
    run(_source("batches"), f"files: {folder}")
    assert _numbers(spark, folder) == list(range(5))
    with pytest.raises(ConfigError, match=r"already has batch 1, but the checkpoint .* batch 0"):
        run(_source("batches"), f"files: {folder}", "old")
    shutil.rmtree(folder)
    with pytest.raises(ConfigError, match="lacks the batches 0 to 1"):
        run(_source("batches"), f"files: {folder}")


def test_a_topic_and_a_table_are_not_older_or_newer_than_the_checkpoint(
    broker: Cluster, tmp_path: Path, run: Run, url: str
) -> None:
    """With a checkpoint from a backup the batches after it would be skipped: it is refused."""
    broker.create_topic("backup")
    broker.create_topic("backup-out")
    table = f"jdbc: '{url}', table: numbers"
    _produce(broker, "backup", range(3))
    sinks = {"topic": "topic: backup-out", "table": table}
    for checkpoint, sink in sinks.items():
        run(_source("backup"), sink, checkpoint)
        shutil.copytree(tmp_path / checkpoint, tmp_path / f"{checkpoint}-old")
    _produce(broker, "backup", range(3, 5))
    for checkpoint, sink in sinks.items():
        run(_source("backup"), sink, checkpoint)
        with pytest.raises(ConfigError, match=r"already has batch 1, but .*Restore the newest"):
            run(_source("backup"), sink, f"{checkpoint}-old")
    lost = table.replace("/db", "/db2")
    with pytest.raises(ConfigError, match="lacks the batches 0 to 1"):
        run(_source("backup"), lost, "table")


def test_a_new_checkpoint_of_a_mirror_continues_at_its_points(broker: Cluster, run: Run) -> None:
    """No record is copied twice; a target that was created again or has more records is refused."""
    broker.create_topic("copied", partitions=2)
    values = [json.dumps({"n": n}).encode() for n in range(8)]

    def copied(topic: str = "copies") -> list[bytes]:
        table = read_table(topic, bootstrap=broker.bootstrap, isolation="read_committed")
        return sorted(table.column("value").to_pylist())

    source, sink = "{topic: copied, format: bytes}", "mirror: copies"
    _produce(broker, "copied", range(5))
    run(source, sink)
    _produce(broker, "copied", range(5, 8))
    run(source, sink, "new")
    assert copied() == values
    _produce(broker, "copies", range(1))
    with pytest.raises(ConfigError, match="copies-0 has records after offset"):
        run(source, sink, "third")
    with broker.admin() as brokers:
        delete_topic(brokers, "copies")
    with pytest.raises(ConfigError, match=re.escape("the target was created again")):
        run(source, sink, "new")
