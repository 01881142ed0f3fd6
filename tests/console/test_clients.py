"""Clients that push metrics (KIP-714): a real producer of librdkafka, a broker and a console."""

import threading
from collections.abc import Iterator
from html import unescape

import pytest
from confluent_kafka import Producer
from playwright.sync_api import expect

from ottla.base.clock import RealClock
from ottla.base.errors import ApiError, ErrorCode
from ottla.console.model.configs import ConfigKind, ConfigResource, alter_config
from ottla.console.server import ConsoleServer
from ottla.console.state import ConsoleSettings
from ottla.operations.survey.clients import ClientRow, describe_client, list_clients
from ottla.operations.survey.connections import ClusterConnection, ClusterSettings
from ottla.testing import Cluster
from tests.console.chromium import admin_page, chromium, without_errors
from tests.console.conftest import commit
from tests.console.session import PASSWORD, ConsoleSession
from tests.console.test_timeline import settings_of

pytestmark = pytest.mark.slow

OPTIONS = {"metrics.listener": "127.0.0.1:0"}
CLIENT = "checkout"
_PATIENCE_S = 20.0


@pytest.fixture(scope="module")
def pushing() -> Iterator[Cluster]:
    """Return a broker to which a producer has pushed metrics."""
    with Cluster(options=OPTIONS) as running:
        running.create_topic("orders")
        connection = ClusterConnection(settings_of(running))
        subscription = ConfigResource(ConfigKind.CLIENT_METRICS, "all")
        alter_config(connection, subscription, assign={"metrics": "*", "interval.ms": "200"})
        producer = Producer({"bootstrap.servers": running.bootstrap, "client.id": CLIENT})
        wait_for_push(connection, producer)
        connection.close()
        yield running
        producer.flush(5)


@pytest.fixture
def connection(pushing: Cluster) -> Iterator[ClusterConnection]:
    """Return a connection that knows the HTTP address of the broker."""
    opened = ClusterConnection(settings_of(pushing))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def server(pushing: Cluster) -> Iterator[ConsoleServer]:
    """Return a console of the cluster, and of the same one without HTTP addresses."""
    clusters = (settings_of(pushing), ClusterSettings("bare", pushing.bootstrap))
    running = ConsoleServer(ConsoleSettings(clusters, ":memory:", port=0, first_password=PASSWORD))
    running.start()
    yield running
    running.stop()


@pytest.fixture
def session(server: ConsoleServer) -> ConsoleSession:
    """Return a session of the admin."""
    opened = ConsoleSession(server.url)
    opened.login("admin", PASSWORD)
    return opened


def wait_for_push(connection: ClusterConnection, producer: Producer) -> None:
    """Produce until the client is listed with metrics: it pushes at times of its own."""
    deadline = RealClock().monotonic() + _PATIENCE_S
    pause = threading.Event()
    while not any(row.metric_count for row in list_clients(connection).clients):
        assert RealClock().monotonic() < deadline, "the producer pushes nothing"
        producer.produce("orders", b"x")
        producer.flush(5)
        pause.wait(0.05)
        connection.forget()


def client_of(connection: ClusterConnection) -> ClientRow:
    """Return the row of the producer."""
    (row,) = list_clients(connection, client_id=CLIENT).clients
    return row


def test_clients_of_brokers_are_listed(connection: ClusterConnection) -> None:
    """A client has its id, software, address, broker and the age of its last push."""
    row = client_of(connection)
    assert len(row.instance_id) == 22
    assert "rdkafka" in f"{row.software_name} {row.software_version}"
    assert row.address.startswith("127.0.0.1:")
    assert row.broker == 1
    assert 0 <= row.age_seconds < 60
    assert row.metric_count > 0
    listed = list_clients(connection)
    assert (listed.brokers, listed.unread, listed.brokers_without_address) == ((1,), (), ())
    assert list_clients(connection, client_id="absent").total == 0
    assert list_clients(connection, limit=0).clients == ()


def test_a_client_has_its_metrics_with_values(connection: ClusterConnection) -> None:
    """Names are Kafka's, and values are numbers."""
    detail = describe_client(connection, client_of(connection).instance_id)
    names = [metric.name for metric in detail.metrics]
    assert names == sorted(names)
    assert any(name.startswith("org.apache.kafka.producer.") for name in names)
    assert all(isinstance(metric.value, int | float) for metric in detail.metrics)


