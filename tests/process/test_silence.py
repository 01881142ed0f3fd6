"""Brokers that fall silent: SIGSTOP, sessions that end, ZooKeeper that is down, networks that are
cut.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from tests.process.broker_cluster import (
    FAIL_OVER_S,
    PATIENCE_S,
    SESSION_MS,
    BrokerCluster,
    wait,
)
from tests.process.load import RATE, JavaLoad, Producing
from tests.process.machines import Machines, machines
from tests.process.zookeeper_servers import ZooKeeper, zookeeper

pytestmark = [pytest.mark.slow, pytest.mark.needs("zookeeper")]
TOPIC = "orders"
# The machine on which ZooKeeper runs.
_ZOOKEEPER = 9
# The constants of ZooKeeper's passwords and of java.util.Random.
_SECRET, _PASSWORD_BYTES = 0xB3415C00, 16
_MULTIPLIER, _MASK = 0x5DEECE66D, (1 << 48) - 1


@pytest.fixture
def ensemble(tmp_path: Path) -> Iterator[ZooKeeper]:
    """A real ZooKeeper."""
    with zookeeper(tmp_path / "zookeeper") as server:
        yield server


@pytest.fixture
def cluster(tmp_path: Path, ensemble: ZooKeeper) -> Iterator[BrokerCluster]:
    """Three brokers on a real ZooKeeper and a topic of twelve partitions."""
    with BrokerCluster(tmp_path, zookeeper=ensemble.address) as running:
        running.create_topic(TOPIC)
        yield running


def sleep_sessions(cluster: BrokerCluster, victim: int) -> None:
    """Return when the others have noticed that a broker's session has ended."""
    others = [number for number in cluster.ids if number != victim]
    wait(lambda: victim not in cluster.known(*others), f"broker {victim} is dropped")


