"""Faults of a cluster one after the other, and the judgement of the transactions during them."""

import os
import random
import time
from collections.abc import Sequence
from pathlib import Path

from ottla.testing.checkers.kafka import Status
from ottla.testing.checkers.transactions import check, edn_lines
from tests.process.broker_cluster import SESSION_MS, BrokerCluster, wait
from tests.process.machines import Machines
from tests.process.transactional_load import Recorder

# The machine of ZooKeeper.
ZOOKEEPER = 9
# For how long faults are injected, the seed, and the folder of histories in EDN.
SECONDS = float(os.environ.get("OTTLA_CAMPAIGN_SECONDS", "240"))
SEED = int(os.environ.get("OTTLA_SEED", str(random.randrange(1000))))
HISTORIES = Path(os.environ.get("OTTLA_HISTORIES", "out/histories"))


def judge(recorder: Recorder, name: str | None = None) -> list[str]:
    """Read all partitions, write the history if it has a name, and return its first anomalies."""
    final = recorder.read_all()
    if name is not None:
        HISTORIES.mkdir(parents=True, exist_ok=True)
        with (HISTORIES / f"{name}.edn").open("w") as file:
            file.writelines(f"{line}\n" for line in edn_lines(recorder.operations))
    outcomes = ", ".join(f"{recorder.count(status)} {status.value}" for status in Status)
    print(f"seed {SEED}, {recorder.size()} operations, transactions: {outcomes}, final {final}")
    print(*recorder.errors.items(), sep="\n")
    assert recorder.consumer_errors == []
    return [str(item) for item in check(recorder.operations, final)[:5]]


def progress(recorder: Recorder, more: int = 20) -> None:
    """Wait until further transactions are committed."""
    goal = recorder.count(Status.OK) + more
    wait(lambda: recorder.count(Status.OK) >= goal, f"{more} transactions are committed", 120)


class Faults:
    """Injects one fault after the other into a cluster, each for longer than a session."""

    def __init__(
        self,
        cluster: BrokerCluster,
        network: Machines,
        topics: Sequence[str],
        session_ms: int = SESSION_MS,
    ) -> None:
        self._cluster = cluster
        self._session_ms = session_ms
        self._network = network
        self._topics = topics
        self._random = random.Random(SEED)
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
            places = others if kind == "cut" else [ZOOKEEPER, *others]
            self._network.cut(victim, *places, is_one_way=self._random.random() < 0.3)
            self._last()
            self._network.heal(victim)
        for topic in self._topics:
            self._cluster.wait_in_sync(topic, 120)

    def _last(self) -> None:
        """Return after 0.2 to 2 sessions."""
        end = time.monotonic() + self._random.uniform(0.2, 2) * self._session_ms / 1000
        wait(lambda: time.monotonic() > end, "the fault has lasted")
