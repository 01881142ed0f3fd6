"""Programs with all their child processes, which tests kill, and a reader of committed records."""

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import confluent_kafka
import psutil
from pyspark.find_spark_home import _find_spark_home

from ottla.streams.settings.java import find_java_home

ROOT = str(Path(__file__).parents[2])
PATIENCE_S = 240.0
_EXECUTOR = "CoarseGrainedExecutorBackend"
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = re.compile("Successfully registered with master")
_PAUSE = threading.Event()

Seen = Counter[tuple[bytes | None, bytes | None]]


def dice() -> random.Random:
    """Return a random generator with a printed seed; OTTLA_SEED repeats a run."""
    seed = int(os.environ.get("OTTLA_SEED") or random.SystemRandom().getrandbits(32))
    print(f"OTTLA_SEED={seed}")
    return random.Random(seed)


def wait_until(ask: Callable[[], Any], detail: Callable[[], str] = str) -> Any:
    """Wait until `ask` returns a true value, and return it; `detail` is added to the failure."""
    deadline = time.monotonic() + PATIENCE_S
    while not (response := ask()):
        assert time.monotonic() < deadline, detail()
        _PAUSE.wait(0.05)
    return response


class Program:
    """A program with all its children, such as a driver's JVM and Python's planners and workers."""

    def __init__(
        self, words: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._words = words
        self._log = log
        self._environment = {**os.environ, "PYTHONPATH": ROOT, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Program":
        """Start the program."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Kill the program."""
        self.kill()

    def start(self) -> None:
        """Start the program; its output goes to a file."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._words, stdout=log, stderr=log, cwd=ROOT, env=self._environment
            )

    @property
    def is_alive(self) -> bool:
        """Return whether the program runs."""
        return self._process is not None and self._process.poll() is None

    def wait(self) -> int:
        """Wait for the end of the program; return its exit code."""
        assert self._process is not None
        return self._process.wait(PATIENCE_S)

    def below(self) -> list[psutil.Process]:
        """Return all descendants."""
        assert self._process is not None
        process: list[psutil.Process] = psutil.Process(self._process.pid).children(recursive=True)
        return process

    def kill(self) -> None:
        """Kill the program and all descendants, as in a power loss; idempotent."""
        if self._process is not None and self.is_alive:
            kill_all(psutil.Process(self._process.pid))
            self._process.wait()

    def pause(self) -> None:
        """Pause all processes, as on a suspended machine."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume all processes."""
        self._send(signal.SIGCONT)

    def _send(self, number: int) -> None:
        assert self._process is not None
        for each in (psutil.Process(self._process.pid), *self.below()):
            _send(each, number)

    def text(self) -> str:
        """Return the output of the program."""
        return self._log.read_text()


def driver(module: str, log: Path, *words: str) -> Program:
    """Return a program of this folder; its temporary files are in the folder of its log."""
    own = {"TMPDIR": str(log.parent), "SPARK_LOCAL_DIRS": str(log.parent)}
    return Program([sys.executable, "-m", f"tests.spark.{module}", *words], log, own)


def kill_all(process: psutil.Process) -> None:
    """Kill a process and all descendants, parents first, so that none reacts to a child's death."""
    try:
        processes = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for child in processes:
        _send(child, signal.SIGKILL)


def _send(process: psutil.Process, number: int) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(number)


def workers(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    """Return Python's processes below JVMs: planners, daemons and their workers."""
    return [process for process in processes if "python" in _or_empty(process.name)]


def executors(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    """Return the JVMs of executors."""
    return [process for process in processes if _EXECUTOR in " ".join(_or_empty(process.cmdline))]


def _or_empty(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except psutil.Error:
        return ""


@contextmanager
def local_cluster_url() -> Iterator[str]:
    """Yield the URL of a cluster that Spark starts with the driver; remove its executors' files."""
    work = Path(_find_spark_home()) / "work"
    before = set(work.glob("app-*"))
    try:
        yield "local-cluster[2,1,1024]"
    finally:
        for path in set(work.glob("app-*")) - before:
            shutil.rmtree(path, ignore_errors=True)


class StandaloneCluster:
    """Spark's own master and two workers with one core each, started from pip's pyspark."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.programs: list[Program] = []
        self.url = ""

    def __enter__(self) -> "StandaloneCluster":
        """Start the processes and wait until both workers are registered."""
        (self.url,) = self._await(self._start("master", *_address("master.Master")), _MASTER)
        arguments = (*_address("worker.Worker"), "--cores", "1", "--memory", "1024m", self.url)
        started = [
            self._start(name, *arguments, "--work-dir", str(self._folder / name))
            for name in ("one", "two")
        ]
        for program in started:
            self._await(program, _REGISTERED)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Kill all processes."""
        for program in self.programs:
            program.kill()

    def _start(self, name: str, *words: str) -> Program:
        environment = {
            "JAVA_HOME": find_java_home(),
            "SPARK_HOME": _find_spark_home(),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            # The executors can import only the packages that they receive.
            "PYTHONPATH": "",
        }
        command = [str(Path(_find_spark_home()) / "bin" / "spark-class"), *words]
        self.programs.append(Program(command, self._folder / f"{name}.txt", environment))
        self.programs[-1].start()
        return self.programs[-1]

    def _await(self, program: Program, line: re.Pattern[str]) -> tuple[str, ...]:
        result: re.Match[str] = wait_until(lambda: line.search(program.text()), program.text)
        return result.groups()


def _address(name: str) -> tuple[str, ...]:
    ports = ("--port", "0", "--webui-port", "0")
    return f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", *ports


class Reader:
    """Read committed records of a topic from its beginning, and count each of them."""

    def __init__(self, consumer: confluent_kafka.Consumer, partitions: int) -> None:
        self.seen: Seen = Counter()
        self._consumer = consumer
        self._open = set(range(partitions))

    def read(self, timeout_s: float) -> None:
        """Read the records that arrive within a timeout in seconds; a backlog needs less."""
        for message in self._consumer.consume(10_000, timeout_s):
            error = message.error()
            if error is not None:
                assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error
                self._open.discard(message.partition())
                continue
            self.seen[message.key(), message.value()] += 1

    def read_until(self, count: int, detail: Callable[[], str]) -> None:
        """Read until there are the given number of different records."""
        deadline = time.monotonic() + PATIENCE_S
        while len(self.seen) < count:
            assert time.monotonic() < deadline, f"{len(self.seen)} of {count}: {detail()[-4000:]}"
            self.read(0.05)

    def read_to_end(self) -> Seen:
        """Read until each partition has been read to its end once."""
        deadline = time.monotonic() + PATIENCE_S
        while self._open:
            assert time.monotonic() < deadline, f"partitions {self._open} do not end"
            self.read(0.1)
        return self.seen


@contextmanager
def reading(bootstrap: str, topic: str, partitions: int) -> Iterator[Reader]:
    """Yield a reader of a topic."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "counting",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    topic_partitions = [confluent_kafka.TopicPartition(topic, n, 0) for n in range(partitions)]
    consumer.assign(topic_partitions)
    try:
        yield Reader(consumer, partitions)
    finally:
        consumer.close()


def committed(bootstrap: str, topic: str, partitions: int) -> Seen:
    """Return the count of each committed record in a topic."""
    with reading(bootstrap, topic, partitions) as reader:
        return reader.read_to_end()
