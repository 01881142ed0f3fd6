"""Clusters of several brokers, and the faults that a test can cause in them."""

import doctest
import gc
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from ottla.base.errors import OttlaError
from ottla.client.brokers import Brokers
from ottla.client.errors import NotReachable, TimedOut
from ottla.server.node import Node
from ottla.testing import Cluster, cluster


@pytest.fixture
def three() -> Iterator[Cluster]:
    """A cluster of three brokers whose silent members are noticed after half a second."""
    with Cluster(brokers=3, options={"zookeeper.session.timeout.ms": "500"}) as running:
        yield running


def node(running: Cluster, broker: int) -> Node:
    """Return a broker of a cluster."""
    return running.node(broker)


def wait(condition: Callable[[], bool]) -> None:
    """Return when the condition holds; a test fails after ten seconds."""
    deadline, pause = time.monotonic() + 10, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "the condition does not hold after 10 s"
        pause.wait(0.01)


def known(running: Cluster, broker: int) -> set[int]:
    """Return the brokers that a broker knows."""
    return set(node(running, broker).broker.image.brokers)


def address(running: Cluster, broker: int) -> str:
    """Return the address of one broker."""
    return running.bootstrap.split(",")[broker - 1]


def test_three_brokers_start_within_half_a_second() -> None:
    """The best of three leaves a busy machine out of it."""
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        with Cluster(brokers=3):
            seconds.append(time.perf_counter() - started)
    assert min(seconds) < 0.5


def test_bootstrap_names_all_brokers(three: Cluster) -> None:
    """Each address is a broker that knows the others."""
    for broker in three.brokers:
        wait(lambda broker=broker: known(three, broker) == {1, 2, 3})  # type: ignore[misc]
        with Brokers(address(three, broker)) as client:
            assert client is not None
    assert len(set(three.bootstrap.split(","))) == 3


def test_replicas_are_on_different_brokers(three: Cluster) -> None:
    """A topic with three replicas has one on each broker."""
    three.create_topic("orders", partitions=3, replication_factor=3)
    assert {three.leader("orders", number) for number in range(3)} == {1, 2, 3}


def test_stopped_cluster_of_three_leaves_no_thread_and_no_folder() -> None:
    """Every broker's thread and the coordination's end."""
    before = set(threading.enumerate())
    with Cluster(brokers=3) as running:
        folder = running.data
    assert not folder.exists()
    # The thread of an executor ends a moment after its loop.
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive(), thread


def test_restart_of_all_keeps_addresses_and_topics() -> None:
    """The cluster has its topics and ports again."""
    with Cluster(brokers=3) as running:
        running.create_topic("orders")
        before = running.bootstrap, running.cluster_id
        running.restart()
        assert running.topics() == ["orders"]
        assert (running.bootstrap, running.cluster_id) == before


def test_killed_broker_is_gone_until_it_is_restarted(three: Cluster) -> None:
    """Its port refuses connections, and the others learn of its death and of its return."""
    host, _, port = address(three, 3).partition(":")
    three.kill(3)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))
    wait(lambda: known(three, 1) == {1, 2})
    assert three.live_brokers == (1, 2)
    with pytest.raises(OttlaError, match=r"Broker 3 is down: start it with restart\(3\)"):
        three.kill(3)
    three.restart(3)
    wait(lambda: known(three, 1) == {1, 2, 3})


def test_killed_broker_leaves_no_marker_of_a_clean_stop(three: Cluster) -> None:
    """The next start finds the state of a crash; a clean stop leaves the marker."""
    three.create_topic("orders", partitions=3)
    three.kill(2)
    assert not (three.data / "broker2" / ".kafka_cleanshutdown").exists()
    three.restart(2)
    three.restart(2)
    assert (three.data / "broker2").is_dir()


def test_controller_that_is_killed_is_replaced(three: Cluster) -> None:
    """Another broker is elected."""
    first = three.controller()
    three.kill(first)
    wait(lambda: three.controller() != first)
    assert three.controller() in {1, 2, 3} - {first}


