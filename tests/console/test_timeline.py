"""The timeline of a real cluster of three brokers, one of which is killed."""

from collections.abc import Iterator

import pytest

from ottla.base.clock import RealClock
from ottla.base.files import RealFileSystem
from ottla.console.accounts.database import Database
from ottla.console.catalogue import ClusterCatalogue
from ottla.console.locks import ClusterLocks
from ottla.console.model.controllers import read_controller_epoch
from ottla.console.sampler import Sampler
from ottla.console.server import ConsoleServer
from ottla.console.state import ConsoleSettings
from ottla.console.timeline.spans import PartitionSpan
from ottla.console.timeline.store import TimelineStore
from ottla.operations.survey.connections import ClusterConnection, ClusterSettings
from ottla.testing import Cluster
from tests.console.session import PASSWORD, ConsoleSession
from tests.console.test_several_brokers import wait_for

pytestmark = pytest.mark.slow

OPTIONS = {"metrics.listener": "127.0.0.1:0", "zookeeper.session.timeout.ms": "1000"}
_PATIENCE_S = 20.0


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    """Return three brokers with HTTP ports and the topic orders."""
    with Cluster(3, options=OPTIONS) as running:
        running.create_topic("orders", partitions=3, replication_factor=3)
        yield running


def settings_of(cluster: Cluster) -> ClusterSettings:
    """Return the settings of a cluster with the HTTP ports of its live brokers."""
    urls = {}
    for broker in cluster.live_brokers:
        address = cluster.node(broker).monitoring_address
        assert address is not None
        urls[broker] = f"http://{address[0]}:{address[1]}"
    return ClusterSettings("local", cluster.bootstrap, http_urls=urls)


def test_a_killed_broker_leaves_its_marks(three: Cluster) -> None:
    """Leaders move, the ISR shrinks and expands, the controller changes with its epoch."""
    connection = ClusterConnection(settings_of(three), timeout_s=3.0)
    clock = RealClock()
    store = TimelineStore(Database(":memory:"))
    locks = ClusterLocks(":memory:", RealFileSystem())
    sampler = Sampler(ClusterCatalogue(), [store], locks, clock)
    try:
        sampler.sample(connection)
        (controller,) = store.controllers("local")
        assert controller.epoch == read_controller_epoch(connection, controller.node_id)
        assert controller.epoch is not None
        victim = controller.node_id
        three.kill(victim)

        def sample_until(number_missing: int) -> list[PartitionSpan]:
            deadline = clock.monotonic() + _PATIENCE_S
            while True:
                connection.forget()
                sampler.sample(connection)
                spans = [row for row in store.partitions("local") if row.end_ms is None]
                spans = [row for row in spans if row.topic == "orders"]
                # Metadata may list a broker once more after its partitions have other leaders.
                gone = {row.node_id for row in store.brokers("local") if row.end_ms is not None}
                if (victim in gone or not number_missing) and all(
                    len(row.missing) == number_missing for row in spans
                ):
                    return spans
                assert clock.monotonic() < deadline, spans
                connection.pause(0.05)

        led = sample_until(1)
        assert {row.missing for row in led} == {(victim,)}
        assert victim not in {row.leader for row in led}
        three.restart(victim)
        sample_until(0)
        history = store.controllers("local")
        assert history[0].end_ms is not None
        assert history[-1].node_id != victim
        epochs = [row.epoch for row in history if row.epoch is not None]
        assert epochs == sorted(set(epochs))
        assert len(epochs) > 1
        stays = [row.end_ms for row in store.brokers("local") if row.node_id == victim]
        assert stays[0] is not None
        assert stays[-1] is None
        moved = [row for row in store.partitions("local", topic="orders") if row.leader == victim]
        assert all(row.end_ms is not None for row in moved)
    finally:
        connection.close()


def test_the_page_and_the_api_show_the_timeline(three: Cluster) -> None:
    """The console samples by itself; the page draws it and has a table with the same rows."""
    settings = ConsoleSettings((settings_of(three),), ":memory:", port=0, first_password=PASSWORD)
    server = ConsoleServer(settings)
    server.start()
    try:
        session = ConsoleSession(server.url)
        session.login("admin", PASSWORD)
        path = "/c/local/timeline?topic=orders&minutes=15"
        wait_for(session, path, 'class="complete"')
        page = session.get(path).text
        assert page.count('class="lane"') == 3 + 1 + 3
        assert "orders-2" in page
        listed = session.get("/api/v1/clusters/local/timeline/leaders?topic=orders").json
        assert [row["partition"] for row in listed["items"]] == [0, 1, 2]
        controllers = session.get("/api/v1/clusters/local/timeline/controllers").json
        assert controllers["items"][0]["epoch"] is not None
        assert session.get("/api/v1/clusters/local/timeline/brokers").json["total"] == 3
        assert session.get("/api/v1/clusters/local/timeline/periods").json["total"] == 1
        assert session.get("/c/local/timeline?minutes=x").status == 400
    finally:
        server.stop()
