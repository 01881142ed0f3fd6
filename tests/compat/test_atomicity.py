"""Read, process, write: each input has exactly one output, whatever is killed at any step.

The programs are `read_process_write.py` with librdkafka and `ReadProcessWrite.java`; the broker is
a separate process.
"""

import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing.process import BrokerProcess
from tests.compat import java
from tests.compat.reading import Reachable, everything

pytestmark = [pytest.mark.compat, pytest.mark.slow]

HERE = Path(__file__).parent
COUNT = 120
# A step includes the time-outs of the client, and a new producer after an error.
PATIENCE_S = 60.0
STEPS = ("begun", "produced", "offsets", "committing", "committed")
# The first words of the lines that a program prints by itself; the others are its client's log.
_FIRST_WORDS = [[word] for word in (*STEPS, "failed", "done")]
OPTIONS = {"transaction.state.log.num.partitions": "3", "offsets.topic.num.partitions": "3"}


def command(client: str) -> list[str]:
    """Return the command line of the program."""
    if client == "librdkafka":
        return [sys.executable, str(HERE / "read_process_write.py")]
    class_path = java.client_class_path(client)
    program = java.compiled(HERE / "ReadProcessWrite.java", class_path)
    return java.command(f"{class_path}:{program}", "ReadProcessWrite")


class Running:
    """The running program of a command line, which prints the steps that it has reached."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.steps: list[str] = []
        # Its lines, and an empty text at its end.
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def wait_for(self, step: str) -> None:
        """Read its output until it has reached a step."""
        while not self.steps or self.steps[-1] != step:
            self.wait_for_any()

    def wait_for_any(self) -> None:
        """Read its next step.

        The Java client's log is in the same output. A line that `go_on` sent for a line of the log
        would let the program pass a later step without a wait.
        """
        while True:
            try:
                line = self._lines.get(timeout=PATIENCE_S)
            except queue.Empty:
                message = f"no step in {PATIENCE_S:g} s after {self.steps}"
                raise AssertionError(message) from None
            assert line, f"it ended after {self.steps}"
            if line.split(maxsplit=1)[:1] in _FIRST_WORDS:
                self.steps.append(line.rstrip("\n"))
                return

    def reach(self, step: str) -> None:
        """Let a program that waits at every step take those before the next such one."""
        while True:
            self.wait_for_any()
            if self.steps[-1] == step:
                return
            self.go_on()

    def go_on(self) -> None:
        """Let it take the next step."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        self.steps.append("")

    def kill(self) -> None:
        """Kill it, as a crash would."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


@contextmanager
def running(client: str, broker: Reachable, pause: str) -> Iterator[Running]:
    """Run the program; kill it at the end of the block.

    `pause` is the step at which it waits, or `every`.
    """
    program = Running([*command(client), broker.bootstrap, str(COUNT), pause])
    try:
        yield program
    finally:
        program.kill()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """Return a broker with inputs 0, 1, 2… in two partitions."""
    with BrokerProcess(tmp_path / "data", options=OPTIONS) as process:
        admin = AdminClient({"bootstrap.servers": process.bootstrap})
        topics = [NewTopic("in", 2, 1), NewTopic("out", 3, 1)]
        for created in admin.create_topics(topics).values():
            created.result(30)
        producer = Producer({"bootstrap.servers": process.bootstrap})
        for number in range(COUNT):
            producer.produce("in", str(number), partition=number % 2)
        assert producer.flush(30) == 0
        yield process


# A consumer with `read_committed` must find each input once.
RESULTS = sorted(f"did {number}" for number in range(COUNT))


def was_repeated(broker: BrokerProcess) -> bool:
    """Return True if a value was written twice, which proves that duplicates were aborted."""
    return len(everything(broker, "out", "read_uncommitted")) > COUNT


CLIENTS = [
    "librdkafka",
    pytest.param("4.3.0", marks=pytest.mark.needs("java")),
    pytest.param("3.9.2", marks=[pytest.mark.needs("java"), pytest.mark.nightly("[4.3.0]")]),
]


@pytest.mark.parametrize("client", CLIENTS)
def test_program_is_killed_at_every_step(broker: BrokerProcess, client: str) -> None:
    """A restarted program aborts or repeats the last transaction, and each input has one output."""
    for step in STEPS:
        with running(client, broker, step) as program:
            program.wait_for(step)
            program.go_on()
            program.wait_for(step)
            if step == "committing":
                # The program is killed while it waits for the response, or a moment before or
                # after.
                program.go_on()
    with running(client, broker, "") as program:
        program.wait_for("done")
    assert sorted(everything(broker, "out")) == RESULTS
    assert was_repeated(broker)


@pytest.mark.parametrize("client", CLIENTS)
def test_broker_is_killed_at_every_step(broker: BrokerProcess, client: str) -> None:
    """The program recovers by itself when the broker restarts, also from several restarts."""
    with running(client, broker, "every") as program:
        for step in STEPS:
            program.reach(step)
            if step == "committing":
                program.go_on()
            broker.kill()
            broker.start()
            if step != "committing":
                program.go_on()
            program.reach(step)
            program.go_on()
        program.reach("produced")
    with running(client, broker, "") as program:
        program.wait_for("done")
    assert sorted(everything(broker, "out")) == RESULTS
    assert was_repeated(broker)
