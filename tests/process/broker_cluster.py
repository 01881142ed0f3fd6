"""Three `ottla broker start` processes, each with its own configuration file, that share a cluster.

A broker can be killed, paused and started again on its port. Brokers end with the test's process,
because they watch their standard input.
"""

import json
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client.admin import cluster, topics
from ottla.client.brokers import Brokers
from ottla.client.errors import NotReachable, TimedOut
from ottla.testing.process import COMMAND
from ottla.tools.broker.processes import free_port
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

PATIENCE_S = 30.0
# A silent broker is noticed after this time (reliability.md §2.6: S = 2 s in CI).
SESSION_MS = 2000
# Every fail-over is over after this time: 1.5 sessions + 2 s.
FAIL_OVER_S = 1.5 * SESSION_MS / 1000 + 2
LOOPBACK = "127.0.0.1"
# The key types of FindCoordinator.
GROUP_KEY, TRANSACTION_KEY = 0, 1
OPTIONS = {
    "zookeeper.session.timeout.ms": str(SESSION_MS),
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.min.isr": "2",
    "group.initial.rebalance.delay.ms": "0",
    # A follower that cannot fetch leaves the ISR after this time.
    "replica.lag.time.max.ms": "3000",
}
_pause = threading.Event()
# `make test` runs the scenarios that find most; `make campaign` runs all.
IS_CAMPAIGN = bool(os.environ.get("OTTLA_CAMPAIGN"))
campaign = pytest.mark.skipif(not IS_CAMPAIGN, reason="runs in `make campaign` (OTTLA_CAMPAIGN=1)")


