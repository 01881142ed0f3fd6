"""The sampler with a running cluster, and with listeners that fail."""

import logging
import sqlite3

import pytest

from ottla.base.clock import RealClock
from ottla.base.files import RealFileSystem
from ottla.console.catalogue import ClusterCatalogue
from ottla.console.history.points import Kind, Period, Subject
from ottla.console.locks import ClusterLocks
from ottla.console.model.controllers import Controller
from ottla.console.model.overview import Sample
from ottla.console.sampler import Listener, Sampler
from ottla.console.state import ConsoleSettings, open_console
from ottla.operations.survey import metadata as requests
from ottla.operations.survey.connections import ClusterConnection, ClusterSettings
from ottla.operations.survey.metadata import Metadata
from ottla.testing import Cluster
from tests.unit.console.test_sampler import Recorder

LOCKS = ClusterLocks(":memory:", RealFileSystem())


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
