"""A cluster of an earlier commit is upgraded broker by broker while transactions are written."""

import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from ottla.testing.checkers.kafka import Status
from tests.process.broker_cluster import BrokerCluster, campaign
from tests.process.faults import SEED, judge, progress
from tests.process.transactional_load import transactions
from tests.process.zookeeper_servers import zookeeper

pytestmark = [pytest.mark.slow, pytest.mark.needs("zookeeper"), pytest.mark.timeout(600)]
TOPICS = ("orders", "payments")
PARTITIONS = [(topic, number) for topic in TOPICS for number in range(6)]
_ROOT = Path(__file__).parents[2]
_FORMER = os.environ.get("OTTLA_UPGRADE_FROM", "HEAD~110")


@pytest.fixture
def former(tmp_path: Path) -> Path:
    """The package of an earlier commit, in a folder."""
    folder, archive = tmp_path / "former", tmp_path / "former.tar"
    words = ("git", "archive", "-o", str(archive), _FORMER, "ottla")
    done = subprocess.run(words, cwd=_ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no commit {_FORMER}: {done.stderr.strip()}")
    with tarfile.open(archive) as content:
        content.extractall(folder, filter="data")
    return folder


def restart(cluster: BrokerCluster, number: int) -> None:
    """Stop a broker, start it again, and return when all replicas are in sync."""
    assert cluster.stop(number) == 0
    cluster.start(number)
    for topic in TOPICS:
        cluster.wait_in_sync(topic)


def runs_in(cluster: BrokerCluster, number: int, folder: Path) -> bool:
    """Return True if a broker's process has started in a folder."""
    return Path(f"/proc/{cluster.process_id(number)}/cwd").resolve() == folder.resolve()


@campaign
def test_rolling_upgrade_loses_nothing(tmp_path: Path, former: Path) -> None:
    """Each broker is stopped and started with the current code; transactions are only repeated.

    Afterwards the brokers return to the former code, one by one, as far as an operator goes back.
    """
    # Python imports the package from the directory in which it starts.
    old = {number: ["env", "-C", str(former)] for number in (1, 2, 3)}
    prefixes = dict(old)
    with (
        zookeeper(tmp_path / "zookeeper") as server,
        BrokerCluster(tmp_path, zookeeper=server.address, prefixes=prefixes) as cluster,
    ):
        for topic in TOPICS:
            cluster.create_topic(topic, partitions=6)
        with transactions(cluster.bootstrap, PARTITIONS, workers=4, batch=5, seed=SEED) as recorder:
            progress(recorder, 50)
            for number in cluster.ids:
                prefixes.pop(number)
                restart(cluster, number)
                progress(recorder)
            assert not any(runs_in(cluster, number, former) for number in cluster.ids)
            for number in cluster.ids:
                prefixes[number] = old[number]
                restart(cluster, number)
                progress(recorder)
            assert all(runs_in(cluster, number, former) for number in cluster.ids)
            progress(recorder, 50)
        assert judge(recorder) == []
        cluster.verify(*TOPICS)
    assert recorder.count(Status.UNKNOWN) == 0, recorder.errors
