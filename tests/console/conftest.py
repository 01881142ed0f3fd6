"""A cluster with records, a group and a transaction, and a console for it."""

import json
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from playwright.sync_api import Browser, Page

from ottla.console.accounts import passwords
from ottla.console.accounts.roles import Role
from ottla.console.server import ConsoleServer
from ottla.console.state import ConsoleSettings
from ottla.operations.survey.connections import ClusterSettings
from ottla.testing import Cluster
from tests.console.chromium import Watched, admin_page, chromium, without_errors
from tests.console.session import PASSWORD as PASSWORD
from tests.console.session import ConsoleSession

RECORDS = 60
# Shown as text everywhere, never run.
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module", autouse=True)
def cheap_passwords() -> Iterator[None]:
    """Hash passwords with little work: by design, a hash takes a quarter of a second."""
    former = passwords.COST, passwords.PARALLEL
    passwords.COST, passwords.PARALLEL = 16, 1
    yield
    passwords.COST, passwords.PARALLEL = former


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Return a broker with the topics orders and payments, the group billing, and a transaction."""
    with Cluster() as running:
        fill(running)
        yield running


@pytest.fixture(scope="module")
def console(cluster: Cluster) -> Iterator[ConsoleServer]:
    """Return a console of the cluster, on a free port, with a user of each role."""
    settings = ConsoleSettings(
        (ClusterSettings("local", cluster.bootstrap),),
        ":memory:",
        port=0,
        first_password=PASSWORD,
        timeout_s=3.0,
        # Tests take samples themselves; only the first one comes at the start.
        sample_s=3600.0,
    )
    server = ConsoleServer(settings)
    server.start()
    for role in (Role.VIEWER, Role.EDITOR):
        server.console.users.create(role.label, PASSWORD, role, must_change=False)
    yield server
    server.stop()


@pytest.fixture
def admin(console: ConsoleServer) -> ConsoleSession:
    """Return a session of the admin."""
    session = ConsoleSession(console.url)
    session.login("admin", PASSWORD)
    return session


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return one browser for all tests of a file."""
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def watched(browser: Browser, console: ConsoleServer) -> Iterator[Watched]:
    """Return a page of the admin of the console; a file may have a console of its own."""
    with admin_page(browser, console.url) as page:
        yield page


@pytest.fixture
def page(watched: Watched) -> Iterator[Page]:
    """Return the page; the test fails if the browser's log has an error at its end."""
    with without_errors(watched) as page:
        yield page


def fill(cluster: Cluster) -> None:
    """Write the records, commit half of them in a group, and complete a transaction."""
    cluster.create_topic("orders", partitions=2)
    cluster.create_topic("payments", config={"cleanup.policy": "compact"})
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "compression.type": "zstd"})
    for number in range(RECORDS):
        value = {"order": {"id": number, "card": f"4000-{number:04}"}, "note": HOSTILE}
        producer.produce(
            "orders",
            key=f"customer-{number % 7}{HOSTILE if number % 20 == 0 else ''}",
            value=json.dumps(value),
            headers={"trace": str(number), HOSTILE: HOSTILE},
            partition=number % 2,
        )
    producer.flush()
    writer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "settlement"})
    writer.init_transactions()
    writer.begin_transaction()
    writer.produce("payments", key="k", value="v")
    writer.commit_transaction()
    commit(cluster, "billing")


def commit(cluster: Cluster, group_id: str, topic: str = "orders", offset: int = 10) -> None:
    """Commit an offset in both partitions of a topic."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group_id})
    positions = [TopicPartition(topic, partition, offset) for partition in (0, 1)]
    consumer.commit(offsets=positions, asynchronous=False)
    consumer.close()
