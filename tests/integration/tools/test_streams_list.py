"""`ottla streams list` and `describe`: the applications of a cluster, their lag and instances."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from ottla.client.admin.offsets import PROGRESS, CommittedOffset, commit_offsets
from ottla.streams.application.election import Candidate, Election, ElectionSettings
from ottla.streams.application.metrics_server import MetricsServer
from ottla.streams.application.progress import Progress
from ottla.testing import Cluster


@pytest.fixture
def stopped(ottla_cluster: Cluster) -> str:
    """Return a stopped application that has read 4 of 6 words, beside another consumer group."""
    ottla_cluster.create_topic("words")
    producer = Producer({"bootstrap.servers": ottla_cluster.bootstrap})
    for n in range(6):
        producer.produce("words", f"{n}")
    assert producer.flush(10) == 0
    with ottla_cluster.admin() as brokers:
        progress = CommittedOffset(4, metadata=PROGRESS)
        commit_offsets(brokers, "app", {("words", 0): progress})
        commit_offsets(brokers, "other", {("words", 0): CommittedOffset(1)})
    return "app"


@pytest.fixture
def running(run: Any, ottla_cluster: Cluster, stopped: str) -> Iterator[str]:
    """Run two instances of the application."""
    elections = []
    for number, name in enumerate(("first", "second")):
        settings = ElectionSettings(ottla_cluster.bootstrap, stopped, heartbeat_interval_ms=50)
        candidate = Candidate(name, 1_700_000_000_000 + number, f"{name}:80")
        elections.append(Election(settings, candidate, lambda: None))
        elections[-1].start()
        while len(_roles(run, stopped)) != number + 1:
            continue
    yield stopped
    for election in elections:
        election.stop()


def _roles(run: Any, name: str) -> list[tuple[str, str]]:
    rows = run("streams", "describe", name, "--members", "--output", "json").json
    roles = [(row["instance"], row["role"]) for row in rows]
    return roles if any(role == "active" for _, role in roles) else []


def test_stopped_application_is_listed_by_its_progress(run: Any, stopped: str) -> None:
    """Other groups are not listed."""
    done = run("streams", "list")
    assert done.rows == [["app", "NOT_RUNNING", "0", "2"]]
    output = run("streams", "describe", stopped)
    assert output.rows == [["app", "words", "0", "4", "6", "2"]]
    assert "app is NOT_RUNNING: no instance" in output.errors
    assert "No instance runs." in run("streams", "describe", stopped, "--members").errors


def test_instances_are_shown_with_their_roles(run: Any, running: str) -> None:
    """The active instance comes first."""
    (row,) = run("streams", "list", "--output", "json").json
    assert row == {"application_id": "app", "state": "RUNNING", "instances": 2, "lag": 2}
    done = run("streams", "describe", running, "--members", "--output", "json")
    assert _roles(run, running) == [("first", "active"), ("second", "standby")]
    assert {key: done.json[0][key] for key in ("since", "host", "application_server")} == {
        "since": "2023-11-14T22:13:20.000Z",
        "host": "127.0.0.1",
        "application_server": "first:80",
    }
    assert "app is RUNNING: 1 active instance, 1 on standby." in done.errors


@pytest.fixture
def measured(run: Any, ottla_cluster: Cluster, stopped: str) -> Iterator[str]:
    """Run the application with an active instance that serves its metrics."""
    progress = Progress(dropped={"0_0": 3, "1_0": 4})
    server = MetricsServer("127.0.0.1:0", stopped, lambda: progress)
    settings = ElectionSettings(ottla_cluster.bootstrap, stopped, heartbeat_interval_ms=50)
    election = Election(settings, Candidate("first", 1_700_000_000_000), lambda: None)
    election.show_metrics(server.start())
    election.start()
    while not _roles(run, stopped):
        continue
    yield stopped
    election.stop()
    server.stop()


def test_dropped_records_are_shown_if_metrics_are_served(run: Any, measured: str) -> None:
    """The total is below the offsets, and the tasks have their own counts."""
    done = run("streams", "describe", measured)
    assert "app is RUNNING: 1 active instance, 7 dropped records." in done.errors
    assert run("streams", "describe", measured, "--tasks").rows == [
        ["app", "0_0", "3"],
        ["app", "1_0", "4"],
    ]


def test_dropped_records_of_a_stopped_application_are_unknown(run: Any, stopped: str) -> None:
    """The table is empty, and the command says why."""
    assert (
        "No metrics of dropped records are available."
        in run("streams", "describe", stopped, "--tasks").errors
    )
    assert run("streams", "describe", stopped, "--tasks", "--members").code == 2


def test_unknown_application_is_an_error(run: Any, stopped: str) -> None:
    """The error says where to look."""
    done = run("streams", "describe", "nobody")
    assert done.code == 1
    assert "No such application: 'nobody'. `ottla streams list` lists" in done.errors


def test_group_of_an_application_shows_its_lag(run: Any, stopped: str) -> None:
    """The group has offsets and no members, as in Kafka's own tools."""
    done = run("group", "describe", stopped)
    assert done.rows[0][:6] == ["app", "words", "0", "4", "6", "2"]
    assert "app is an application: `ottla streams describe app` shows its instances." in done.errors
    assert run("group", "describe", "other").errors == ""
