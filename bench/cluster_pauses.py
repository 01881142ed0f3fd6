"""Measure how long the event loops of three brokers with many partitions stop, event by event.

`python -m bench.cluster_pauses [--partitions N] [--only EVENT ...] [--against kafka]`. N partitions
with three replicas each are in topics of 100 (`--size`), with a record in each. The brokers share a
ZooKeeper, or the embedded coordination of one of them (`--embedded`).

For each event, a line has the seconds until every broker reports a live leader and a complete ISR
for all partitions, and for each broker the longest pause: by the broker's own metric, and the
largest CPU time of the loop's thread between two checks. If other processes use the machine, the
first is larger than the second. Apache Kafka has no such metric, so only its times are printed.

`rest` measures the processor time of each broker while nothing happens, and its memory. `EVENTS`
has the events, in this order; the partitions are always created and filled.
"""

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import servers
from bench.cluster import KafkaCluster, cpu_seconds, memory_mb
from bench.observed import Reading, last_reading, raise_descriptor_limit
from ottla.base.errors import OttlaError
from ottla.client.admin import replicas
from ottla.wire.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.wire.records.records import Record, encode_batch
from tests.process.broker_cluster import BrokerCluster, wait
from tests.process.zookeeper_servers import ZooKeeper

LIMIT_MS = 100.0
_PATIENCE_S = 240.0
_PREFIX = "many-"
_SESSION_S = 18
_OPTIONS = {
    "zookeeper.session.timeout.ms": str(_SESSION_S * 1000),
    "replica.lag.time.max.ms": "30000",
    "auto.leader.rebalance.enable": "false",
    "log.retention.ms": "-1",
}
_REST_S = 20.0
_CHURN_ROUNDS, _CHURN_TOPICS, _CHURN_PARTITIONS = 5, 10, 10


class ObservedCluster(BrokerCluster):
    """Ottla brokers that report the pauses of their loops."""

    shows_logs = False

    def __init__(self, folder: Path, **options: Any) -> None:
        super().__init__(folder, **options)
        self._probe_ports: dict[int, int] = {}

    def _spawn(self, number: int) -> "subprocess.Popen[str]":
        probe_port = self._probe_ports[number] = servers.free_port()
        command = [sys.executable, "-m", "bench.observed", str(self.data(number))]
        command += [str(self.port(number)), str(probe_port), json.dumps(self._rows(number))]
        with (self.folder / f"broker{number}.err").open("ab") as errors:
            return subprocess.Popen(
                command, stderr=errors, text=True, cwd=Path(__file__).parents[1]
            )

    def _await_ready(self, number: int) -> None:
        process = self._processes[number]

        def responds() -> bool:
            assert process.poll() is None, self.log(number)[-3000:]
            try:
                socket.create_connection((self.host(number), self._probe_ports[number]), 1).close()
            except OSError:
                return False
            return True

        wait(responds, f"broker {number} is probed", _PATIENCE_S)

    def reading(self, number: int) -> Reading | None:
        """Return the worst measurement of a broker since the last call, over its processes.

        None if it was killed, and has not run since.
        """
        texts = []
        last = last_reading(self.data(number))
        if last.exists():
            texts.append(last.read_text())
            last.unlink()
        if number in self._processes:
            address = (self.host(number), self._probe_ports[number])
            with socket.create_connection(address, 60) as probe:
                probe.sendall(b"take\n")
                texts.append(probe.makefile().readline())
        readings = [Reading(**json.loads(text)) for text in texts]
        return max(readings, key=lambda reading: reading.watch_ms, default=None)


