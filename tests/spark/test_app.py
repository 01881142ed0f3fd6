"""KafkaStreams on Spark: states, interactive queries and errors."""

import json
import os
import re
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ottla.client.admin.configs import Resource, ResourceType, describe_config
from ottla.client.admin.offsets import committed_offsets
from ottla.client.arrow_table import read_table
from ottla.client.brokers import Brokers
from ottla.streams import (
    Serdes,
    SessionWindows,
    StreamsBuilder,
    StreamsError,
    TimeWindows,
    Topology,
    TopologyError,
    ValueAndTimestamp,
    col,
)
from ottla.streams.application.listing import instances_of
from ottla.streams.application.progress import Progress
from ottla.streams.kafka_streams import KafkaStreams, State, UncaughtExceptionResponse
from ottla.streams.model.durations import DAY_MS
from ottla.streams.settings.handlers import (
    ExceptionHandlers,
    LogAndContinueExceptionHandler,
    LogAndContinueProductionExceptionHandler,
)
from ottla.streams.task.task import TopicRecord
from ottla.testing.cluster import Cluster
from ottla.testing.process import COMMAND
from ottla.wire.records.murmur2 import murmur2
from tests.spark import scenarios

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600), pytest.mark.slow, pytest.mark.alone]

_TEXT = Serdes.string()
_PATIENCE_S = 300.0
_START = 1_700_000_000_000


def _counting(topic: str, target: str) -> Topology:
    """Count words: in total, by windows of ten seconds, and by sessions; add a table of names."""
    builder = StreamsBuilder()
    builder.global_table("names", key=_TEXT, value=_TEXT, materialized="names-store")
    words = builder.stream(topic, key=_TEXT, value=_TEXT)
    grouped = words.group_by(lambda value: value, key=_TEXT, value=_TEXT)
    grouped.count("all").to_stream().map_values(str).to(target, key=_TEXT, value=_TEXT)
    grouped.windowed_by(TimeWindows.of_size_with_no_grace("10 s")).count("windows")
    grouped.windowed_by(SessionWindows.of_inactivity_gap_with_no_grace("5 s")).count("sessions")
    return builder.build()


def _records(*words: str, start: int = _START, step: int = 1000) -> list[TopicRecord]:
    return [TopicRecord(None, word.encode(), start + n * step) for n, word in enumerate(words)]


def _app(
    topology: Topology, spark: SparkSession, broker: Cluster, name: str, folder: Path, **config: Any
) -> KafkaStreams:
    settings = {
        "heartbeat_interval_ms": 200,
        "state_dir": str(folder),
        # The records are years old.
        "windowstore_changelog_additional_retention_ms": 100 * 366 * DAY_MS,
        **config,
    }
    return KafkaStreams(
        topology, application_id=name, bootstrap_servers=broker.bootstrap, spark=spark, **settings
    )


_PAUSE = threading.Event()


def _eventually(ask: Callable[[], Any], expected: Any) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while ask() != expected:
        assert time.monotonic() < deadline, f"{ask()} is not {expected}"
        _PAUSE.wait(0.1)


def _create(broker: Cluster, *topics: str) -> None:
    for topic in topics:
        broker.create_topic(topic, partitions=2, config={"retention.ms": "-1"})


