"""Histories of transactions under faults, judged by the anomalies of Jepsen's workload for Kafka."""

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.testing.checkers.kafka import Status
from ottla.testing.checkers.transactions import check, edn_lines
from tests.process.broker_cluster import SESSION_MS, BrokerCluster, campaign, wait
from tests.process.machines import Machines, machines
from tests.process.transactional_load import Recorder, transactions
from tests.process.zookeeper_servers import zookeeper

pytestmark = pytest.mark.slow
TOPICS = ("orders", "payments")
PARTITIONS = [(topic, number) for topic in TOPICS for number in range(6)]
_ZOOKEEPER = 9
# Of the campaign: how long faults are injected, the seed, and the folder of histories in EDN.
_SECONDS = float(os.environ.get("OTTLA_CAMPAIGN_SECONDS", "240"))
_SEED = int(os.environ.get("OTTLA_SEED", str(random.randrange(1000))))
_HISTORIES = Path(os.environ.get("OTTLA_HISTORIES", "out/histories"))


def judge(recorder: Recorder, name: str | None = None) -> None:
    """Read all partitions, write the history if it has a name, and fail if it has an anomaly."""
    final = recorder.read_all()
    if name is not None:
        _HISTORIES.mkdir(parents=True, exist_ok=True)
        with (_HISTORIES / f"{name}.edn").open("w") as file:
            file.writelines(f"{line}\n" for line in edn_lines(recorder.operations))
    outcomes = ", ".join(f"{recorder.count(status)} {status.value}" for status in Status)
    print(f"seed {_SEED}, {recorder.size()} operations, transactions: {outcomes}, final {final}")
    print(*recorder.errors.items(), sep="\n")
    assert recorder.consumer_errors == []
    assert [str(item) for item in check(recorder.operations, final)[:5]] == []


def progress(recorder: Recorder, more: int = 20) -> None:
    """Wait until further transactions are committed."""
    goal = recorder.count(Status.OK) + more
    wait(lambda: recorder.count(Status.OK) >= goal, f"{more} transactions are committed", 60)


def test_history_of_transactions_has_no_anomaly_while_a_broker_is_killed(tmp_path: Path) -> None:
    """No value is lost, doubled, reordered or read before its commit, and none after an abort."""
    with BrokerCluster(tmp_path) as cluster:
        for topic in TOPICS:
            cluster.create_topic(topic, partitions=6)
        with transactions(
            cluster.bootstrap, PARTITIONS, workers=3, batch=3, seed=_SEED
        ) as recorder:
            progress(recorder)
            cluster.kill(1)
            progress(recorder)
            cluster.start(1)
            progress(recorder)
        judge(recorder)


class Faults:
    """Injects one fault after the other into a cluster, each for longer than a session."""

    def __init__(self, cluster: BrokerCluster, network: Machines) -> None:
        self._cluster = cluster
        self._network = network
        self._random = random.Random(_SEED)
        self.injected: list[str] = []

    def inject(self) -> None:
        """Inject a fault, end it, and return when all replicas are in sync again."""
        kind = self._random.choice(["kill", "kill all", "pause", "cut", "isolate"])
        victim = self._random.choice(self._cluster.ids)
        self.injected.append(f"{kind} {victim}")
        others = [number for number in self._cluster.ids if number != victim]
        if kind == "kill":
            self._cluster.kill(victim)
            self._last()
            self._cluster.start(victim)
        elif kind == "kill all":
            self._cluster.kill(*self._cluster.ids)
            self._cluster.start(*self._cluster.ids)
        elif kind == "pause":
            self._cluster.pause(victim)
            self._last()
            self._cluster.resume(victim)
        else:
            places = others if kind == "cut" else [_ZOOKEEPER, *others]
            self._network.cut(victim, *places, is_one_way=self._random.random() < 0.3)
            self._last()
            self._network.heal(victim)
        for topic in TOPICS:
            self._cluster.wait_in_sync(topic, 60)

    def _last(self) -> None:
        """Return after 0.2 to 2 sessions."""
        end = time.monotonic() + self._random.uniform(0.2, 2) * SESSION_MS / 1000
        wait(lambda: time.monotonic() > end, "the fault has lasted")


@pytest.fixture
def network() -> Iterator[Machines]:
    """Four machines: three for brokers, one for ZooKeeper."""
    with machines(1, 2, 3, _ZOOKEEPER) as result:
        yield result


@campaign
@pytest.mark.needs("zookeeper", "namespaces")
def test_history_of_transactions_has_no_anomaly_under_all_faults(
    tmp_path: Path, network: Machines
) -> None:
    """Kills, pauses and cut networks for minutes; `tests.process.jepsen` judges the history, too."""
    host, prefix = network.addresses[_ZOOKEEPER], network.prefix(_ZOOKEEPER)
    with (
        zookeeper(tmp_path / "zookeeper", host, prefix) as server,
        BrokerCluster(
            tmp_path,
            zookeeper=server.address,
            hosts={number: network.addresses[number] for number in (1, 2, 3)},
            prefixes={number: network.prefix(number) for number in (1, 2, 3)},
        ) as cluster,
    ):
        for topic in TOPICS:
            cluster.create_topic(topic, partitions=6)
        faults = Faults(cluster, network)
        with transactions(
            cluster.bootstrap, PARTITIONS, workers=6, batch=20, seed=_SEED
        ) as recorder:
            end = time.monotonic() + _SECONDS
            while time.monotonic() < end:
                progress(recorder, 50)
                faults.inject()
            progress(recorder, 50)
        print(f"{len(faults.injected)} faults: {', '.join(faults.injected)}")
        judge(recorder, f"transactions-{_SEED}")
        cluster.verify(*TOPICS)
