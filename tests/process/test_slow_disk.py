"""Disks that are slow: of the leader, of a follower, and of the controller.

A library between broker and C library delays the writes and syncs of one broker.
"""

import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.base.errors import OttlaError
from ottla.client.admin import cluster as cluster_admin
from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from tests.process.broker_cluster import BrokerCluster, campaign, wait
from tests.process.load import Load
from tests.process.zookeeper_servers import zookeeper

pytestmark = [pytest.mark.slow, pytest.mark.needs("cc", "zookeeper"), pytest.mark.timeout(600)]
TOPIC = "orders"
_SYNC_S, _WRITE_S = 3.0, 0.4
# A loop that waited for one sync would be silent for longer.
_RESPONSE_S = 2.0


class SlowDisks:
    """The delays of each broker's disk, which change while it runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        library = folder / "slow_disk.so"
        source = Path(__file__).with_name("slow_disk.c")
        words = ("cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl")
        subprocess.run(words, check=True, capture_output=True, timeout=60)
        self._library = library
        for number in (1, 2, 3):
            self._delays(number).write_bytes(bytes(8))

    def _delays(self, number: int) -> Path:
        return self._folder / f"delays{number}"

    def prefix(self, number: int) -> list[str]:
        """Return the words in front of a broker's command."""
        return [
            "env",
            f"LD_PRELOAD={self._library}",
            f"SLOW_DISK_DELAYS={self._delays(number)}",
            f"SLOW_DISK_PATH={self._folder}/data",
        ]

    def slow(self, number: int, *, write_s: float = 0.0, sync_s: float = 0.0) -> None:
        """Delay a broker's writes and syncs from now on; without times its disk is fast again."""
        with self._delays(number).open("r+b") as file:
            file.write(struct.pack("ii", round(write_s * 1e6), round(sync_s * 1e6)))


class ResponseTimes:
    """Requests to one broker, one after the other, and the longest time of a response."""

    def __init__(self, address: str) -> None:
        self.longest_s = 0.0
        self._address = address
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "ResponseTimes":
        """Begin to send requests."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop after the last response."""
        self._is_stopped.set()
        self._thread.join()

    def _run(self) -> None:
        with Brokers(self._address, timeout_s=60, is_proven=True) as brokers:
            while not self._is_stopped.is_set():
                started = time.monotonic()
                cluster_admin.describe_cluster(brokers)
                self.longest_s = max(self.longest_s, time.monotonic() - started)
                self._is_stopped.wait(0.05)


@pytest.fixture
def disks(tmp_path: Path) -> SlowDisks:
    """Disks that are fast until a test says otherwise."""
    return SlowDisks(tmp_path)


@pytest.fixture
def cluster(tmp_path: Path, disks: SlowDisks) -> Iterator[BrokerCluster]:
    """Three brokers that sync before they acknowledge, and a ZooKeeper on a disk of its own."""
    prefixes = {number: disks.prefix(number) for number in (1, 2, 3)}
    options = {"log.flush.on.ack": "true"}
    with (
        zookeeper(tmp_path / "zookeeper") as server,
        BrokerCluster(
            tmp_path, zookeeper=server.address, options=options, prefixes=prefixes
        ) as running,
    ):
        running.create_topic(TOPIC)
        yield running


def victim_of(cluster: BrokerCluster, role: str) -> int:
    """Return a broker with this role."""
    controller = cluster.controller()
    if role == "controller":
        return controller
    return next(number for number in cluster.ids if number != controller)


@campaign
@pytest.mark.parametrize("role", ["broker", "controller"])
def test_slow_syncs_lose_nothing_and_leave_the_loop_responsive(
    cluster: BrokerCluster, disks: SlowDisks, role: str
) -> None:
    """Each sync takes 3 s: records are acknowledged later, and the broker responds at once.

    The broker is killed with syncs outstanding.
    """
    victim = victim_of(cluster, role)
    address = f"{cluster.host(victim)}:{cluster.port(victim)}"
    with Load(cluster.bootstrap, TOPIC, rate=200) as load:
        load.wait_for(500)
        with ResponseTimes(address) as times:
            disks.slow(victim, sync_s=_SYNC_S)
            load.wait_for(1500)
            wait(lambda: _is_created(cluster), "a topic is created", 60)
            load.wait_for(500)
            # The broker fetches no more while the requests end.
        cluster.kill(victim)
        disks.slow(victim)
        load.wait_for(1000)
        cluster.start(victim)
        cluster.wait_in_sync(TOPIC)
    load.check(cluster.bootstrap)
    cluster.verify(TOPIC)
    print(f"{role}: longest response {times.longest_s:.3f} s, gap {load.gap_seconds:.1f} s")
    # Acknowledgements have waited for syncs, but the loop has not.
    assert load.gap_seconds > _SYNC_S / 3
    assert times.longest_s < _RESPONSE_S


def _is_created(cluster: BrokerCluster) -> bool:
    """Return True if a topic is there, after a request to create it."""
    try:
        with cluster.admin(timeout_s=20) as brokers:
            topics.create_topic(brokers, "while-slow", partitions=3, replication_factor=3)
    except (OttlaError, OSError):
        return bool(cluster.partitions("while-slow"))
    return True


@campaign
@pytest.mark.parametrize("role", ["broker", "controller"])
def test_slow_writes_shrink_the_isr_and_lose_nothing(
    cluster: BrokerCluster, disks: SlowDisks, role: str
) -> None:
    """A follower that writes too slowly leaves the ISR after replica.lag.time.max.ms, and a leader
    with slow writes still loses nothing.
    """
    victim = victim_of(cluster, role)
    others = [number for number in cluster.ids if number != victim]
    with Load(cluster.bootstrap, TOPIC, rate=500) as load:
        load.wait_for(1000)
        disks.slow(victim, write_s=_WRITE_S)

        def has_left() -> bool:
            rows = cluster.partitions(TOPIC, *others)
            followed = [row for row in rows if row.leader != victim]
            return bool(followed) and not any(victim in row.isr for row in followed)

        took = wait(has_left, f"broker {victim} leaves the ISR", 60)
        load.wait_for(500)
        disks.slow(victim)
        back = cluster.wait_in_sync(TOPIC, 60)
        load.wait_for(500)
    load.check(cluster.bootstrap)
    cluster.verify(TOPIC)
    print(f"{role}: left the ISR after {took:.1f} s, back after {back:.1f} s")
    print(f"the longest gap between acknowledgements: {load.gap_seconds:.1f} s")
