"""The tour of docs/cluster-tour.md: five ZooKeeper servers, five brokers, topics with replicas.

The commands of the page run as they are written, except for addresses and folders.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from ottla.testing.process import COMMAND, ZooKeeperProcess
from tests.law import source

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,
    pytest.mark.needs("zookeeper"),
]

_PATIENCE_S = 60.0
_BLOCK = re.compile(r"^### ([^\n]+)$|^```(sh|properties)\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Tour:
    """The ensemble, the brokers by id, and a way to run commands against them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.zookeeper = ZooKeeperProcess(folder / "zookeeper", nodes=5)
        self.brokers: dict[int, subprocess.Popen[str]] = {}
        self.addresses: dict[int, str] = {}
        self.outputs: dict[str, str] = {}
        # The command that started each broker.
        self.starts: dict[int, str] = {}

    def run(self, line: str) -> None:
        """Run one line of the page; it must succeed. Commands that stay in the foreground start."""
        if line.startswith("ottla zookeeper start"):
            self.zookeeper.start()
        elif line.startswith("ottla broker start"):
            self.start_broker(line)
        else:
            connect = self.zookeeper.connect
            line = line.replace("zookeeper shell", f"zookeeper shell --connect {connect}")
            line = line.replace("ottla ", f"{shlex.join(COMMAND)} ")
            environment = {**os.environ, "OTTLA_BOOTSTRAP": self.bootstrap}
            done = subprocess.run(
                line,
                shell=True,
                capture_output=True,
                text=True,
                cwd=self.folder,
                env=environment,
                timeout=_PATIENCE_S,
            )
            assert done.returncode == 0, f"{line}: {done.stderr}"
            self.outputs[line.rpartition(" ")[2]] = done.stdout

    def start_broker(self, line: str) -> None:
        """Start a broker in the background and wait until it is ready."""
        line = re.sub(r":909\d$", ":0", line)
        (number,) = re.findall(r"broker\.id=(\d)", line)
        self.starts[int(number)] = line
        with (self.folder / f"broker{number}.stderr").open("a") as errors:
            process = subprocess.Popen(
                [*COMMAND, *shlex.split(line)[1:], "--output", "json"],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=self.folder,
            )
        self.brokers[int(number)] = process
        assert process.stdout is not None
        self.addresses[int(number)] = json.loads(process.stdout.readline())["bootstrap"]

    def write_configuration(self, text: str) -> None:
        """Write the configuration file of the page with the ensemble's addresses."""
        connect = f"zookeeper.connect={self.zookeeper.connect}"
        text = re.sub(r"^zookeeper.connect=.*$", connect, text, flags=re.MULTILINE)
        (self.folder / "server.properties").write_text(text)

    @property
    def bootstrap(self) -> str:
        """The addresses of the brokers that run."""
        live = [number for number, process in self.brokers.items() if process.poll() is None]
        return ",".join(self.addresses[number] for number in live)

    def leader(self) -> int:
        """Return the leader of partition 0 of the page's topic."""
        with Brokers(self.bootstrap) as brokers:
            return topics.describe_topic(brokers, "orders").partitions[0].leader

    def kill(self, number: int) -> None:
        """Kill a broker, and wait until another one leads partition 0."""
        self.brokers[number].send_signal(signal.SIGKILL)
        self.brokers[number].wait(_PATIENCE_S)
        deadline, pause = time.monotonic() + _PATIENCE_S, threading.Event()
        while self.leader() in (number, -1):
            assert time.monotonic() < deadline, "no other leader was elected"
            pause.wait(0.05)

    def restart_killed(self) -> None:
        """Start the brokers again that were killed."""
        for number in [n for n, process in self.brokers.items() if process.poll() is not None]:
            with self.brokers[number]:
                # Leaving the context closes the pipe of the former process.
                self.start_broker(self.starts[number])

    def end(self) -> None:
        """Stop everything; print what the brokers have logged, which pytest shows if a test fails."""
        for number, process in self.brokers.items():
            # Leaving the context closes the pipe and waits for the end.
            with process:
                process.kill()
            print(f"--- broker {number}\n{(self.folder / f'broker{number}.stderr').read_text()}")
        if self.zookeeper.connect:
            self.zookeeper.stop()


@pytest.fixture
def tour(tmp_path: Path) -> Iterator[Tour]:
    """A tour that ends with the test."""
    tour = Tour(tmp_path)
    yield tour
    tour.end()


def test_commands_of_the_tour_run(tour: Tour) -> None:
    """Every command succeeds, and records survive the kill -9 of a leader and a clean stop."""
    page = (source.ROOT / "docs/cluster-tour.md").read_text(encoding="utf-8")
    for heading, language, text in _BLOCK.findall(page.partition("## The tour")[2]):
        if heading == "A broker dies":
            tour.kill(tour.leader())
        elif heading == "Stop a broker for maintenance":
            # The leader that was killed may be the broker that the page stops now.
            tour.restart_killed()
        elif language == "properties":
            tour.write_configuration(text)
        else:
            for line in text.splitlines():
                tour.run(line)
    assert tour.outputs["/"].startswith("[admin, brokers, cluster, config, controller")
    assert '"isr":' in tour.outputs["/brokers/topics/orders/partitions/0/state"]
    tour.run("ottla consume orders --count 3 --quiet")
    assert sorted(tour.outputs["--quiet"].split()) == ["one", "three", "two"]