@pytest.mark.nightly(
    "tests/sim/test_cluster_control.py::test_a_controller_that_was_replaced_is_fenced"
)
def test_paused_controller_writes_nothing_when_it_resumes(
    cluster: BrokerCluster, producing: Producing
) -> None:
    """Another controller is elected; the old one is fenced and rejoins (scenarios 13 and 14)."""
    with producing(cluster.bootstrap, TOPIC) as load:
        first = cluster.controller()
        others = [number for number in cluster.ids if number != first]
        cluster.pause(first)
        took = wait(lambda: cluster.controller(*others) in others, "another controller")
        assert took <= FAIL_OVER_S
        second = cluster.controller(*others)
        load.wait_for(5 * RATE * SESSION_MS // 4000)
        cluster.resume(first)
        wait(lambda: cluster.known() == set(cluster.ids), "the old controller is registered again")
        wait(lambda: cluster.controller(first) == second, "it follows the new controller")
        cluster.wait_in_sync(TOPIC)
        load.wait_for(1000)
    load.check(cluster.bootstrap)
    assert load.gap_seconds <= FAIL_OVER_S
    cluster.verify(TOPIC)


def end_session(address: str, session_id: int) -> None:
    """End a session as a second client of the same session does that closes it.

    ZooKeeper derives the password of a session from its id (ZooKeeperServer.generatePasswd), with
    the generator of java.util.Random.
    """
    state = (session_id ^ _SECRET ^ _MULTIPLIER) & _MASK
    password = b""
    while len(password) < _PASSWORD_BYTES:
        state = (state * _MULTIPLIER + 0xB) & _MASK
        password += (state >> 16).to_bytes(4, "little")
    client = KazooClient(address, client_id=(session_id, password))
    client.start(PATIENCE_S)
    assert client.client_id[0] == session_id
    client.stop()
    client.close()


@pytest.mark.nightly("tests/sim/test_cluster_control.py::test_another_broker_becomes_controller")
def test_controller_whose_session_has_ended_is_replaced(
    cluster: BrokerCluster, ensemble: ZooKeeper, producing: Producing
) -> None:
    """A controller is elected in the next epoch, and the old one registers again (scenario 13)."""
    client = KazooClient(ensemble.address)
    client.start(PATIENCE_S)

    def epoch() -> int:
        return int(client.get("/controller_epoch")[0])

    processes = [cluster.process_id(number) for number in cluster.ids]
    with producing(cluster.bootstrap, TOPIC) as load:
        for _ in range(2):
            load.wait_for(1000)
            term, stat = epoch(), client.exists("/controller")
            end_session(ensemble.address, stat.ephemeralOwner)
            assert wait(lambda term=term: epoch() > term, "another term") <= FAIL_OVER_S  # type: ignore[misc]
            wait(lambda: cluster.known() == set(cluster.ids), "all brokers are registered")
            cluster.wait_in_sync(TOPIC)
        load.wait_for(1000)
    client.stop()
    client.close()
    load.check(cluster.bootstrap)
    assert load.gap_seconds <= FAIL_OVER_S
    assert processes == [cluster.process_id(number) for number in cluster.ids]
    cluster.verify(TOPIC)


@pytest.mark.nightly(
    "tests/process/test_kill.py::test_leaders_killed_one_after_the_other_lose_nothing"
)
@pytest.mark.compat
@pytest.mark.needs("java")
def test_java_producer_survives_kill_and_pause(cluster: BrokerCluster, tmp_path: Path) -> None:
    """No record of the Java client's idempotent producer is lost or duplicated."""
    with JavaLoad(cluster.bootstrap, TOPIC, tmp_path) as load:
        load.wait_for(1500)
        victim = cluster.leader(TOPIC)
        cluster.kill(victim)
        load.wait_for(1500)
        cluster.start(victim)
        cluster.wait_in_sync(TOPIC)
        silent = cluster.leader(TOPIC, 1)
        cluster.pause(silent)
        sleep_sessions(cluster, silent)
        load.wait_for(1500)
        cluster.resume(silent)
        cluster.wait_in_sync(TOPIC)
    load.check(cluster.bootstrap)
    cluster.verify(TOPIC)


@pytest.mark.nightly(
    "tests/sim/test_cluster_control.py::test_a_broker_restarts_faster_than_its_session_ends"
)
def test_broker_that_bounces_faster_than_its_session(
    cluster: BrokerCluster, producing: Producing
) -> None:
    """The new process replaces the registration, and requests for the old one are fenced
    (scenario 17)."""
    with producing(cluster.bootstrap, TOPIC) as load:
        for number in cluster.ids:
            load.wait_for(1000)
            cluster.kill(number)
            cluster.start(number)
            cluster.wait_in_sync(TOPIC)
    load.check(cluster.bootstrap)
    assert load.gap_seconds <= FAIL_OVER_S
    cluster.verify(TOPIC)


def test_records_are_written_while_zookeeper_is_down(
    cluster: BrokerCluster, ensemble: ZooKeeper, producing: Producing
) -> None:
    """Leaders continue to accept records, no leader is elected, and both work again when ZooKeeper
    returns (scenario 16).
    """
    with producing(cluster.bootstrap, TOPIC) as load:
        before = cluster.partitions(TOPIC)
        processes = [cluster.process_id(number) for number in cluster.ids]
        ensemble.kill()
        # Longer than the sessions of the brokers.
        load.wait_for(2 * RATE * SESSION_MS // 1000)
        after = cluster.partitions(TOPIC)
        assert [(row.leader, row.isr) for row in after] == [(row.leader, row.isr) for row in before]
        ensemble.start()
        wait(lambda: cluster.known() == set(cluster.ids), "all brokers are registered", 10)
        cluster.wait_in_sync(TOPIC)
        with cluster.admin(timeout_s=10) as brokers:
            create(brokers)
        assert processes == [cluster.process_id(number) for number in cluster.ids]
    load.check(cluster.bootstrap)
    assert load.gap_seconds <= FAIL_OVER_S
    cluster.verify(TOPIC)


def create(brokers: Brokers) -> None:
    """Create a topic, which needs a controller."""
    topics.create_topic(brokers, "afterwards", partitions=3, replication_factor=3)


@pytest.fixture
def network() -> Iterator[Machines]:
    """Four machines: three for brokers, one for ZooKeeper."""
    with machines(1, 2, 3, _ZOOKEEPER) as result:
        yield result


@pytest.fixture
def spread(tmp_path: Path, network: Machines) -> Iterator[BrokerCluster]:
    """Three brokers and a ZooKeeper, each on a machine of its own."""
    host, prefix = network.addresses[_ZOOKEEPER], network.prefix(_ZOOKEEPER)
    with zookeeper(tmp_path / "zookeeper", host, prefix) as server:
        hosts = {number: network.addresses[number] for number in (1, 2, 3)}
        prefixes = {number: network.prefix(number) for number in (1, 2, 3)}
        address, folder = server.address, tmp_path
        with BrokerCluster(folder, zookeeper=address, hosts=hosts, prefixes=prefixes) as running:
            running.create_topic(TOPIC)
            yield running


@pytest.mark.needs("namespaces")
def test_leader_that_is_cut_off_acknowledges_nothing_alone(
    spread: BrokerCluster, network: Machines, producing: Producing
) -> None:
    """Clients still reach the leader, and no offset is acknowledged by two leaders (scenario 15)."""
    check_cut_off(spread, network, "all", producing)


@pytest.mark.nightly(
    "tests/process/test_silence.py::test_leader_that_is_cut_off_acknowledges_nothing_alone"
)
@pytest.mark.needs("namespaces")
@pytest.mark.parametrize("cut", ["zookeeper", "followers", "one way", "controller"])
def test_leader_that_is_partly_cut_off_acknowledges_nothing_alone(
    spread: BrokerCluster, network: Machines, cut: str, producing: Producing
) -> None:
    """A leader without ZooKeeper, or without its followers, acknowledges nothing alone, either.

    A controller that only ZooKeeper reaches stays the controller, as in Apache Kafka: the ISR then
    cannot shrink, and nothing is acknowledged until the network is whole again.
    """
    check_cut_off(spread, network, cut, producing)


def check_cut_off(spread: BrokerCluster, network: Machines, cut: str, producing: Producing) -> None:
    """Cut a leader off while records are written, and fail if an acknowledged record is lost."""
    with producing(spread.bootstrap, TOPIC) as load:
        load.wait_for(1000)
        controller = spread.controller()
        led = {row.leader for row in spread.partitions(TOPIC)}
        victim = controller if cut == "controller" else min(led - {controller})
        others = [number for number in spread.ids if number != victim]
        targets = {"zookeeper": [_ZOOKEEPER], "all": [_ZOOKEEPER, *others]}
        network.cut(victim, *targets.get(cut, others), is_one_way=cut == "one way")
        if cut != "controller":
            load.wait_for(1000)
        # Longer than the session and replica.lag.time.max.ms.
        wait(lambda: load.seconds_since_start() > 4 * SESSION_MS / 1000, "the cut has lasted")
        network.heal(victim)
        took = spread.wait_in_sync(TOPIC)
        load.wait_for(1000)
    load.check(spread.bootstrap)
    assert took <= 10
    spread.verify(TOPIC)
