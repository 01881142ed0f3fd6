"""The console while its cluster is away, and its start and stop."""

import multiprocessing
import socket
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from ottla.base.errors import OttlaError
from ottla.console.server import ConsoleServer
from ottla.console.state import ConsoleSettings, open_console
from ottla.operations.survey.connections import ClusterSettings
from ottla.testing import Cluster
from tests.console.session import PASSWORD, ConsoleSession

pytestmark = pytest.mark.slow


def settings(*clusters: ClusterSettings, port: int = 0) -> ConsoleSettings:
    return ConsoleSettings(clusters, ":memory:", port=port, first_password=PASSWORD, timeout_s=2.0)


def test_a_page_reports_that_the_cluster_is_away_and_recovers() -> None:
    """The page says so while no broker responds, and works again without a restart."""
    with Cluster() as cluster:
        cluster.create_topic("orders")
        server = ConsoleServer(settings(ClusterSettings("local", cluster.bootstrap)))
        server.start()
        try:
            session = ConsoleSession(server.url)
            session.login("admin", PASSWORD)
            assert "orders" in session.get("/c/local/topics").text
            cluster.kill(1)
            server.console.clusters.get("local").forget()
            response = session.get("/c/local/topics")
            assert response.status == 503
            assert response.headers["refresh"]
            assert "does not answer" in response.text
            assert session.get("/").status == 200
            cluster.restart(1)
            assert "orders" in session.get("/c/local/topics").text
        finally:
            server.stop()


def test_several_clusters_are_shown_beside_one_that_is_away() -> None:
    """One cluster that does not respond hides no other."""
    with Cluster() as first, Cluster() as second:
        second.create_topic("invoices")
        server = ConsoleServer(
            settings(
                ClusterSettings("first", first.bootstrap),
                ClusterSettings("second", second.bootstrap),
                ClusterSettings("away", "127.0.0.1:1"),
            )
        )
        server.start()
        try:
            session = ConsoleSession(server.url)
            session.login("admin", PASSWORD)
            start = session.get("/")
            assert all(name in start.text for name in ("first", "second", "away"))
            assert "invoices" in session.get("/c/second/topics").text
            assert "invoices" not in session.get("/c/first/topics").text
        finally:
            server.stop()


def test_a_taken_port_is_reported_with_the_remedy() -> None:
    """The error names the address and the option."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = ConsoleServer(settings(port=taken.getsockname()[1]))
        with pytest.raises(OttlaError, match="--console-port"):
            server.start()


def test_consoles_that_start_at_the_same_time_share_a_file(tmp_path: Path) -> None:
    """Each process opens the file, and one of them has the one-time password of the admin."""
    context = multiprocessing.get_context("spawn")
    barrier, path = context.Barrier(_CONSOLES), tmp_path / "console.sqlite3"
    with context.Pool(_CONSOLES, _keep, (barrier,)) as pool:
        passwords = pool.map(_first_password, [path] * _CONSOLES, chunksize=1)
    assert len([password for password in passwords if password]) == 1


_CONSOLES = 4
_barrier: list[Barrier] = []


def _keep(barrier: Barrier) -> None:
    """Keep the barrier of a new process."""
    _barrier.append(barrier)


def _first_password(path: Path) -> str | None:
    """Open a console when all processes are ready; return its one-time password."""
    _barrier[0].wait(30)
    console = open_console(ConsoleSettings((ClusterSettings("local", "127.0.0.1:1"),), path))
    console.close()
    return console.one_time_password