def test_paused_broker_answers_nothing_until_it_resumes(three: Cluster) -> None:
    """A request waits; after the pause its session has ended, and the broker registers again."""
    before = node(three, 2).broker.controller.broker_epoch
    three.pause(2)
    with socket.create_connection(("127.0.0.1", node(three, 2).port)) as client:
        client.settimeout(0.2)
        # ApiVersions, version 0, correlation id 1, no client id.
        client.sendall(bytes.fromhex("0000000a00120000000000010000"))
        with pytest.raises(TimeoutError):
            client.recv(4)
        wait(lambda: 2 not in known(three, 1) or three.controller() == 2)
        three.resume(2)
        client.settimeout(10)
        assert client.recv(4)
    wait(lambda: node(three, 2).broker.controller.broker_epoch > before)


def test_isolated_broker_is_dropped_and_returns(three: Cluster) -> None:
    """The others continue without it, clients still reach it, and it joins again afterwards."""
    three.isolate(1)
    wait(lambda: known(three, 2) == {2, 3})
    assert three.controller() in (1, 2, 3)
    with socket.create_connection(("127.0.0.1", node(three, 1).port), 5):
        pass
    three.heal(1)
    wait(lambda: known(three, 2) == {1, 2, 3})


def test_broker_whose_session_expires_registers_again(three: Cluster) -> None:
    """Its broker epoch is higher afterwards."""
    before = node(three, 3).broker.controller.broker_epoch
    three.expire_session(3)
    wait(lambda: node(three, 3).broker.controller.broker_epoch > before)
    wait(lambda: known(three, 1) == {1, 2, 3})
    assert node(three, 3).broker.controller.broker_epoch > before


def test_slow_disk_delays_writes_of_one_broker() -> None:
    """The creation of a topic takes as long as the writes that it needs."""
    with Cluster() as running:
        running.slow_disk(1, 0.2)
        started = time.monotonic()
        running.create_topic("slow")
        assert time.monotonic() - started > 0.2
        running.slow_disk(1, 0)


def test_single_broker_can_be_killed_and_restarted() -> None:
    """Its topics are there again."""
    with Cluster() as running:
        running.create_topic("kept")
        running.kill(1)
        with pytest.raises((NotReachable, TimedOut)):
            running.topics()
        running.restart(1)
        assert running.topics() == ["kept"]


def test_unknown_broker_is_an_error(three: Cluster) -> None:
    """The message names the brokers that there are."""
    with pytest.raises(OttlaError, match=r"no broker 4: the cluster has \(1, 2, 3\)"):
        three.kill(4)


@pytest.mark.parametrize(
    "example",
    [item for item in doctest.DocTestFinder().find(cluster) if item.examples],
    ids=lambda item: item.name.rpartition(".")[2],
)
def test_examples_of_the_documentation_run(example: doctest.DocTest) -> None:
    """The docstring of every fault has an example that works as it is written."""
    assert doctest.DocTestRunner(verbose=False).run(example).failed == 0


class TestFixture:
    """A class, a module or a conftest can give its tests more brokers."""

    @pytest.fixture
    def ottla_brokers(self) -> int:
        """Two brokers."""
        return 2

    def test_number_of_brokers_can_be_overridden(self, ottla_cluster: Cluster) -> None:
        """By overriding `ottla_brokers`, as with every pytest fixture."""
        assert ottla_cluster.brokers == (1, 2)


def test_a_killed_broker_leaves_nothing_in_the_interpreter() -> None:
    """Its measurement of garbage collections ends with it, as a process's would."""
    before = list(gc.callbacks)
    with Cluster(options={"metrics.jvm.names": "true", "metrics.listener": "127.0.0.1:0"}) as one:
        assert len(gc.callbacks) == len(before) + 1
        one.kill(1)
        assert gc.callbacks == before
