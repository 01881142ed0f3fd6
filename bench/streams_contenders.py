"""The contenders of `bench.streams` as processes: start, run a topology, pause, measure, stop."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import psutil

from bench.streams_orders import Order, spelled
from bench.streams_topologies import TOPOLOGIES, WITHOUT_STATE
from tests.compat import java

KAFKA_STREAMS = "4.3.0"
QUIX = "3.28.1"
# Spark 4.3's own connector is not in the registry; these versions work together.
CONNECTOR = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
_ROOT = Path(__file__).parent.parent
_FETCH = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=libs"]
_ALONE = (
    "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version><exclusions>"
    "<exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>"
)
_POM = (
    "<project><modelVersion>4.0.0</modelVersion><groupId>ottla</groupId><artifactId>jars</artifactId>"
    "<version>1</version><dependencies>{}</dependencies></project>"
)


def connector_jars() -> str:
    """Return the jars of Spark's Kafka connector, with commas between; Maven fetches them once."""
    target = java.cache() / "spark-connector-4.2.0"
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            rows = [_ALONE.format(*map(escape, each.split(":"))) for each in CONNECTOR]
            Path(folder, "pom.xml").write_text(_POM.format("".join(rows)))
            subprocess.run(_FETCH, cwd=folder, check=True)
            Path(folder, "libs").rename(target)
    return ",".join(sorted(map(str, target.glob("*.jar"))))


def quix_python() -> str:
    """Return a Python with Quix Streams, in a virtual environment that is created once."""
    target = java.cache() / f"quix-{QUIX}"
    python = target / "bin" / "python"
    if not python.is_file():
        subprocess.run([sys.executable, "-m", "venv", str(target)], check=True)
        install = [str(python), "-m", "pip", "install", "-q", f"quixstreams=={QUIX}"]
        subprocess.run(install, check=True)
    return str(python)


class Contender(ABC):
    """A contender; between `start` and `stop` it runs one topology."""

    topologies: Sequence[str] = tuple(TOPOLOGIES)
    answers = False
    """Whether it says something that is read."""

    def __init__(self, name: str, bootstrap: str, cores: int) -> None:
        self.name = name
        self.bootstrap = bootstrap
        self.cores = cores
        self.folder = Path(tempfile.mkdtemp(prefix="ottla-bench-streams-"))
        self.processes: list[subprocess.Popen[bytes]] = []
        self.begun = 0.0
        """When its processes were started; seconds since the epoch."""

    def share(self, topology: str, keys: int) -> float:
        """Return the fraction of the input that it reads: slow contenders need not read all of it."""
        return 1.0

    def emits_every_update(self, topology: str) -> bool:
        """Return True if it emits a result for every record of a stateful topology."""
        return True

    @abstractmethod
    def start(self, order: Order) -> None:
        """Start a topology."""

    @abstractmethod
    def stop(self) -> None:
        """Stop the topology."""

    def spawn(self, command: Sequence[str]) -> None:
        """Start a process."""
        if not self.processes:
            self.begun = time.time()
        with (self.folder / "log").open("ab") as log:
            out = subprocess.PIPE if self.answers else log
            self.processes.append(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=log, cwd=_ROOT)
            )

    def end(self) -> None:
        """End the processes and remove their output."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self) -> None:
        """Terminate the processes; kill those that do not end."""
        tree = self.tree()
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(15)
        for each in tree:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        for process in self.processes:
            process.wait()
        self.processes.clear()

    def check(self) -> None:
        """Raise RuntimeError if a process has ended."""
        for process in self.processes:
            if process.poll() is not None:
                raise RuntimeError(f"{self.name} ended: {self.log()}")

    def log(self) -> str:
        """Return the end of its log."""
        return (self.folder / "log").read_text(errors="replace")[-1500:]

    def tree(self) -> list[psutil.Process]:
        """Return its processes and all of their descendants."""
        result: list[psutil.Process] = []
        for process in self.processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                root = psutil.Process(process.pid)
                result += [root, *root.children(recursive=True)]
        return result

    def cpu_seconds(self) -> float:
        """Return the CPU time of its processes so far."""
        total = 0.0
        for each in self.tree():
            with contextlib.suppress(psutil.NoSuchProcess):
                # The CPU time of ended processes is in the figures of the parent that waited for
                # them.
                total += sum(each.cpu_times()[:4])
        return total

    def memory_mb(self) -> float:
        """Return the memory of its processes; shared pages count once."""
        total = 0
        for each in self.tree():
            with contextlib.suppress(psutil.NoSuchProcess):
                total += each.memory_full_info().pss
        return total / 1e6

    @contextlib.contextmanager
    def held_still(self) -> Iterator[None]:
        """Pause all processes while the input is written."""
        held = self.tree()
        _signal(held, signal.SIGSTOP)
        try:
            yield
        finally:
            _signal(held, signal.SIGCONT)


def _signal(processes: Sequence[psutil.Process], sign: signal.Signals) -> None:
    for process in processes:
        # Spark starts programs that end immediately.
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(sign)


class Lasting(Contender):
    """A program that runs one topology after the other."""

    answers = True
    separator = ""

    def start(self, order: Order) -> None:
        """Send an order to the program."""
        if not self.processes:
            self.spawn(self.arguments())
        self._say(spelled(order, self.separator))

    @abstractmethod
    def arguments(self) -> list[str]:
        """Return the command line of the program."""

    def stop(self) -> None:
        """Let the program stop the topology."""
        self._say("")
        out = self.processes[0].stdout
        assert out is not None
        for line in iter(out.readline, b""):
            if line.strip() == b"stopped":
                return
        raise RuntimeError(f"{self.name} ended: {self.log()}")

    def kill(self) -> None:
        """Let the program end by itself; kill it if it does not."""
        for process in self.processes:
            assert process.stdin is not None
            with contextlib.suppress(OSError):
                process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(15)
        super().kill()

    def _say(self, line: str) -> None:
        target = self.processes[0].stdin
        assert target is not None
        target.write(f"{line}\n".encode())
        target.flush()


class Ottla(Lasting):
    """Ottla's topologies on Spark."""

    def arguments(self) -> list[str]:
        """Return the command line."""
        command = ["-m", "bench.streams_ours", "--bootstrap", self.bootstrap]
        return [sys.executable, *command, "--cores", str(self.cores)]


