"""The sampler with a running cluster, with none, and with listeners that fail."""

import logging
import sqlite3

import pytest

from ottla.base.clock import RealClock
from ottla.base.files import RealFileSystem
from ottla.console.history.points import Kind, Period, Subject
from ottla.console.locks import ClusterLocks
from ottla.console.model.connections import ClusterCatalogue, ClusterConnection, ClusterSettings
from ottla.console.model.overview import Sample
from ottla.console.model.requests import metadata as requests
from ottla.console.model.requests.controllers import Controller
from ottla.console.model.requests.metadata import Metadata
from ottla.console.sampler import Listener, Sampler, Schedule
from ottla.console.state import ConsoleSettings, open_console
from ottla.testing import Cluster

LOCKS = ClusterLocks(":memory:", RealFileSystem())


class Recorder(Listener):
    """Keeps what the sampler passes on."""

    def __init__(self) -> None:
        self.controllers: list[Controller] = []
        self.samples: list[Sample] = []
        self.failures: list[tuple[str, str]] = []

    def on_metadata(self, cluster: str, metadata: Metadata, controller: Controller) -> None:
        """Keep the controller."""
        self.controllers.append(controller)

    def on_sample(self, sample: Sample) -> None:
        """Keep a sample."""
        self.samples.append(sample)

    def on_failure(self, cluster: str, at_ms: int, reason: str) -> None:
        """Keep a failure."""
        self.failures.append((cluster, reason))


class Broken(Listener):
    """Fails at every call."""

    def on_metadata(self, cluster: str, metadata: Metadata, controller: Controller) -> None:
        """Fail."""
        raise sqlite3.OperationalError("database or disk is full")

    def on_sample(self, sample: Sample) -> None:
        """Fail."""
        raise OSError("no space left on device")


def test_a_started_sampler_stores_the_history_of_a_cluster_and_stops() -> None:
    """Its first sample and its first timeline come at once; `close` ends its only thread."""
    with Cluster() as cluster:
        cluster.create_topic("orders", partitions=2)
        settings = ConsoleSettings((ClusterSettings("live", cluster.bootstrap),), ":memory:")
        console = open_console(settings)
        connection = console.clusters.get("live")
        console.sampler.start()
        subject = Subject(Kind.TOPIC, "orders")
        for _ in range(500):
            now_s = connection.now_ms() // 1000
            points = console.history.read("live", subject, Period.HOUR, now_s)
            if points:
                break
            connection.pause(0.02)
        assert [point.records for point in points] == [0]
        assert len(console.timeline.partitions("live", topic="orders")) == 2
        console.close()
        assert console.sampler.is_stopped


def test_a_cluster_that_does_not_answer_is_reported_to_the_listeners() -> None:
    """The history has a gap, and the alerts hear of it."""
    settings = ConsoleSettings((ClusterSettings("dead", "127.0.0.1:1"),), ":memory:")
    console = open_console(settings)
    listener = Recorder()
    console.sampler.listen(listener)
    console.sampler.sample(console.clusters.get("dead"))
    assert listener.samples == []
    assert [cluster for cluster, _ in listener.failures] == ["dead"]
    console.close()


def test_a_listener_that_fails_stops_no_other_and_a_round_reads_the_metadata_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The listener after the broken one receives metadata and sample; the failures are logged."""
    reads = []
    load = requests._load

    def counted(connection: ClusterConnection) -> Metadata:
        reads.append(connection.name)
        return load(connection)

    with Cluster() as cluster:
        cluster.create_topic("orders")
        connection = ClusterConnection(ClusterSettings("live", cluster.bootstrap))
        recorder = Recorder()
        sampler = Sampler(ClusterCatalogue(), [Broken(), recorder], LOCKS, RealClock())
        monkeypatch.setattr(requests, "_load", counted)
        with caplog.at_level(logging.ERROR):
            sampler.sample(connection)
        connection.close()
    assert reads == ["live"]
    assert [controller.node_id for controller in recorder.controllers] == [1]
    assert [sample.controller_id for sample in recorder.samples] == [1]
    assert recorder.failures == []
    assert [record.message for record in caplog.records] == ["Broken did not store a reading"] * 2


def test_every_second_round_of_a_small_cluster_takes_a_sample() -> None:
    """Rounds come every 5 seconds, samples every 10, also if a round is a little early."""
    schedule, now, sampled = Schedule(), 100.0, []
    for _ in range(6):
        schedule.on_metadata(now, now + 0.01)
        if schedule.needs_sample(now):
            schedule.on_sample(now, now + 0.05)
            sampled.append(now)
        assert schedule.next_round == pytest.approx(now + 5)
        now = schedule.next_round - 0.001
    assert [round(at) for at in sampled] == [100, 110, 120]


def test_a_large_cluster_is_read_less_often_but_without_gaps() -> None:
    """Metadata takes 5 % of the time at most, samples 2 %, up to 30 and 60 seconds of pause."""
    schedule = Schedule()
    schedule.on_metadata(0, 0.5)
    schedule.on_sample(0, 0.5)
    assert schedule.next_round == pytest.approx(10)
    assert schedule.next_sample == pytest.approx(25)
    schedule.on_metadata(0, 8)
    schedule.on_sample(0, 8)
    assert schedule.next_round == pytest.approx(30)
    assert schedule.next_sample == pytest.approx(60)


def test_a_cluster_that_does_not_respond_is_read_again_soon() -> None:
    """The wait for a dead cluster is no work: the end of the failure is seen after 5 seconds."""
    schedule = Schedule()
    schedule.on_failure(8)
    assert schedule.next_round == pytest.approx(13)
    assert schedule.needs_sample(13)
