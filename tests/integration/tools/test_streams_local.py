"""`ottla streams list`, `describe` and `reset` of applications that run with the local engine."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.streams import KafkaStreams
from ottla.testing import Cluster
from tests.integration.streams.local.applications import WAIT_S, counting, produce
from tests.process.broker_cluster import wait


def _app(cluster: Cluster, folder: Path, server: str) -> KafkaStreams:
    return counting(
        cluster.bootstrap,
        state_dir=str(folder),
        num_standby_replicas=1,
        application_server=server,
        metrics_listener="127.0.0.1:0",
    )


@pytest.fixture
def apps(ottla_cluster: Cluster, tmp_path: Path) -> Iterator[list[KafkaStreams]]:
    """Two instances of an application with two tasks, beside another group."""
    ottla_cluster.create_topic("words", partitions=2)
    produce(ottla_cluster, "abcdefgh")
    apps = [_app(ottla_cluster, tmp_path, f"host{number}:80") for number in range(2)]
    for app in apps:
        app.start()
    apps[0].await_idle(WAIT_S)
    yield apps
    for app in apps:
        app.close()


def _members(run: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = run(
        "streams", "describe", "app", "--members", "--output", "json"
    ).json
    return rows


def test_instances_are_shown_with_their_tasks(run: Any, apps: list[KafkaStreams]) -> None:
    """Each has one of two tasks, and follows the other one."""
    wait(
        lambda: [row["active_tasks"] != "" for row in _members(run)] == [True, True],
        "each instance has a task",
        WAIT_S,
    )
    rows = _members(run)
    assert {row["application_server"] for row in rows} == {"host0:80", "host1:80"}
    assert {row["active_tasks"] for row in rows} == {"0_0", "0_1"}
    assert all(row["standby_tasks"] != row["active_tasks"] for row in rows)
    assert {row["standby_tasks"] for row in rows} == {"0_0", "0_1"}
    assert run("streams", "list").rows == [["app", "RUNNING", "2", "0"]]
    described = run("streams", "describe", "app")
    assert "app is RUNNING: 2 instances, 2 tasks, 0 dropped records." in described.errors


def test_a_closed_application_is_listed_and_reset(
    run: Any, apps: list[KafkaStreams], ottla_cluster: Cluster, tmp_path: Path
) -> None:
    """Positions, changelogs and state on disk are removed: it counts from the beginning."""
    options = ("--application-id", "app", "--state-dir", str(tmp_path), "--execute")
    assert "instances run" in run("streams", "reset", *options).errors
    for app in apps:
        app.close()
    assert run("streams", "list").rows == [["app", "NOT_RUNNING", "0", "0"]]
    assert run("streams", "reset", *options).code == 0
    assert list(tmp_path.rglob("state.db")) == []
    with _app(ottla_cluster, tmp_path, "") as again:
        again.await_idle(WAIT_S)
        assert set(dict(again.store("counts", is_local=True).all()).values()) == {1}
