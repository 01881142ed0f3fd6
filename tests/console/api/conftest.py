"""Fixtures: a console with one cluster and three users, and a client for each of them."""

from collections.abc import Callable, Iterator

import pytest
from starlette.testclient import TestClient

from ottla.console.accounts.roles import Role
from ottla.console.app import create_app
from ottla.console.state import Console, ConsoleSettings, open_console
from ottla.operations.survey.connections import ClusterSettings
from ottla.testing import Cluster

PASSWORD = "correct horse battery staple"
ClientOf = Callable[[str], TestClient]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Return a running cluster of one broker."""
    with Cluster(brokers=1) as running:
        yield running


@pytest.fixture(scope="module")
def console(cluster: Cluster) -> Iterator[Console]:
    """Return a console with the cluster, another one that is down, and a read-only one."""
    clusters = (
        ClusterSettings("local", cluster.bootstrap),
        ClusterSettings("absent", "127.0.0.1:1"),
        ClusterSettings("frozen", cluster.bootstrap, is_read_only=True),
    )
    opened = open_console(ConsoleSettings(clusters, ":memory:", first_password=PASSWORD))
    for name, role in (("vera", Role.VIEWER), ("ed", Role.EDITOR), ("ada", Role.ADMIN)):
        opened.users.create(name, PASSWORD, role, must_change=False)
    opened.users.create("newcomer", PASSWORD, Role.VIEWER, must_change=True)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def client_of(console: Console) -> Iterator[ClientOf]:
    """Return a function from a user's name to a client with the user's credentials."""
    with TestClient(create_app(console)) as client:

        def of(name: str) -> TestClient:
            client.auth = (name, PASSWORD) if name else None
            return client

        yield of
