"""Damaged state on disk does not end an application: it is discarded, and restored."""

import sqlite3
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.streams import (
    ExceptionHandlers,
    KafkaStreams,
    LogAndContinueProcessingExceptionHandler,
    LogAndFailProcessingExceptionHandler,
    Serdes,
    State,
    StreamsBuilder,
)
from ottla.testing import Cluster

_WAIT_S = 60.0


def _app(bootstrap: str, state_dir: Path, handlers: ExceptionHandlers) -> KafkaStreams:
    builder = StreamsBuilder()
    builder.stream("words").group_by_key().count(materialized="counts")
    return KafkaStreams(
        builder.build(),
        application_id="app",
        bootstrap_servers=bootstrap,
        engine="local",
        state_dir=str(state_dir),
        processing_guarantee="exactly_once_v2",
        default_key_serde=Serdes.string(),
        default_value_serde=Serdes.string(),
        exception_handlers=handlers,
    )


def _produce(cluster: Cluster, keys: str) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "partitioner": "murmur2_random"})
    for key in keys:
        producer.produce("words", b"x", key)
    assert producer.flush(_WAIT_S) == 0


def _damage(folder: Path) -> None:
    (file,) = folder.rglob("state.db")
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE entries SET value = X'0000'")
    connection.close()


@pytest.mark.parametrize(
    "handler", [LogAndFailProcessingExceptionHandler, LogAndContinueProcessingExceptionHandler]
)
def test_a_record_that_meets_damaged_state_is_processed_after_a_restore(
    handler: type, ottla_cluster: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The error is not passed to the handler, which would skip the record."""
    ottla_cluster.create_topic("words", partitions=1)
    handlers = ExceptionHandlers(processing=handler())
    _produce(ottla_cluster, "aab")
    with _app(ottla_cluster.bootstrap, tmp_path, handlers) as app:
        app.await_idle(_WAIT_S)
    with _app(ottla_cluster.bootstrap, tmp_path, handlers) as app:
        app.await_running(_WAIT_S)
        _damage(tmp_path)
        _produce(ottla_cluster, "ab")
        app.await_idle(_WAIT_S)
        assert dict(app.store("counts", is_local=True).all()) == {"a": 3, "b": 2}
        assert app.state is State.RUNNING
    assert "Task 0_0: the state on disk is discarded" in caplog.text
