"""Stores of the local engine are read from the tasks, and the tasks can be paused."""

import threading
from typing import Any

import pytest

from ottla.streams import StreamsError
from ottla.testing import Cluster
from tests.integration.streams.local.applications import WAIT_S, counting, produce


def test_stores_of_tasks_are_read_before_a_commit(ottla_cluster: Cluster) -> None:
    """The view has all partitions of this instance, and values with timestamps on request."""
    ottla_cluster.create_topic("words", partitions=3)
    produce(ottla_cluster, "abca")
    # Nothing is committed during the test: a reader of changelogs sees nothing.
    with counting(
        ottla_cluster.bootstrap,
        commit_interval_ms=600_000,
        processing_guarantee="exactly_once_v2",
    ) as app:
        view = app.store("counts", is_local=True)
        _await(lambda: dict(view.all()) == {"a": 2, "b": 1, "c": 1})
        assert view.get("a") == 2
        assert view.approximate_num_entries() == 3
        timed = app.store("counts", is_local=True, with_timestamps=True).get("a")
        assert (timed.value, timed.timestamp > 0) == (2, True)
        with pytest.raises(StreamsError, match="there is no store nowhere"):
            app.store("nowhere", is_local=True)


def test_paused_tasks_process_nothing(ottla_cluster: Cluster) -> None:
    """They stay assigned, and continue with the records that have arrived since (KIP-834)."""
    ottla_cluster.create_topic("words", partitions=1)
    app = counting(ottla_cluster.bootstrap)
    app.pause()
    with app:
        app.await_running(WAIT_S)
        produce(ottla_cluster, "ab")
        _await(lambda: app.progress().lag == 2)
        assert list(app.store("counts", is_local=True).all()) == []
        app.resume()
        app.await_idle(WAIT_S)
        assert dict(app.store("counts", is_local=True).all()) == {"a": 1, "b": 1}


def _await(is_done: Any) -> None:
    pause = threading.Event()
    for _ in range(int(WAIT_S / 0.05)):
        if is_done():
            return
        pause.wait(0.05)
    raise AssertionError("the state was not reached")
