"""The command `ottla streams reset` determines where an application on Spark starts again."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ottla.client.admin.offsets import CommittedOffset, commit_offsets
from ottla.client.arrow_table import read_table
from ottla.streams import Serdes, StreamsBuilder, Topology
from ottla.streams.settings.application import checkpoint_of
from ottla.streams.spark.query.compile import QuerySettings
from ottla.streams.spark.query.query import start
from ottla.streams.task.task import TopicRecord
from ottla.testing.cluster import Cluster
from ottla.tools import main
from tests.spark import scenarios

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300), pytest.mark.slow, pytest.mark.alone]

_TEXT, _NUMBER = Serdes.string(), Serdes.long()
_START = 1_700_000_000_000


def _counting(name: str, offset_reset: str = "earliest") -> Topology:
    builder = StreamsBuilder()
    words = builder.stream(f"{name}-in", value=_TEXT, offset_reset=offset_reset)
    counts = words.group_by(lambda word: word, key=_TEXT).count("counts")
    counts.to_stream().to(f"{name}-out", key=_TEXT, value=_NUMBER)
    return builder.build()


def _give(broker: Cluster, name: str, *words: str, start: int = 0) -> None:
    records = [
        TopicRecord(None, word.encode(), _START + 1000 * n) for n, word in enumerate(words, start)
    ]
    scenarios.produce(broker.bootstrap, {f"{name}-in": records})


class _Application:
    """An application in the tests' Spark session."""

    def __init__(self, spark: SparkSession, broker: Cluster, folder: Path, name: str) -> None:
        self.name, self.folder = name, folder
        self._spark, self._broker = spark, broker
        self._rows_read = 0
        self.guarantee = "at_least_once"
        for topic in ("in", "out"):
            broker.create_topic(f"{name}-{topic}", config={"retention.ms": "-1"})

    def run(self, offset_reset: str = "earliest") -> list[tuple[str, int]]:
        """Run until the end of the input; return the new output."""
        checkpoint = checkpoint_of(str(self.folder), self.name)
        with start(
            _counting(self.name, offset_reset),
            self._spark,
            application_id=self.name,
            bootstrap=self._broker.bootstrap,
            checkpoint=checkpoint,
            query_settings=QuerySettings(
                "", "", sink_options={"processingGuarantee": self.guarantee}
            ),
        ) as query:
            query.process_all_available()
        written = read_table(f"{self.name}-out", bootstrap=self._broker.bootstrap)
        rows = sorted(written.to_pylist(), key=lambda row: row["offset"])
        new, self._rows_read = rows[self._rows_read :], len(rows)
        return [(row["key"].decode(), int.from_bytes(row["value"])) for row in new]

    def reset(self, *options: str) -> int:
        """Run `ottla streams reset --execute`."""
        common_arguments = ("--state-dir", str(self.folder), "-b", self._broker.bootstrap)
        arguments = ("streams", "reset", "--application-id", self.name, *common_arguments, *options)
        return main.run([*arguments, "--execute"])


@pytest.fixture
def application(spark: SparkSession, broker: Cluster, tmp_path: Path, request: Any) -> _Application:
    """A separate application for each test."""
    name = f"reset-{abs(hash(request.node.name))}"
    return _Application(spark, broker, tmp_path, name)


@pytest.mark.parametrize(
    "guarantee",
    [pytest.param("at_least_once", marks=pytest.mark.nightly("[exactly_once]")), "exactly_once"],
)
def test_a_reset_application_starts_at_the_given_offset(
    broker: Cluster, application: _Application, guarantee: str
) -> None:
    """Its state is empty; the default is the beginning of the topics."""
    application.guarantee = guarantee
    _give(broker, application.name, *"abcaba")
    first = [("a", 1), ("b", 1), ("c", 1), ("a", 2), ("b", 2), ("a", 3)]
    assert application.run() == first
    assert application.run() == []
    assert application.reset("--to-offset", "3") == 0
    assert application.run() == [("a", 1), ("b", 1), ("a", 2)]
    assert application.reset("--shift-by", "-1") == 0
    _give(broker, application.name, "z", start=6)
    assert application.run() == [("a", 1), ("z", 1)]
    assert application.reset() == 0
    assert application.run() == [*first, ("z", 1)]


def test_committed_progress_is_no_start_position(
    broker: Cluster, application: _Application
) -> None:
    """An application without its checkpoint restarts from the beginning with an empty state."""
    _give(broker, application.name, *"aa")
    assert application.run() == [("a", 1), ("a", 2)]
    shutil.rmtree(application.folder / application.name)
    assert application.run() == [("a", 1), ("a", 2)]


def test_kafkas_committed_offsets_are_used_without_a_checkpoint(
    broker: Cluster, application: _Application
) -> None:
    """Offsets of Kafka's reset tools take precedence over the offset reset of the source."""
    _give(broker, application.name, *"abc")
    with broker.admin() as brokers:
        topic_partition = (f"{application.name}-in", 0)
        commit_offsets(brokers, application.name, {topic_partition: CommittedOffset(1)})
    assert application.run("latest") == [("b", 1), ("c", 1)]


@pytest.mark.parametrize("words", [("--to-latest",), ()])
def test_the_start_position_is_kept_if_nothing_was_read(
    broker: Cluster, application: _Application, words: tuple[str, ...]
) -> None:
    """An application that started at the end, and stopped before any record, misses no record."""
    _give(broker, application.name, *"abc")
    if words:
        assert application.reset("--input-topics", f"{application.name}-in", *words) == 0
    wish = "earliest" if words else "latest"
    assert application.run(wish) == []
    _give(broker, application.name, *"xy", start=3)
    assert application.run(wish) == [("x", 1), ("y", 1)]