class Scene:
    """A cluster with many partitions, and the events that happen to it."""

    def __init__(self, cluster: BrokerCluster, words: argparse.Namespace) -> None:
        self._cluster = cluster
        self._count, self._size = words.partitions, words.size
        self._shows_stacks = words.stacks
        self.rows: list[dict[str, object]] = []

    # -- state ------------------------------------------------------------------------------------

    def _view(self, number: int) -> MetadataResponse | None:
        try:
            request = MetadataRequest(topics=None)
            return servers.ask(self._cluster.port(number), request, MetadataResponse, 9)
        except OSError:
            return None

    def _is_settled(self, number: int, *, in_sync: bool) -> bool:
        view = self._view(number)
        if view is None:
            return False
        running = set(self._cluster.running)
        partitions = [
            partition
            for topic in view.topics
            if str(topic.name).startswith(_PREFIX)
            for partition in topic.partitions
        ]
        return len(partitions) == self._count and all(
            partition.leader_id in running
            and (not in_sync or len(partition.isr_nodes) == len(running))
            for partition in partitions
        )

    def _wait(self, *, in_sync: bool) -> None:
        for number in self._cluster.running:
            word = "a complete ISR" if in_sync else "a leader"
            wait(
                lambda number=number: self._is_settled(number, in_sync=in_sync),  # type: ignore[misc]
                f"broker {number} reports {word} for all partitions",
                _PATIENCE_S,
            )

    # -- events -----------------------------------------------------------------------------------

    def measure(self, name: str, event: Callable[[], float | None]) -> None:
        """Let an event happen; print and store a line when all partitions are in sync again.

        The seconds that `event` returns are not counted.
        """
        cluster = self._cluster
        observed = cluster if isinstance(cluster, ObservedCluster) else None
        for number in cluster.running if observed else ():
            assert observed is not None
            observed.reading(number)
        started = time.perf_counter()
        started += event() or 0.0
        event_s = time.perf_counter() - started
        self._wait(in_sync=False)
        leaders_s = time.perf_counter() - started
        self._wait(in_sync=True)
        in_sync_s = time.perf_counter() - started
        row: dict[str, object] = {
            "event": name, "event s": event_s, "leaders s": leaders_s, "in sync s": in_sync_s,
        }  # fmt: skip
        text = (
            f"{name:26s} done {event_s:6.2f}  leaders {leaders_s:6.2f}  in sync {in_sync_s:6.2f} s"
        )
        stacks = []
        for number in cluster.ids if observed else ():
            assert observed is not None
            reading = observed.reading(number)
            if reading is None:
                continue
            row[f"broker {number}"] = {"pause ms": reading.watch_ms, "cpu ms": reading.cpu_ms}
            mark = "!" if reading.watch_ms > LIMIT_MS else ""
            text += f"  {number}: {reading.watch_ms:.0f}{mark} (cpu {reading.cpu_ms:.0f})"
            if reading.watch_ms > LIMIT_MS:
                stacks.append(f"    broker {number}: {reading.stack}")
        self.rows.append(row)
        print(text, *(stacks if self._shows_stacks else ()), sep="\n", flush=True)

    def create(self) -> None:
        """Create the topics."""
        for number in range(self._count // self._size):
            self._create([(f"{_PREFIX}{number}", self._size)])

    def _create(self, sizes: list[tuple[str, int]]) -> None:
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(name=name, num_partitions=size, replication_factor=3)
                for name, size in sizes
            ],
            timeout_ms=60_000,
        )
        with self._cluster.admin(timeout_s=60) as brokers:
            response = brokers.ask_controller(request, CreateTopicsResponse)
        assert not any(topic.error_code for topic in response.topics), response

    def fill(self) -> None:
        """Write a record to each partition."""
        batch = bytes(encode_batch([Record(None, b"first", (), int(time.time() * 1000))]))
        for number in self._cluster.running:
            view = self._view(number)
            assert view is not None
            data = [
                TopicProduceData(
                    name=str(topic.name),
                    partition_data=[
                        PartitionProduceData(index=partition.partition_index, records=batch)
                        for partition in topic.partitions
                        if partition.leader_id == number
                    ],
                )
                for topic in view.topics
                if str(topic.name).startswith(_PREFIX)
            ]
            for one in data:
                request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[one])
                response = servers.ask(self._cluster.port(number), request, ProduceResponse, 8)
                for topic in response.responses:
                    assert not any(item.error_code for item in topic.partition_responses), topic

    def start(self) -> None:
        """Start all brokers after a clean stop of all."""
        for number in self._cluster.running:
            self._cluster.stop(number)
        self._cluster.start(*self._cluster.ids)

    def kill(self) -> float:
        """Kill all brokers with SIGKILL, and start them again.

        A broker of Apache Kafka cannot start before the session of the killed process has ended;
        this wait is not counted.
        """
        self._cluster.kill(*self._cluster.running)
        killed = time.perf_counter()
        if isinstance(self._cluster, KafkaCluster):
            time.sleep(_SESSION_S + 2)
        seconds = time.perf_counter() - killed
        self._cluster.start(*self._cluster.ids)
        return seconds

    def rest(self) -> None:
        """Print and store the processor time of the brokers while nothing happens."""
        before = cpu_seconds(self._cluster)
        time.sleep(_REST_S)
        after = cpu_seconds(self._cluster)
        milliseconds = [1000 * (after[n] - before[n]) / _REST_S for n in self._cluster.ids]
        row = {"event": "rest", "cpu ms/s": milliseconds, "memory MB": memory_mb(self._cluster)}
        self.rows.append(row)
        text = "  ".join(
            f"{n}: {ms:.1f}" for n, ms in zip(self._cluster.ids, milliseconds, strict=True)
        )
        print(f"{'rest':26s} CPU ms/s {text}  memory {row['memory MB']:.0f} MB", flush=True)

    def kill_one(self) -> None:
        """Kill one broker that is not the controller; it stays dead."""
        controller = self._cluster.controller()
        self._cluster.kill(next(n for n in self._cluster.running if n != controller))

    def stop(self) -> None:
        """Stop one broker that is not the controller."""
        controller = self._cluster.controller()
        self._cluster.stop(next(n for n in self._cluster.running if n != controller))

    def stop_controller(self) -> None:
        """Stop the controller."""
        self._cluster.stop(self._cluster.controller())

    def return_(self) -> None:
        """Start the stopped broker again."""
        self._cluster.start(*(n for n in self._cluster.ids if n not in self._cluster.running))

    def roll(self) -> None:
        """Restart one broker after the other."""
        for number in self._cluster.ids:
            self._cluster.stop(number)
            self._wait(in_sync=False)
            self._cluster.start(number)
            self._wait(in_sync=True)

    def move(self) -> None:
        """Elect all preferred leaders."""
        with self._cluster.admin(timeout_s=60) as brokers:
            replicas.elect_leaders(brokers)

    def churn(self) -> None:
        """Create and delete small topics beside the many partitions."""
        for turn in range(_CHURN_ROUNDS):
            sizes = [(f"churn-{turn}-{n}", _CHURN_PARTITIONS) for n in range(_CHURN_TOPICS)]
            self._create(sizes)
            request = DeleteTopicsRequest(
                topic_names=[name for name, _ in sizes], timeout_ms=60_000
            )
            with self._cluster.admin(timeout_s=60) as brokers:
                brokers.ask_controller(request, DeleteTopicsResponse, max_version=5)