class PySpark(Lasting):
    """Hand-written queries."""

    def emits_every_update(self, topology: str) -> bool:
        """Return True if it emits every update."""
        return topology not in ("count", "windowed_count")

    def share(self, topology: str, keys: int) -> float:
        """Return the fraction of the input that it reads."""
        return 0.2 if topology == "processor" and keys > 10_000 else 1.0

    def arguments(self) -> list[str]:
        """Return the command line."""
        command = ["-m", "bench.streams_pyspark", "--bootstrap", self.bootstrap]
        command += ["--jars", connector_jars(), "--cores", str(self.cores)]
        return [sys.executable, *command]


class CallARecord(PySpark):
    """A query that calls Spark's state for each record."""

    topologies = ("count", "processor")

    def emits_every_update(self, topology: str) -> bool:
        """Return True if it emits every update."""
        return True

    def share(self, topology: str, keys: int) -> float:
        """Return the fraction of the input that it reads."""
        return 0.03

    def arguments(self) -> list[str]:
        """Return the command line."""
        return [*super().arguments(), "--call-a-record"]


class KafkaStreams(Lasting):
    """Kafka Streams in Java, a thread per core."""

    separator = "\t"

    def arguments(self) -> list[str]:
        """Return the command line."""
        folder = java.jars(
            f"org.apache.kafka:kafka-streams:{KAFKA_STREAMS}", "org.slf4j:slf4j-simple:1.7.36"
        )
        path = f"{folder}{os.pathsep}{folder}/*"
        classes = java.compiled(_ROOT / "bench" / "StreamsPeer.java", path)
        command = (self.bootstrap, str(self.cores), str(self.folder))
        return java.command(f"{classes}{os.pathsep}{path}", "StreamsPeer", *command, heap_mb=1024)


class Quix(Contender):
    """Quix Streams, a process per core."""

    def share(self, topology: str, keys: int) -> float:
        """Return the fraction of the input that it reads."""
        return 0.5 if topology in WITHOUT_STATE else 0.25

    def start(self, order: Order) -> None:
        """Start the processes."""
        python, program = quix_python(), str(_ROOT / "bench" / "streams_quix.py")
        for number in range(self.cores):
            folder = str(self.folder / f"{order.application}-{number}")
            topics = (order.source, order.table, order.sink)
            arguments = (self.bootstrap, order.topology, order.application, *topics, folder)
            self.spawn([python, "-I", program, *arguments])

    def stop(self) -> None:
        """End the processes."""
        self.kill()


CONTENDERS: dict[str, type[Contender]] = {
    "ottla": Ottla,
    "pyspark": PySpark,
    "a call a record": CallARecord,
    "quix": Quix,
    "kafka streams": KafkaStreams,
}
