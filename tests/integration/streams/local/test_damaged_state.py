"""Damaged state on disk does not end an application: it is discarded, and restored."""

import sqlite3
from pathlib import Path

import pytest

from ottla.streams import (
    ExceptionHandlers,
    LogAndContinueProcessingExceptionHandler,
    LogAndFailProcessingExceptionHandler,
    State,
)
from ottla.testing import Cluster
from tests.integration.streams.local.applications import WAIT_S, counting, produce


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
    options = {
        "state_dir": str(tmp_path),
        "processing_guarantee": "exactly_once_v2",
        "exception_handlers": handlers,
    }
    produce(ottla_cluster, "aab")
    with counting(ottla_cluster.bootstrap, **options) as app:
        app.await_idle(WAIT_S)
    with counting(ottla_cluster.bootstrap, **options) as app:
        app.await_running(WAIT_S)
        _damage(tmp_path)
        produce(ottla_cluster, "ab")
        app.await_idle(WAIT_S)
        assert dict(app.store("counts", is_local=True).all()) == {"a": 3, "b": 2}
        assert app.state is State.RUNNING
    assert "Task 0_0: the state on disk is discarded" in caplog.text