EVENTS: dict[str, tuple[tuple[str, Callable[[Scene], float | None]], ...]] = {
    "create": (),
    "rest": (),
    "churn": (("churn of topics", Scene.churn),),
    "kill": (("kill -9 of all, start", Scene.kill),),
    "fail": (("kill -9 of one", Scene.kill_one), ("its return", Scene.return_)),
    "stop": (
        ("clean stop of one", Scene.stop),
        ("its return", Scene.return_),
        ("clean stop of controller", Scene.stop_controller),
        ("its return", Scene.return_),
    ),
    "move": (("preferred leaders", Scene.move),),
    "start": (("clean stop of all, start", Scene.start),),
    "roll": (("rolling restart", Scene.roll), ("preferred leaders", Scene.move)),
}


def run(
    kind: type[BrokerCluster], words: argparse.Namespace, folder: Path
) -> list[dict[str, object]]:
    """Run one cluster through the events."""
    folder.mkdir()
    server = ZooKeeper(folder / "zookeeper")
    try:
        address = None
        if not words.embedded:
            server.start()
            address = server.address
        with kind(folder, zookeeper=address, options=_OPTIONS) as cluster:
            scene = Scene(cluster, words)
            try:
                scene.measure(f"create {words.partitions} partitions", scene.create)
                scene.fill()
                for name in words.only:
                    if name == "rest":
                        scene.rest()
                    for label, event in EVENTS[name]:
                        scene.measure(label, lambda event=event: event(scene))  # type: ignore[misc]
            except (AssertionError, OttlaError):
                for number in cluster.ids:
                    print(f"--- broker {number}\n{cluster.log(number)[-3000:]}")
                raise
            return scene.rows
    finally:
        server.kill()


def main() -> None:
    """Run the events; exit code 1 if a pause was longer than the limit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--only", nargs="+", choices=EVENTS, default=list(EVENTS))
    parser.add_argument("--against", choices=["ottla", "kafka"], default="ottla")
    parser.add_argument("--embedded", action="store_true")
    parser.add_argument("--stacks", action="store_true")
    parser.add_argument("--output", type=Path)
    words = parser.parse_args()
    raise_descriptor_limit()
    kind: type[BrokerCluster] = KafkaCluster if words.against == "kafka" else ObservedCluster
    with tempfile.TemporaryDirectory(prefix="cluster-pauses-") as folder:
        rows = run(kind, words, Path(folder) / "cluster")
    if words.output:
        words.output.write_text(json.dumps(rows, indent=2) + "\n")
    pauses = [
        value["pause ms"] for row in rows for value in row.values() if isinstance(value, dict)
    ]
    if pauses:
        print(f"longest pause {max(pauses):.0f} ms, limit {LIMIT_MS:g} ms")
    sys.exit(bool(pauses) and max(pauses) > LIMIT_MS)


if __name__ == "__main__":
    main()
