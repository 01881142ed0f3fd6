"""The cache and the threads of a connection to a running cluster."""

import threading

import pytest

from ottla.client.errors import Closed
from ottla.operations.survey.connections import (
    ClusterConnection,
    ClusterSettings,
    ClusterUnavailable,
    LoginRefused,
)
from ottla.operations.survey.metadata import read_metadata
from ottla.testing import Cluster
from tests.unit.operations.survey.test_connections import SASL, Clock

_NOWHERE = "127.0.0.1:1"


def _connection(clock: Clock | None = None) -> ClusterConnection:
    return ClusterConnection(ClusterSettings("east", _NOWHERE), clock=clock or Clock())


def test_a_refused_login_is_reported_with_the_remedy(cluster: Cluster) -> None:
    """The sentence names the cluster, the broker's reason and the option of the command line."""
    settings = ClusterSettings("east", cluster.bootstrap, SASL)
    connection = ClusterConnection(settings, timeout_s=2.0)
    with pytest.raises(LoginRefused, match=r"'east' refuses.*PLAIN.*--command-config") as refused:
        read_metadata(connection)
    assert "secret" not in str(refused.value)
    connection.close()


def test_values_are_cached_for_their_time_to_live() -> None:
    """The second call within the time returns the first value; a later one loads again."""
    clock = Clock()
    connection = _connection(clock)
    loads = iter(range(10))
    assert connection.cached("k", 1.0, lambda: next(loads)) == 0
    clock.now += 0.9
    assert connection.cached("k", 1.0, lambda: next(loads)) == 0
    clock.now += 0.2
    assert connection.cached("k", 1.0, lambda: next(loads)) == 1


def test_stale_values_are_returned_while_another_thread_loads() -> None:
    """A caller does not wait for a refresh, and the refreshed value is returned afterwards."""
    clock = Clock()
    connection = _connection(clock)
    may_load = threading.Event()
    connection.cached("k", 1.0, lambda: "old", stale_s=5.0)
    clock.now += 2.0

    def load() -> str:
        assert may_load.wait(10)
        return "new"

    assert connection.cached("k", 1.0, load, stale_s=5.0) == "old"
    may_load.set()
    # Without stale values, the caller waits for the refresh that is under way.
    assert connection.cached("k", 1.0, load) == "new"


def test_a_peek_does_not_wait() -> None:
    """An unknown or too old value is None, and another thread loads it for the next call."""
    clock = Clock()
    connection = _connection(clock)
    loaded = threading.Event()
    loads = iter(range(10))

    def load() -> int:
        loaded.set()
        return next(loads)

    for expected in range(2):
        loaded.clear()
        assert connection.peek("k", 1.0, load, stale_s=5.0) is None
        assert loaded.wait(10)
        assert connection.cached("k", 1.0, load) == expected
        assert connection.peek("k", 1.0, load, stale_s=5.0) == expected
        clock.now += 7.0


def test_loads_that_occupy_all_threads_may_need_a_value_that_waits_for_a_thread() -> None:
    """Two loads read a value whose own refresh is queued behind them."""
    clock = Clock()
    connection = _connection(clock)
    keys = ("a", "b", "inner")
    for key in keys:
        connection.cached(key, 1.0, lambda: "old")
    clock.now += 2.0
    may_load = threading.Event()

    def outer() -> str:
        may_load.wait(10)
        return connection.cached("inner", 1.0, lambda: "new")

    assert connection.cached("a", 1.0, outer, stale_s=5.0) == "old"
    assert connection.cached("b", 1.0, outer, stale_s=5.0) == "old"
    assert connection.cached("inner", 1.0, lambda: "new", stale_s=5.0) == "old"
    may_load.set()
    values: list[str] = []
    reader = threading.Thread(
        target=lambda: values.extend(connection.cached(key, 1.0, lambda: "new") for key in keys),
        daemon=True,
    )
    reader.start()
    reader.join(10)
    assert values == ["new"] * 3
    connection.close()


def test_an_error_drops_the_stale_value() -> None:
    """If a refresh fails, the next caller receives the error and not a value of the past."""
    clock = Clock()
    connection = _connection(clock)
    connection.cached("k", 1.0, lambda: "old", stale_s=50.0)
    clock.now += 2.0
    failed = threading.Event()

    def load() -> str:
        failed.set()
        raise ClusterUnavailable("down")

    assert connection.cached("k", 1.0, load, stale_s=50.0) == "old"
    assert failed.wait(10)
    outcomes = []
    pause = threading.Event()
    for _ in range(1000):
        try:
            outcomes.append(connection.cached("k", 1.0, load, stale_s=50.0))
        except ClusterUnavailable as error:
            outcomes.append(str(error))
            break
        pause.wait(0.01)
    assert outcomes[-1] == "down"


def test_a_closed_connection_raises() -> None:
    """Calls after `close` raise Closed, and `close` is idempotent."""
    connection = _connection()
    connection.close()
    connection.close()
    with pytest.raises(Closed):
        read_metadata(connection)


def test_threads_share_a_connection(connection: ClusterConnection) -> None:
    """Many threads read metadata at the same time over one connection."""
    results: list[int] = []

    def read() -> None:
        results.append(len(read_metadata(connection, is_fresh=True).nodes))

    threads = [threading.Thread(target=read) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [3] * 12


def test_a_restarted_cluster_is_found_again() -> None:
    """The connection reports an outage, and works again after the restart, without a new
    connection.
    """
    with Cluster(brokers=1) as cluster:
        settings = ClusterSettings("test", cluster.bootstrap)
        connection = ClusterConnection(settings, timeout_s=2.0)
        assert read_metadata(connection, is_fresh=True).nodes
        cluster.kill(1)
        with pytest.raises(ClusterUnavailable):
            read_metadata(connection, is_fresh=True)
        cluster.restart(1)
        assert list(read_metadata(connection, is_fresh=True).nodes) == [1]
        connection.close()
