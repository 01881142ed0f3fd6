"""Unclean elections of an offline partition, once unclean.leader.election.enable is set: Apache
Kafka 3.9.2 on ZooKeeper and Ottla elect at once, and only for topics that it is set for.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

from ottla.testing import Cluster
from tests.compat import zookeeper

pytestmark = [pytest.mark.compat, pytest.mark.slow]

SESSION_MS = 6000
OPTION = "unclean.leader.election.enable"
OWN, DEFAULT = "own", "default"
LEADERLESS = -1
_PAUSE = threading.Event()


class Brokers(Protocol):
    """Two brokers, of which 1 is the leader of every partition at first."""

    def bootstrap(self, broker: int) -> str:
        """Return the address of one broker."""
        ...

    def kill(self, broker: int) -> None:
        """End a broker's process like `kill -9`."""
        ...

    def restart(self, broker: int) -> None:
        """Start a broker again."""
        ...


class OttlaBrokers:
    """Brokers of Ottla in this process."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def bootstrap(self, broker: int) -> str:
        """Return the address of one broker."""
        return f"127.0.0.1:{self._cluster.node(broker).port}"

    def kill(self, broker: int) -> None:
        """End a broker, and its session early."""
        self._cluster.kill(broker)
        self._cluster.expire_session(broker)

    def restart(self, broker: int) -> None:
        """Start a broker again."""
        self._cluster.restart(broker)


class KafkaBrokers:
    """Brokers of Apache Kafka on a ZooKeeper."""

    def __init__(self, folder: Path, address: str) -> None:
        self.nodes = {}
        for number in (1, 2):
            rows = [f"zookeeper.session.timeout.ms={SESSION_MS}"]
            node = zookeeper.Broker(folder / f"kafka{number}", address, options=rows)
            with (node.folder / "server.properties").open("a") as file:
                # The last value counts.
                file.write(f"broker.id={number}\n")
            self.nodes[number] = node

    def bootstrap(self, broker: int) -> str:
        """Return the address of one broker."""
        return self.nodes[broker].bootstrap

    def kill(self, broker: int) -> None:
        """End a broker; its session ends after its timeout."""
        self.nodes[broker].kill()

    def restart(self, broker: int) -> None:
        """Start a broker again."""
        self.nodes[broker].start()


@contextmanager
def ottla_brokers(_folder: Path) -> Iterator[Brokers]:
    """Run two brokers of Ottla."""
    with Cluster(brokers=2) as cluster:
        yield OttlaBrokers(cluster)


@contextmanager
def kafka_brokers(folder: Path) -> Iterator[Brokers]:
    """Run two brokers of Apache Kafka."""
    with zookeeper.running(folder / "zookeeper") as address:
        brokers = KafkaBrokers(folder, address)
        try:
            for node in brokers.nodes.values():
                node.start()
            yield brokers
        finally:
            for node in brokers.nodes.values():
                node.kill()


def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until a condition is true."""
    deadline = time.monotonic() + seconds

    def is_true() -> bool:
        # A broker of Apache Kafka responds before it knows the cluster, or its topics.
        with contextlib.suppress(KafkaException, KeyError):
            return condition()
        return False

    while not is_true():
        assert time.monotonic() < deadline, "the brokers have not reached the state in time"
        _PAUSE.wait(0.05)


class State(NamedTuple):
    """The state of partition 0 of both topics: leader and ISR."""

    own: tuple[int, tuple[int, ...]]
    default: tuple[int, tuple[int, ...]]


def state(admin: AdminClient) -> State:
    """Return the state of both topics as the broker knows them."""
    topics = admin.list_topics(timeout=10).topics
    return State(
        *(
            (topics[name].partitions[0].leader, tuple(sorted(topics[name].partitions[0].isrs)))
            for name in (OWN, DEFAULT)
        )
    )


def enable(admin: AdminClient, kind: "ConfigResource.Type", name: str) -> None:
    """Set the option of a topic or of a broker."""
    entry = ConfigEntry(OPTION, "true", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(kind, name, incremental_configs=[entry])
    (done,) = admin.incremental_alter_configs([resource]).values()
    done.result(10)


@pytest.mark.parametrize(
    "running",
    [
        ottla_brokers,
        pytest.param(
            kafka_brokers,
            marks=[
                pytest.mark.needs("java"),
                pytest.mark.nightly("[ottla_brokers]"),
            ],
        ),
    ],
)
def test_the_option_elects_a_leader_of_an_offline_partition(
    tmp_path: Path, running: Callable[[Path], AbstractContextManager[Brokers]]
) -> None:
    """The replica that is left waits until the option is set, for its topic or by default."""
    with running(tmp_path) as brokers:
        admin = AdminClient({"bootstrap.servers": brokers.bootstrap(1)})
        topics = [NewTopic(name, 1, replica_assignment=[[1, 2]]) for name in (OWN, DEFAULT)]
        for done in admin.create_topics(topics).values():
            done.result(30)
        until(lambda: state(admin) == State((1, (1, 2)), (1, (1, 2))))
        brokers.kill(2)
        until(lambda: state(admin) == State((1, (1,)), (1, (1,))), 60)
        brokers.kill(1)
        brokers.restart(2)
        admin = AdminClient({"bootstrap.servers": brokers.bootstrap(2)})
        offline = (LEADERLESS, (1,))
        until(lambda: list(admin.list_topics(timeout=10).brokers) == [2], 60)
        until(lambda: state(admin) == State(offline, offline), 60)
        enable(admin, ConfigResource.Type.TOPIC, OWN)
        until(lambda: state(admin) == State((2, (2,)), offline), 5)
        # The broker is the controller: its default counts.
        enable(admin, ConfigResource.Type.BROKER, "2")
        until(lambda: state(admin) == State((2, (2,)), (2, (2,))), 5)
        assert state(admin) == State((2, (2,)), (2, (2,)))
