"""What `ottla streams reset` says is where the application starts: it is reset, and runs again on Spark."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ottla.client.admin.offsets import CommittedOffset, commit_offsets
from ottla.client.table import read_table
from ottla.streams import Serdes, StreamsBuilder, Topology
from ottla.streams.settings.application import checkpoint_of
from ottla.streams.spark.query.compile import QuerySettings
from ottla.streams.spark.query.query import start
from ottla.streams.task.task import TopicRecord
from ottla.testing.cluster import Cluster
from ottla.tools import main
from tests.spark import scenarios

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

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
    """An application in the tests' session."""

    def __init__(self, spark: SparkSession, broker: Cluster, folder: Path, name: str) -> None:
        self.name, self.folder = name, folder
        self._spark, self._broker = spark, broker
        self._told = 0
        self.guarantee = "at_least_once"
        for topic in ("in", "out"):
            broker.create_topic(f"{name}-{topic}", config={"retention.ms": "-1"})

    def run(self, offset_reset: str = "earliest") -> list[tuple[str, int]]:
        """Run until the end of its input, and stop; return what it wrote meanwhile."""
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
        new, self._told = rows[self._told :], len(rows)
        return [(row["key"].decode(), int.from_bytes(row["value"])) for row in new]

    def reset(self, *words: str) -> int:
        """Run `ottla streams reset`, and execute it."""
        place = ("--state-dir", str(self.folder), "-b", self._broker.bootstrap)
        told = ("streams", "reset", "--application-id", self.name, *place, *words)
        return main.run([*told, "--execute"])


@pytest.fixture
def application(spark: SparkSession, broker: Cluster, tmp_path: Path, request: Any) -> _Application:
    """One of its own for each test."""
    name = f"reset-{abs(hash(request.node.name))}"
    return _Application(spark, broker, tmp_path, name)


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once"])
def test_a_reset_application_starts_where_it_was_said(
    broker: Cluster, application: _Application, guarantee: str
) -> None:
    """With nothing of its state; once more from where it is then; and from its beginning where nothing is said."""
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


def test_progress_is_no_wish(broker: Cluster, application: _Application) -> None:
    """An application that has lost its checkpoint begins anew, with all of its state, and not in the middle."""
    _give(broker, application.name, *"aa")
    assert application.run() == [("a", 1), ("a", 2)]
    shutil.rmtree(application.folder / application.name)
    assert application.run() == [("a", 1), ("a", 2)]


def test_kafkas_own_offsets_are_taken_where_there_is_no_checkpoint(
    broker: Cluster, application: _Application
) -> None:
    """What kafka-streams-application-reset and kafka-consumer-groups leave counts before the source's own wish."""
    _give(broker, application.name, *"abc")
    with broker.admin() as brokers:
        place = (f"{application.name}-in", 0)
        commit_offsets(brokers, application.name, {place: CommittedOffset(1)})
    assert application.run("latest") == [("b", 1), ("c", 1)]


@pytest.mark.parametrize("words", [("--to-latest",), ()])
def test_where_it_first_started_it_starts_again(
    broker: Cluster, application: _Application, words: tuple[str, ...]
) -> None:
    """At the end, by a reset or as the source says; stopped before anything came, it misses nothing of what comes."""
    _give(broker, application.name, *"abc")
    if words:
        assert application.reset("--input-topics", f"{application.name}-in", *words) == 0
    wish = "earliest" if words else "latest"
    assert application.run(wish) == []
    _give(broker, application.name, *"xy", start=3)
    assert application.run(wish) == [("x", 1), ("y", 1)]