def wait(condition: Callable[[], bool], what: str, seconds: float = PATIENCE_S) -> float:
    """Return how many seconds passed until the condition held."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() < started + seconds, f"not within {seconds:g} s: {what}"
        _pause.wait(0.05)
    return time.monotonic() - started


class BrokerCluster:
    """Brokers 1 to `count`; a context manager that starts them, and kills those that still run.

    `zookeeper` is the address of a ZooKeeper; without it the brokers share embedded coordination.
    `hosts` are the addresses of the brokers, and `prefixes` the commands that run them elsewhere
    (by default all are on loopback). `own` are options of single brokers.
    """

    # Print what the brokers have written at the end; pytest shows it after a failure.
    shows_logs = True

    def __init__(
        self,
        folder: Path,
        *,
        zookeeper: str | Mapping[int, str] | None = None,
        options: Mapping[str, str] | None = None,
        hosts: Mapping[int, str] | None = None,
        prefixes: Mapping[int, Sequence[str]] | None = None,
        own: Mapping[int, Mapping[str, str]] | None = None,
        count: int = 3,
    ) -> None:
        self.folder = folder
        self.ids = tuple(range(1, count + 1))
        self._options = {**OPTIONS, **(options or {})}
        self._zookeeper = zookeeper
        self._hosts = hosts or dict.fromkeys(self.ids, LOOPBACK)
        self._prefixes = prefixes or {}
        self._own = own or {}
        self._ports = {number: free_port(is_any=True) for number in self.ids}
        self._coordination = free_port(is_any=True)
        self._processes: dict[int, subprocess.Popen[str]] = {}
        self._paused: set[int] = set()

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers, also of those that are down."""
        return ",".join(f"{self._hosts[number]}:{self._ports[number]}" for number in self.ids)

    @property
    def running(self) -> list[int]:
        """The brokers whose processes run and are not paused."""
        return [number for number in self._processes if number not in self._paused]

    def host(self, number: int) -> str:
        """Return a broker's address."""
        return self._hosts[number]

    def port(self, number: int) -> int:
        """Return a broker's port."""
        return self._ports[number]

    def data(self, number: int) -> Path:
        """Return a broker's log directory."""
        return self.folder / f"data{number}"

    def log(self, number: int) -> str:
        """Return what a broker has written on standard error."""
        return (self.folder / f"broker{number}.err").read_text()

    # -- life and death ---------------------------------------------------------------------------

    def __enter__(self) -> "BrokerCluster":
        """Start all brokers at the same time."""
        try:
            self.start(*self.ids)
            wait(lambda: self.known() == set(self.ids), "all brokers know each other")
        except BaseException:
            self.kill(*self._processes)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Kill the brokers."""
        for number in list(self._processes):
            self.kill(number)
        for number in self.ids if self.shows_logs else ():
            print(f"--- broker {number}\n{self.log(number)[-8000:]}")

    def start(self, *numbers: int) -> None:
        """Start brokers, and return when they serve clients."""
        for number in numbers:
            assert number not in self._processes, f"broker {number} runs already"
            self._processes[number] = self._spawn(number)
        for number in numbers:
            self._await_ready(number)

    def _spawn(self, number: int) -> "subprocess.Popen[str]":
        path = self.folder / f"server{number}.properties"
        path.write_text("\n".join(f"{key}={value}" for key, value in self._rows(number).items()))
        arguments = ("broker", "start", "--config", str(path), "--supervised", "--output", "json")
        with (self.folder / f"broker{number}.err").open("ab") as errors:
            return subprocess.Popen(
                [*self._prefixes.get(number, ()), *COMMAND, *arguments, "--log-level", "info"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def _rows(self, number: int) -> dict[str, str]:
        rows = {
            "broker.id": str(number),
            "listeners": f"PLAINTEXT://{self._hosts[number]}:{self._ports[number]}",
            "log.dirs": str(self.data(number)),
            **self._options,
            **self._own.get(number, {}),
        }
        if self._hosts[number] != LOOPBACK:
            # An address of a network namespace.
            rows["allow.insecure.listeners"] = "true"
        if self._zookeeper is None:
            rows["coordination.dir"] = str(self.folder / "coordination")
            rows["coordination.listener"] = f"{LOOPBACK}:{self._coordination}"
        else:
            known = self._zookeeper
            rows["zookeeper.connect"] = known if isinstance(known, str) else known[number]
        return rows

    def _await_ready(self, number: int) -> None:
        process = self._processes[number]
        assert process.stdout is not None
        readable, _, _ = select.select([process.stdout], [], [], PATIENCE_S)
        line = process.stdout.readline() if readable else ""
        assert line, f"broker {number} did not start: {self.log(number)[-3000:]}"
        json.loads(line)

    def process_id(self, number: int) -> int:
        """Return the id of a broker's process."""
        return self._processes[number].pid

    def kill(self, *numbers: int) -> None:
        """End brokers with SIGKILL, all at once."""
        processes = [self._processes.pop(number) for number in numbers]
        for process in processes:
            process.send_signal(signal.SIGKILL)
        for process in processes:
            with process:
                process.wait(PATIENCE_S)
        self._paused.difference_update(numbers)

    def stop(self, number: int) -> int:
        """End a broker with SIGTERM, which is a controlled shutdown; return its exit code."""
        process = self._processes.pop(number)
        with process:
            process.terminate()
            return process.wait(PATIENCE_S)

    def has_ended(self, number: int) -> bool:
        """Return True if a broker's process has ended by itself, and forget it."""
        process = self._processes[number]
        if process.poll() is None:
            return False
        with process:
            del self._processes[number]
        return True

    def pause(self, number: int) -> None:
        """Stop a broker with SIGSTOP: its connections stay, and nothing responds."""
        self._paused.add(number)
        os.kill(self._processes[number].pid, signal.SIGSTOP)

    def resume(self, number: int) -> None:
        """Let a paused broker continue."""
        os.kill(self._processes[number].pid, signal.SIGCONT)
        self._paused.discard(number)

    # -- state ------------------------------------------------------------------------------------

    def admin(self, *numbers: int, timeout_s: float = 2.0) -> Brokers:
        """Return a new client that knows these brokers, or those that run; close it after use."""
        chosen = numbers or self.running
        addresses = (f"{self._hosts[number]}:{self._ports[number]}" for number in chosen)
        return Brokers(",".join(addresses), timeout_s=timeout_s, is_proven=True)

    def known(self, *numbers: int) -> set[int]:
        """Return the brokers that the first of these brokers that responds knows."""
        try:
            with self.admin(*numbers) as brokers:
                return {node.node_id for node in cluster.describe_cluster(brokers).brokers}
        except (OttlaError, OSError):
            return set()

    def controller(self, *numbers: int) -> int:
        """Return the controller, or -1 while none is known."""
        try:
            with self.admin(*numbers) as brokers:
                return cluster.describe_cluster(brokers).controller_id
        except (OttlaError, OSError):
            return -1

    def partitions(self, topic: str, *numbers: int) -> Sequence[topics.Partition]:
        """Return the partitions of a topic; empty while no broker responds."""
        try:
            with self.admin(*numbers) as brokers:
                return topics.describe_topic(brokers, topic).partitions
        except (OttlaError, NotReachable, TimedOut, OSError):
            return ()

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return a partition's leader as the running brokers report it; waits for one that runs."""
        result = -1

        def is_led() -> bool:
            nonlocal result
            rows = self.partitions(topic)
            result = rows[partition].leader if rows else -1
            return result in self.running

        wait(is_led, f"{topic}-{partition} has a leader")
        return result

    def create_topic(
        self, name: str, *, partitions: int = 12, config: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic with up to three replicas, and return when all are in sync."""
        factor = min(3, len(self.ids))
        with self.admin(timeout_s=PATIENCE_S) as brokers:
            topics.create_topic(
                brokers, name, partitions=partitions, replication_factor=factor, config=config
            )
        self.wait_in_sync(name)

    def wait_in_sync(self, topic: str, seconds: float = PATIENCE_S) -> float:
        """Return how long it took until every replica of a topic was in the ISR.

        All brokers have to say so: the metadata of one may be old for a moment.
        """

        def is_in_sync() -> bool:
            views = [self.partitions(topic, number) for number in self.running]
            return all(
                bool(rows) and all(len(row.isr) == len(row.replicas) for row in rows)
                for rows in views
            )

        return wait(is_in_sync, f"all replicas of {topic} are in sync", seconds)

    def verify(self, *names: str) -> None:
        """Fail unless `ottla replica verify` finds all replicas identical."""
        arguments = [word for name in names for word in ("--topic", name)]
        done = subprocess.run(
            [*COMMAND, "replica", "verify", "-b", self.bootstrap, "--output", "json", *arguments],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        rows = json.loads(done.stdout) if done.stdout else []
        bad = [row for row in rows if row["result"] != "identical"]
        assert (done.returncode, bad) == (0, []), done.stderr

    def segments(self, topic: str) -> str:
        """Return the batches and markers of a topic's replicas, for the message of a failure."""
        files = sorted(
            str(path)
            for number in self.ids
            for path in self.data(number).glob(f"{topic}-*/*.log")
            if path.stat().st_size
        )
        done = subprocess.run(
            [*COMMAND, "log", "dump", "--records", *files],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return done.stdout + done.stderr


def coordinator(cluster: BrokerCluster, key: str, key_type: int) -> int:
    """Return the broker that coordinates a group or a transactional id; waits for one that runs."""
    result = -1

    def is_known() -> bool:
        nonlocal result
        request = FindCoordinatorRequest(key=key, key_type=key_type)
        try:
            with cluster.admin() as brokers:
                response = brokers.ask(request, FindCoordinatorResponse, max_version=3)
        except (OttlaError, OSError):
            return False
        result = response.node_id
        return response.error_code == ErrorCode.NONE and result in cluster.running

    wait(is_known, f"{key} has a coordinator")
    return result
