"""The metadata of instances, workers, stores and keys of the local engine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.client.records import TopicPartition
from ottla.streams import KafkaStreams, KeyQueryMetadata, StreamsError
from ottla.testing import Cluster
from tests.integration.streams.local.applications import WAIT_S, counting, produce
from tests.process.broker_cluster import wait

_KEYS = "abcdefgh"


@pytest.fixture
def apps(ottla_cluster: Cluster, tmp_path: Path) -> Iterator[list[KafkaStreams]]:
    """Two instances, each with one task and a standby of the other one."""
    ottla_cluster.create_topic("words", partitions=2)
    produce(ottla_cluster, _KEYS)
    apps = [
        counting(
            ottla_cluster.bootstrap,
            state_dir=str(tmp_path),
            num_standby_replicas=1,
            application_server=f"host{number}:80",
        )
        for number in range(2)
    ]
    for app in apps:
        app.start()
    wait(lambda: all(map(_is_complete, apps)), "each instance has a task and a standby", WAIT_S)
    apps[0].await_idle(WAIT_S)
    yield apps
    for app in apps:
        app.close()


def _is_complete(app: KafkaStreams) -> bool:
    rows = [row for row in app.metadata_for_local_threads() if row.thread_state == "RUNNING"]
    return [(len(row.active_tasks), len(row.standby_tasks)) for row in rows] == [(1, 1)]


def test_a_worker_has_its_tasks_with_committed_offsets(apps: list[KafkaStreams]) -> None:
    """Both workers have the same name, as they are in two instances."""
    committed = {}
    for app in apps:
        (thread,) = app.metadata_for_local_threads()
        (task,), (standby,) = thread.active_tasks, thread.standby_tasks
        assert {task.task_id, standby.task_id} == {"0_0", "0_1"}
        assert thread.thread_name == "streams-worker-0"
        committed |= task.committed_offsets
        assert task.topic_partitions == task.committed_offsets.keys()
    assert sum(committed.values()) == len(_KEYS)
    assert committed.keys() == {TopicPartition("words", number) for number in range(2)}


def test_a_key_is_found_at_the_instance_that_counts_it(apps: list[KafkaStreams]) -> None:
    """The other instance has the standby; an unknown store is an error."""
    hosts = {f"host{number}:80": app for number, app in enumerate(apps)}
    for key in _KEYS:
        found = apps[0].query_metadata_for_key("counts", key)
        assert found != KeyQueryMetadata.NOT_AVAILABLE
        assert found.standby_hosts == hosts.keys() - {found.active_host}
        view = hosts[found.active_host].store("counts", is_local=True)
        assert view.get(key) == 1
    with pytest.raises(StreamsError, match="no store nowhere"):
        apps[0].query_metadata_for_key("nowhere", "a")


def test_lags_are_of_tasks_and_standbys(apps: list[KafkaStreams]) -> None:
    """A standby reaches the end of its changelog."""

    def lags() -> dict[int, int]:
        rows = apps[0].all_local_store_partition_lags()["counts"]
        return {partition: row.offset_lag for partition, row in rows.items()}

    wait(lambda: lags() == {0: 0, 1: 0}, "the standby catches up", WAIT_S)
    assert lags().keys() == {0, 1}


def test_all_instances_are_known_with_their_stores(apps: list[KafkaStreams]) -> None:
    """The metadata of the group has their hosts."""
    rows = apps[0].metadata_for_all_streams_clients()
    assert {row.host for row in rows} == {"host0:80", "host1:80"}
    assert all(row.state_store_names == {"counts"} and row.topics == {"words"} for row in rows)
    assert len(apps[1].streams_metadata_for_store("counts")) == 2