def test_an_unknown_client_is_not_found(connection: ClusterConnection) -> None:
    """The error names the id and what to do."""
    with pytest.raises(ApiError, match=r"'nobody'.*choose another one") as error:
        describe_client(connection, "nobody")
    assert error.value.code is ErrorCode.RESOURCE_NOT_FOUND


def test_clients_are_shown_on_pages(session: ConsoleSession, connection: ClusterConnection) -> None:
    """The page of the brokers leads to the list, and the list to the metrics of a client."""
    assert 'href="/c/local/clients"' in session.get("/c/local/brokers").text
    listed = session.get("/c/local/clients?q=checkout&sort=age")
    path = f"/c/local/clients/{client_of(connection).instance_id}"
    assert (listed.status, listed.alert) == (200, "")
    assert f'href="{path}"' in listed.text
    assert "No client matches." in session.get("/c/local/clients?q=absent").text
    output = session.get(path)
    assert "org.apache.kafka.producer." in output.text
    assert "No metric matches." in session.get(f"{path}?q=absent").text
    unknown = session.get("/c/local/clients/nobody")
    assert unknown.status == 404
    assert "nobody" in unknown.text


def test_a_cluster_without_http_addresses_says_how_to_set_them(session: ConsoleSession) -> None:
    """The page has the option of the broker and the console's."""
    text = unescape(session.get("/c/bare/clients").text)
    assert "metrics.listener" in text
    assert "--http-url bare/1=http://" in text
    assert session.get("/c/bare/clients/nobody").status == 404


def test_the_api_returns_clients(session: ConsoleSession, connection: ClusterConnection) -> None:
    """The list, one client, and an error with a remedy for an unknown one."""
    base = "/api/v1/clusters/local/clients"
    listed = session.get(f"{base}?client_id={CLIENT}").json
    assert [row["client_id"] for row in listed["clients"]] == [CLIENT]
    detail = session.get(f"{base}/{listed['clients'][0]['instance_id']}").json
    assert {"name", "labels", "value", "is_delta"} == set(detail["metrics"][0])
    unknown = session.get(f"{base}/nobody")
    assert unknown.status == 404
    assert unknown.json["error"]["code"] == "RESOURCE_NOT_FOUND"
    assert session.get(f"{base}?limit=many").status == 400


@pytest.mark.slow
def test_pages_of_clients_have_no_barrier_in_a_browser(server: ConsoleServer) -> None:
    """A user goes from the brokers to the metrics of a client; axe-core finds no violation."""
    # Seconds, for the browser: the tables of these pages are empty in the other tests with it.
    with (
        chromium() as browser,
        admin_page(browser, server.url) as watched,
        without_errors(watched) as page,
    ):
        page.goto("/c/local/brokers")
        page.get_by_role("link", name="Clients").click()
        expect(page.get_by_role("heading", name="Clients")).to_be_visible()
        assert watched.violations() == []
        watched.picture("clients", is_dark=True)
        page.get_by_role("link", name=CLIENT).click()
        expect(page.locator("tbody tr").first).to_contain_text("org.apache.kafka.")
        assert watched.violations() == []
        watched.picture("client", is_dark=True)


@pytest.mark.slow
def test_the_lag_in_time_is_exact_if_the_broker_serves_it(
    pushing: Cluster, server: ConsoleServer
) -> None:
    """The log's own timestamps count; without the broker's HTTP port, the next records' timestamps
    count.
    """
    # Seconds, for the browser: the console of the other tests in a browser knows no HTTP port.
    pushing.create_topic("late", partitions=2)
    producer = Producer({"bootstrap.servers": pushing.bootstrap})
    at_ms = RealClock().time_ms() - (3 * 3600 + 12 * 60 + 5) * 1000
    for partition in range(2):
        producer.produce("late", b"x", partition=partition, timestamp=at_ms)
    producer.flush(5)
    commit(pushing, "readers", "late", 0)
    with (
        chromium() as browser,
        admin_page(browser, server.url) as watched,
        without_errors(watched) as page,
    ):
        for cluster, marks in (("local", 0), ("bare", 2)):
            page.goto(f"/c/{cluster}/group?id=readers")
            figure = page.locator("dl.figures div", has_text="Lag in time")
            expect(figure).to_contain_text("3 h 12 min")
            rows = page.locator("tr", has_text="late-")
            expect(rows).to_have_count(2)
            expect(rows.get_by_text("≈")).to_have_count(marks)
