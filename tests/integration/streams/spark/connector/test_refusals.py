"""Records that the broker rejects go to the production exception handler, in tasks of the sink."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark import TaskContext

from ottla.base.errors import ApiError
from ottla.client.arrow_table import read_table
from ottla.client.transaction import list_open
from ottla.streams import StreamsBuilder
from ottla.streams.layout.layout import Application, lay_out
from ottla.streams.model.raw import ProducedRecord
from ottla.streams.settings.handlers import (
    DefaultProductionExceptionHandler,
    ExceptionHandlers,
    LogAndContinueProductionExceptionHandler,
)
from ottla.streams.spark.connector.options import SparkOptions, Use
from ottla.streams.spark.connector.sink_counts import SinkCounts, SinkCountsFile
from ottla.streams.spark.layout.envelopes import Outbox, Slots, as_arrow
from ottla.streams.spark.stages.shipping import ship
from ottla.streams.spark.stages.topology_source import (
    SourceSettings,
    opened_envelopes,
    topology_sink,
)
from ottla.streams.task.task import TaskSettings
from ottla.testing.cluster import Cluster
from tests.integration.streams.spark.rows import EPOCH

GOES_ON = LogAndContinueProductionExceptionHandler()


@pytest.fixture
def cluster(ottla_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster with a topic for small records and one for dead letters."""
    ottla_cluster.create_topic("small", partitions=2, config={"max.message.bytes": "1000"})
    ottla_cluster.create_topic("dead", config={"max.message.bytes": "100000"})
    # The constructor would make it the context of this process, which then cannot start Spark.
    context = object.__new__(TaskContext)
    context._partitionId = 0
    names = ("sql.streaming.queryId", "spark.jobGroup.id", "streaming.sql.batchId")
    context._localProperties = dict(zip(names, ("q", "run", "0"), strict=True))
    monkeypatch.setattr(TaskContext, "get", lambda: context)
    return ottla_cluster


def _write(
    cluster: Cluster,
    handlers: ExceptionHandlers,
    records: Iterable[ProducedRecord],
    counts_path: str | None = None,
    **words: str,
) -> None:
    """Write records like the sink of a topology."""
    builder = StreamsBuilder()
    builder.stream("in").to("small")
    settings = TaskSettings("app", exception_handlers=handlers)
    layout = lay_out([Application(builder.build(), settings)], {"in": 1})
    options = {"kafka.bootstrap.servers": cluster.bootstrap, "includetimestamp": "true", **words}
    settings_of_sink = SourceSettings(ship(layout, 1), sink_counts_path=counts_path)
    sink = topology_sink(SparkOptions(options, Use.WRITE), settings_of_sink, opened_envelopes)
    envelopes = Outbox(layout, Slots(layout.task_count, 1), 0).envelopes(0, list(records))
    message = sink.write(iter([as_arrow(envelopes)]))
    sink.commit([message], 0)


def _record(topic: str, key: bytes, value: bytes) -> ProducedRecord:
    return ProducedRecord(topic, key, value, EPOCH, (("h", b"x"),))


def _rows(cluster: Cluster, topic: str) -> list[dict[str, Any]]:
    columns = ("key", "value", "headers")
    return list(read_table(topic, bootstrap=cluster.bootstrap, columns=columns).to_pylist())


RECORDS = [_record("small", b"%d" % n, b"x" * (2000 if n % 10 == 3 else 5)) for n in range(40)]


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once"])
def test_a_record_that_is_too_large_is_skipped(
    cluster: Cluster, guarantee: str, tmp_path: Path
) -> None:
    """All others are written; a dead letter has the record, and the error in its headers. Skipped
    records are counted as dropped.
    """
    handlers = ExceptionHandlers(production=GOES_ON, dead_letter_queue_topic_name="dead")
    counts_path = str(tmp_path / "counts")
    _write(cluster, handlers, RECORDS, counts_path, processingguarantee=guarantee)
    assert SinkCountsFile(counts_path).take() == SinkCounts(topics=Counter({"small": 4}))
    rows = sorted(int(row["key"]) for row in _rows(cluster, "small"))
    assert rows == [n for n in range(40) if n % 10 != 3]
    letters = _rows(cluster, "dead")
    assert sorted(int(row["key"]) for row in letters) == [3, 13, 23, 33]
    assert {row["value"] for row in letters} == {b"x" * 2000}
    headers = {letter["key"]: letter["value"] for letter in letters[0]["headers"]}
    assert headers["h"] == b"x"
    assert b"small-" in headers["__streams.errors.message"]
    with cluster.admin() as brokers:
        assert list_open(brokers, "") == []


def test_without_a_dead_letter_topic_the_record_is_lost(cluster: Cluster) -> None:
    """The handler logs the record."""
    _write(cluster, ExceptionHandlers(production=GOES_ON), RECORDS)
    assert len(_rows(cluster, "small")) == 36
    assert _rows(cluster, "dead") == []


def test_by_default_the_application_ends(cluster: Cluster) -> None:
    """The error contains the broker's message."""
    with pytest.raises(ApiError, match=r"small-\d refuses.*max\.message\.bytes"):
        _write(cluster, ExceptionHandlers(), RECORDS)


def test_records_of_an_invalid_topic_are_skipped(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A function can return an invalid topic name; the other records are written."""
    handlers = ExceptionHandlers(production=GOES_ON, dead_letter_queue_topic_name="dead")
    wrong = [_record("no topic!", b"w", b"1"), _record("no topic!", b"w", b"2")]
    _write(cluster, handlers, [*wrong, _record("small", b"k", b"v")])
    assert [row["value"] for row in _rows(cluster, "small")] == [b"v"]
    assert [row["value"] for row in _rows(cluster, "dead")] == [b"1", b"2"]


def test_a_rejected_dead_letter_ends_the_application(cluster: Cluster) -> None:
    """There is no further topic for it."""
    handlers = ExceptionHandlers(production=GOES_ON, dead_letter_queue_topic_name="small")
    with pytest.raises(ApiError, match=r"small-\d refuses"):
        _write(cluster, handlers, RECORDS)


class _Failing(DefaultProductionExceptionHandler):
    def handle_error(self, context: Any, record: Any, error: Any) -> Any:
        assert (context.topic, context.offset, context.source_raw_value) == (None, -1, b"1")
        return super().handle_error(context, record, error)


def test_the_handler_receives_the_record_without_its_source(cluster: Cluster) -> None:
    """The sink does not know the offset at which the record was read."""
    handlers = ExceptionHandlers(production=_Failing())
    with pytest.raises(ApiError, match="no topic!"):
        _write(cluster, handlers, [_record("no topic!", b"w", b"1")])
