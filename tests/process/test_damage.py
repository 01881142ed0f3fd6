"""Disks that are full or fail, and files that are damaged while a broker is down."""

import os
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import strace
from tests.process.broker_cluster import FAIL_OVER_S, BrokerCluster, wait
from tests.process.load import PARTITIONS, Producing
from tests.runs import needs

pytestmark = pytest.mark.slow
TOPIC = "orders"
_DISK_BYTES = 256 << 20
_ONE_BROKER = (
    "tests/robustness/test_failing_disks.py"
    "::test_failed_disk_takes_its_directory_offline_and_loses_nothing"
)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[BrokerCluster]:
    """Three brokers with embedded coordination and a topic of twelve partitions."""
    with BrokerCluster(tmp_path) as running:
        running.create_topic(TOPIC)
        yield running


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 MiB for the log directory of broker 1."""
    folder = tmp_path / "data1"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    if done.returncode:
        needs.not_permitted("mount", done.stderr)
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True, timeout=10)


def leads(cluster: BrokerCluster, number: int) -> bool:
    """Return True if a broker leads a partition, as the others report it."""
    others = [other for other in cluster.ids if other != number]
    rows = cluster.partitions(TOPIC, *others)
    return not rows or any(row.leader == number for row in rows)


@pytest.mark.needs("mount")
def test_full_disk_moves_leadership_and_loses_nothing(
    small_disk: Path, cluster: BrokerCluster, producing: Producing
) -> None:
    """A failed write takes the log directory offline; the broker returns when there is free space
    (scenario 11).
    """
    with producing(cluster.bootstrap, TOPIC) as load:
        load.wait_for(1000)
        assert leads(cluster, 1)
        filler = small_disk / "filler"
        with filler.open("wb") as file, pytest.raises(OSError, match="No space"):
            while True:
                file.write(bytes(1 << 20))
                file.flush()
        wait(lambda: not leads(cluster, 1), "other brokers lead")
        load.wait_for(1500)
        filler.unlink()
        if not cluster.has_ended(1):
            cluster.kill(1)
        cluster.start(1)
        cluster.wait_in_sync(TOPIC)
    load.check(cluster.bootstrap)
    cluster.verify(TOPIC)


@pytest.mark.needs("mount")
@pytest.mark.nightly(_ONE_BROKER)
def test_one_full_directory_of_two_moves_only_its_leaders(
    small_disk: Path, tmp_path: Path, producing: Producing
) -> None:
    """The broker continues with the partitions of its other directory; nothing is lost."""
    others = tmp_path / "more1"
    own = {1: {"log.dirs": f"{small_disk},{others}"}}
    with BrokerCluster(tmp_path, own=own) as cluster:
        cluster.create_topic(TOPIC)
        full = {int(path.name.rpartition("-")[2]) for path in small_disk.glob(f"{TOPIC}-*")}
        assert 0 < len(full) < PARTITIONS
        with producing(cluster.bootstrap, TOPIC) as load:
            load.wait_for(1000)
            partitions = {
                row.partition for row in cluster.partitions(TOPIC) if row.leader == 1
            } - full
            assert partitions
            filler = small_disk / "filler"
            with filler.open("wb") as file, pytest.raises(OSError, match="No space"):
                while True:
                    file.write(bytes(1 << 20))
                    file.flush()
            wait(lambda: not _led_by_1(cluster) & full, "other brokers lead the full partitions")
            load.wait_for(1500)
            assert _led_by_1(cluster) == partitions
            filler.unlink()
            cluster.kill(1)
            cluster.start(1)
            cluster.wait_in_sync(TOPIC)
        load.check(cluster.bootstrap)
        cluster.verify(TOPIC)


def _led_by_1(cluster: BrokerCluster) -> set[int]:
    return {row.partition for row in cluster.partitions(TOPIC, 2, 3) if row.leader == 1}


@pytest.mark.nightly(_ONE_BROKER)
@pytest.mark.needs("strace")
def test_failed_sync_is_never_acknowledged(cluster: BrokerCluster, producing: Producing) -> None:
    """After EIO from fsync the directory is offline: the leader moves (scenario 11)."""
    cluster.create_topic("synced", partitions=3, config={"flush.on.ack": "true"})
    with producing(cluster.bootstrap, "synced", partitions=3, rate=500) as load:
        victim = cluster.leader("synced")
        names = "fsync,fdatasync"
        arguments = ("-e", f"trace={names}", "-e", f"inject={names}:error=EIO", "-o", "/dev/null")
        tracer = strace.attach(cluster.process_id(victim), *arguments)
        others = [number for number in cluster.ids if number != victim]
        try:
            wait(
                lambda: all(row.leader in others for row in cluster.partitions("synced", *others)),
                "other brokers lead",
            )
        finally:
            strace.detach(tracer)
        load.wait_for(1000)
        if not cluster.has_ended(victim):
            cluster.kill(victim)
        cluster.start(victim)
        cluster.wait_in_sync("synced")
    load.check(cluster.bootstrap)
    cluster.verify("synced")


def _cut_tail(folder: Path) -> None:
    """Cut the last bytes of each log, as a crash in the middle of a write does."""
    for path in folder.glob(f"{TOPIC}-*/*.log"):
        size_bytes = path.stat().st_size
        os.truncate(path, max(0, size_bytes - random.randrange(1, 900)))


def _delete(*patterns: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        for pattern in patterns:
            for path in folder.glob(pattern):
                path.unlink()

    return damage


def _overwrite(pattern: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        for path in folder.glob(pattern):
            path.write_bytes(os.urandom(max(64, path.stat().st_size)))

    return damage


DAMAGES: dict[str, Callable[[Path], None]] = {
    "torn tail": _cut_tail,
    "no indexes": _delete(f"{TOPIC}-*/*.index", f"{TOPIC}-*/*.timeindex"),
    "garbage in indexes": _overwrite(f"{TOPIC}-*/*index"),
    "no checkpoints": _delete("*-checkpoint"),
    "no leader epochs": _delete(f"{TOPIC}-*/leader-epoch-checkpoint"),
    "no snapshots": _delete(f"{TOPIC}-*/*.snapshot"),
}


def test_damaged_files_are_rebuilt_from_the_log_and_the_leader(
    cluster: BrokerCluster, producing: Producing
) -> None:
    """Each broker is damaged in two ways after a kill, and joins the ISR again (scenarios 8, 10)."""
    random.seed(1)
    with producing(cluster.bootstrap, TOPIC) as load:
        for number, names in zip(cluster.ids, grouped(list(DAMAGES), 2), strict=True):
            load.wait_for(750)
            cluster.kill(number)
            for name in names:
                DAMAGES[name](cluster.data(number))
            cluster.start(number)
            cluster.wait_in_sync(TOPIC)
    load.check(cluster.bootstrap)
    assert load.gap_seconds <= FAIL_OVER_S
    cluster.verify(TOPIC)


def grouped(names: list[str], size: int) -> list[list[str]]:
    """Return the names in groups."""
    return [names[start : start + size] for start in range(0, len(names), size)]
