"""Stores of the local engine are read from the tasks, and the tasks can be paused."""

import threading
from typing import Any

import pytest

from ottla.client.records import TopicPartition
from ottla.streams import (
    QueryableStoreTypes,
    StandbyUpdateListener,
    StateRestoreListener,
    StoreQueryParameters,
    StreamsError,
)
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


class Restores(StateRestoreListener):
    """Notes the number of restored records of each partition."""

    def __init__(self) -> None:
        self.totals: dict[int, int] = {}

    def on_restore_end(self, partition: TopicPartition, store_name: str, total: int) -> None:
        """Note a restore."""
        assert store_name == "counts"
        self.totals[partition.partition] = total


class Replicas(StandbyUpdateListener):
    """Notes the partitions that have standbys."""

    def __init__(self) -> None:
        self.partitions: set[int] = set()

    def on_update_start(
        self, partition: TopicPartition, store_name: str, start_offset: int
    ) -> None:
        """Note a standby."""
        assert (store_name, start_offset) == ("counts", 0)
        self.partitions.add(partition.partition)


def test_standbys_are_read_if_stale_reads_are_allowed(ottla_cluster: Cluster) -> None:
    """Each of two instances has one task and a standby of the other one, which listeners follow."""
    ottla_cluster.create_topic("words", partitions=2)
    options = {"num_standby_replicas": 1, "default_dsl_store": "in_memory"}
    kind = QueryableStoreTypes.key_value_store()
    stale = StoreQueryParameters.from_name_and_type("counts", kind).enable_stale_stores()
    keys, replicas, restores = "abcdefgh", Replicas(), Restores()
    produce(ottla_cluster, keys)
    first, second = (counting(ottla_cluster.bootstrap, **options) for _ in range(2))
    second.set_standby_update_listener(replicas)
    with first, second:
        for app in (first, second):
            _await(
                lambda row=app: row.progress().tasks == {"active": 1, "restoring": 0, "standby": 1}
            )
        for app in (first, second):
            view = app.store(stale, is_local=True)
            _await(lambda row=view: dict(row.all()) == dict.fromkeys(keys, 1))
            assert set(dict(app.store("counts", is_local=True).all())) < set(keys)
        assert replicas.partitions
    last = counting(ottla_cluster.bootstrap, **options)
    last.set_global_state_restore_listener(restores)
    with last:
        last.await_running(WAIT_S)
        assert set(restores.totals) == {0, 1}
        assert sum(restores.totals.values()) == len(keys)
        with pytest.raises(StreamsError, match="must be set before the application starts"):
            last.set_global_state_restore_listener(restores)


def _await(is_done: Any) -> None:
    pause = threading.Event()
    for _ in range(int(WAIT_S / 0.05)):
        if is_done():
            return
        pause.wait(0.05)
    raise AssertionError("the state was not reached")