def test_an_application_runs_and_its_stores_can_be_queried(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """States, stores and the committed lag are as in Kafka Streams; a restart continues."""
    _create(broker, "app-words", "app-counts", "names")
    scenarios.produce(broker.bootstrap, {"names": [TopicRecord(b"a", b"Anna", _START)]})
    scenarios.produce(broker.bootstrap, {"app-words": _records(*"abacabad")})
    states: list[tuple[State, State]] = []
    topology = _counting("app-words", "app-counts")
    app = _app(topology, spark, broker, "app-one", tmp_path, processing_guarantee="exactly_once_v2")
    app.set_state_listener(lambda new, old: states.append((new, old)))
    with app:
        app.await_running(_PATIENCE_S)
        assert app.is_active
        counts = app.store("all", timeout_s=_PATIENCE_S)
        _eventually(lambda: dict(counts.all()), {"a": 4, "b": 2, "c": 1, "d": 1})
        assert sorted(counts.range("b", "c")) == [("b", 2), ("c", 1)]
        assert counts.get("missing") is None
        assert app.store("all", with_timestamps=True).get("b") == ValueAndTimestamp(
            2, _START + 5000
        )
        windows = app.store("windows")
        _eventually(lambda: windows.fetch("a", _START), 4)
        assert [value for _, value in windows.fetch_all(_START, _START + 9999)].count(1) == 2
        assert list(windows.fetch("b", _START, _START + 9999)) == [(_START, 2)]
        sessions = app.store("sessions")
        _eventually(lambda: [value for _, value in sessions.fetch("a")], [4])
        assert app.store("names-store").get("a") == "Anna"
        _eventually(lambda: app.progress().lag, 0)
        assert app.progress().records == 8
        assert app.progress().state_bytes > 0
        (own,) = app.metadata()
        assert own.is_active
        assert {"all", "names-store"} <= own.state_store_names
        with pytest.raises(StreamsError, match="there is no store nothing; the topology has: all"):
            app.store("nothing")
        took = []
        for _ in range(200):
            begin = time.perf_counter()
            counts.get("a")
            took.append(time.perf_counter() - begin)
        assert sorted(took)[100] < 0.010
    assert app.state is State.NOT_RUNNING
    assert states == [
        (State.REBALANCING, State.CREATED),
        (State.RUNNING, State.REBALANCING),
        (State.PENDING_SHUTDOWN, State.RUNNING),
        (State.NOT_RUNNING, State.PENDING_SHUTDOWN),
    ]
    _check_topics(broker)
    scenarios.produce(broker.bootstrap, {"app-words": _records("a", start=_START + 60_000)})
    with _app(
        topology, spark, broker, "app-one", tmp_path, processing_guarantee="exactly_once_v2"
    ) as again:
        counts = again.store("all", timeout_s=_PATIENCE_S)
        _eventually(lambda: counts.get("a"), 5)
    rows = read_table("app-counts", bootstrap=broker.bootstrap).to_pylist()
    assert sorted(int(row["value"]) for row in rows if row["key"] == b"a") == [1, 2, 3, 4, 5]


def _check_topics(broker: Cluster) -> None:
    with broker.admin() as brokers:
        topic = Resource(ResourceType.TOPIC, "app-one-windows-changelog")
        config = {record.name: record.value for record in describe_config(brokers, topic)}
        assert config["cleanup.policy"] == "compact,delete"
        committed = committed_offsets(brokers, "app-one")
    assert committed["app-words", 0].offset == 8


def _divide(value: str) -> str:
    return str(1 // (len(value) - 1))


def _failing(source: str) -> Topology:
    builder = StreamsBuilder()
    builder.stream(source, key=_TEXT, value=_TEXT).map_values(_divide).to("app-out")
    return builder.build()


def test_an_error_ends_the_application_and_is_reported(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """The handler can retry; finally the state is ERROR, and the error has the user's frame."""
    _create(broker, "app-poison", "app-out")
    scenarios.produce(broker.bootstrap, {"app-poison": _records("x")})
    seen: list[str] = []

    def handle(error: Exception) -> UncaughtExceptionResponse:
        seen.append(str(error))
        if len(seen) < 2:
            return UncaughtExceptionResponse.REPLACE_THREAD
        return UncaughtExceptionResponse.SHUTDOWN_CLIENT

    app = _app(_failing("app-poison"), spark, broker, "app-two", tmp_path)
    app.set_uncaught_exception_handler(handle)
    with app, pytest.raises(StreamsError, match="ZeroDivisionError") as caught:
        app.await_termination(_PATIENCE_S)
    assert app.state is State.ERROR
    assert len(seen) == 2
    assert "test_app.py" in str(caught.value)
    assert "in _divide" in str(caught.value)


def test_missing_topics_are_all_named_in_the_error(
    broker: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    """The error is raised before Spark starts."""
    builder = StreamsBuilder()
    builder.stream("not-here").merge(builder.stream("nor-there")).to("out")
    app = _app(builder.build(), spark, broker, "app-three", tmp_path)
    with pytest.raises(
        TopologyError, match="topics nor-there, not-here are not there: create them"
    ):
        app.start()
    assert app.progress() == Progress()


def test_dropped_records_are_counted_by_task(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """Both source tasks and stages count over several micro-batches; the output is not affected."""
    _create(broker, "app-dropping", "app-dropped")
    builder = StreamsBuilder()
    words = builder.stream("app-dropping", key=_TEXT, value=_TEXT)
    grouped = words.group_by(lambda value: value if value != "none" else None, key=_TEXT)
    windowed = grouped.windowed_by(TimeWindows.of_size_with_no_grace("10 s")).count("windows")
    output = windowed.to_stream().select_key(lambda key, _: key.key).map_values(str)
    output.to("app-dropped", key=_TEXT, value=_TEXT)
    with _app(builder.build(), spark, broker, "dropping", tmp_path) as app:
        app.await_running(_PATIENCE_S)
        scenarios.produce(broker.bootstrap, {"app-dropping": _records("a", "none", "none")})
        _eventually(lambda: app.progress().dropped_records, 2)
        # These records are older than the stream time by more than the window.
        late = _records("a", start=_START + 60_000) + _records("a", "a", "a", step=0)
        scenarios.produce(broker.bootstrap, {"app-dropping": late})
        _eventually(lambda: app.progress().dropped_records, 5)
        by_task = app.progress().dropped
        assert sum(count for task, count in by_task.items() if task.startswith("0_")) == 2
        assert sum(count for task, count in by_task.items() if task.startswith("1_")) == 3
        rows = read_table("app-dropped", bootstrap=broker.bootstrap).to_pylist()
        assert [(row["key"], row["value"]) for row in rows] == [(b"a", b"1"), (b"a", b"1")]


def _describe(broker: Cluster, name: str) -> dict[str, int]:
    """Return the dropped records of each task as `ottla streams describe` shows them."""
    words = ["streams", "describe", name, "--tasks", "--output", "json"]
    environment = {**os.environ, "OTTLA_BOOTSTRAP": broker.bootstrap}
    done = subprocess.run(
        [*COMMAND, *words], env=environment, capture_output=True, text=True, check=True
    )
    return {row["task"]: row["dropped_records"] for row in json.loads(done.stdout)}


def test_records_dropped_in_the_jvm_and_by_the_broker_and_misplaced_keys_are_reported(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """`progress()`, `/metrics` and `ottla streams describe` show the counts of real queries."""
    _create(broker, "app-columns", "app-left", "app-right", "app-counted")
    broker.create_topic("app-small", config={"retention.ms": "-1", "max.message.bytes": "1000"})
    builder = StreamsBuilder()
    filtered = builder.stream("app-columns", key=_TEXT, value=_TEXT).filter(col("value") != "x")
    filtered.to("app-small", key=_TEXT, value=_TEXT)
    both = builder.stream(["app-left", "app-right"], key=_TEXT, value=_TEXT)
    counts = both.group_by_key().count().to_stream().map_values(str)
    counts.to("app-counted", key=_TEXT, value=_TEXT)
    handlers = ExceptionHandlers(
        LogAndContinueExceptionHandler(), production=LogAndContinueProductionExceptionHandler()
    )
    listener = "127.0.0.1:0"
    settings = {"exception_handlers": handlers, "metrics_listener": listener}
    values = (b"a", b"\xff", b"x", b"y" * 2000, b"\xff")
    rows = [TopicRecord(b"k", value, _START) for value in values]
    # All of them are in partition 0, whatever their hashes are.
    keys = [TopicRecord(b"key-%d" % number, b"v", _START) for number in range(8)]
    misplaced = sum((murmur2(record.key or b"") & 0x7FFFFFFF) % 2 for record in keys)
    assert misplaced
    with _app(builder.build(), spark, broker, "reporting", tmp_path, **settings) as app:
        app.await_running(_PATIENCE_S)
        scenarios.produce(broker.bootstrap, {"app-columns": rows, "app-left": keys})
        # Two records cannot be read, and the broker rejects one.
        _eventually(lambda: app.progress().dropped, {"0_0": 3})
        _eventually(lambda: app.progress().misplaced_keys, {"app-left": misplaced})
        assert _describe(broker, "reporting") == {"0_0": 3}
        with Brokers(broker.bootstrap) as brokers:
            (instance,) = instances_of(brokers, "reporting")
        url = f"http://{instance.candidate.metrics}/metrics"
        with urllib.request.urlopen(url, timeout=30) as response:
            text = response.read().decode()
        assert re.search(r"dropped_records_total\{.*task_id=\"0_0\".*\} 3\n", text)
        assert re.search(rf"misplaced_keys_total\{{.*\"app-left\".*\}} {misplaced}\n", text)
    rows_written = read_table("app-small", bootstrap=broker.bootstrap).to_pylist()
    assert [row["value"] for row in rows_written] == [b"a"]
