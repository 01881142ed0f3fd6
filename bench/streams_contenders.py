"""The contenders of `bench.streams` as processes: started, told what to run, held still, measured, stopped."""

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
# Spark 4.3's own is not in the registry; these work with it together.
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
    """Return a Python with Quix Streams, in an environment of its own that is made once."""
    target = java.cache() / f"quix-{QUIX}"
    python = target / "bin" / "python"
    if not python.is_file():
        subprocess.run([sys.executable, "-m", "venv", str(target)], check=True)
        install = [str(python), "-m", "pip", "install", "-q", f"quixstreams=={QUIX}"]
        subprocess.run(install, check=True)
    return str(python)


class Contender(ABC):
    """One contender; between `start` and `stop` it runs one topology."""

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
        """Return which part of the input it takes: the slow ones need not take all of it."""
        return 1.0

    def is_told_of_all(self, topology: str) -> bool:
        """Tell whether every record of a topology with state gives one."""
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
        """End the processes and forget what they wrote."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self) -> None:
        """End the processes; those that do not want to are killed."""
        tree = self.tree()
        for each in self.processes:
            each.terminate()
        for each in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                each.wait(15)
        for each in tree:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        for each in self.processes:
            each.wait()
        self.processes.clear()

    def check(self) -> None:
        """Raise RuntimeError if a process has ended."""
        for each in self.processes:
            if each.poll() is not None:
                raise RuntimeError(f"{self.name} ended: {self.log()}")

    def log(self) -> str:
        """Return the end of what it said."""
        return (self.folder / "log").read_text(errors="replace")[-1500:]

    def tree(self) -> list[psutil.Process]:
        """Return its processes and all below them."""
        found: list[psutil.Process] = []
        for each in self.processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                root = psutil.Process(each.pid)
                found += [root, *root.children(recursive=True)]
        return found

    def cpu_seconds(self) -> float:
        """Return what its processes have used so far."""
        total = 0.0
        for each in self.tree():
            with contextlib.suppress(psutil.NoSuchProcess):
                # Those that ended are in the figures of who waited for them.
                total += sum(each.cpu_times()[:4])
        return total

    def memory_mb(self) -> float:
        """Return what its processes hold; pages that they share count once."""
        total = 0
        for each in self.tree():
            with contextlib.suppress(psutil.NoSuchProcess):
                total += each.memory_full_info().pss
        return total / 1e6

    @contextlib.contextmanager
    def held_still(self) -> Iterator[None]:
        """Hold all processes, as long as the input is written."""
        held = self.tree()
        _signal(held, signal.SIGSTOP)
        try:
            yield
        finally:
            _signal(held, signal.SIGCONT)


def _signal(processes: Sequence[psutil.Process], sign: signal.Signals) -> None:
    for each in processes:
        # Spark starts programs that are over at once.
        with contextlib.suppress(psutil.NoSuchProcess):
            each.send_signal(sign)


class Lasting(Contender):
    """A program that takes one topology after the other."""

    answers = True
    separator = ""

    def start(self, order: Order) -> None:
        """Say what to run."""
        if not self.processes:
            self.spawn(self.arguments())
        self._say(spelled(order, self.separator))

    @abstractmethod
    def arguments(self) -> list[str]:
        """Return the command line of the program."""

    def stop(self) -> None:
        """Say that it is enough."""
        self._say("")
        out = self.processes[0].stdout
        assert out is not None
        for line in iter(out.readline, b""):
            if line.strip() == b"stopped":
                return
        raise RuntimeError(f"{self.name} ended: {self.log()}")

    def kill(self) -> None:
        """Let the program end by itself; where it does not, kill it."""
        for each in self.processes:
            assert each.stdin is not None
            with contextlib.suppress(OSError):
                each.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                each.wait(15)
        super().kill()

    def _say(self, line: str) -> None:
        target = self.processes[0].stdin
        assert target is not None
        target.write(f"{line}\n".encode())
        target.flush()


class Ottla(Lasting):
    """Topologies of ours on Spark."""

    def arguments(self) -> list[str]:
        """Return the command line."""
        words = ["-m", "bench.streams_ours", "--bootstrap", self.bootstrap]
        return [sys.executable, *words, "--cores", str(self.cores)]


class PySpark(Lasting):
    """Queries by hand."""

    def is_told_of_all(self, topology: str) -> bool:
        """Tell whether it writes every update."""
        return topology not in ("count", "windowed_count")

    def share(self, topology: str, keys: int) -> float:
        """Return which part of the input it takes."""
        return 0.2 if topology == "processor" and keys > 10_000 else 1.0

    def arguments(self) -> list[str]:
        """Return the command line."""
        words = ["-m", "bench.streams_pyspark", "--bootstrap", self.bootstrap]
        words += ["--jars", connector_jars(), "--cores", str(self.cores)]
        return [sys.executable, *words]


class CallARecord(PySpark):
    """A call of Spark's state for each record."""

    topologies = ("count", "processor")

    def is_told_of_all(self, topology: str) -> bool:
        """Tell whether it writes every update."""
        return True

    def share(self, topology: str, keys: int) -> float:
        """Return which part of the input it takes."""
        return 0.03

    def arguments(self) -> list[str]:
        """Return the command line."""
        return [*super().arguments(), "--call-a-record"]


class KafkaStreams(Lasting):
    """Kafka Streams in Java, a thread a core."""

    separator = "\t"

    def arguments(self) -> list[str]:
        """Return the command line."""
        folder = java.jars(
            f"org.apache.kafka:kafka-streams:{KAFKA_STREAMS}", "org.slf4j:slf4j-simple:1.7.36"
        )
        path = f"{folder}{os.pathsep}{folder}/*"
        classes = java.compiled(_ROOT / "bench" / "StreamsPeer.java", path)
        words = (self.bootstrap, str(self.cores), str(self.folder))
        return java.command(f"{classes}{os.pathsep}{path}", "StreamsPeer", *words, heap_mb=1024)


class Quix(Contender):
    """Quix Streams, a process a core."""

    def share(self, topology: str, keys: int) -> float:
        """Return which part of the input it takes."""
        return 0.5 if topology in WITHOUT_STATE else 0.25

    def start(self, order: Order) -> None:
        """Start the processes."""
        python, program = quix_python(), str(_ROOT / "bench" / "streams_quix.py")
        for number in range(self.cores):
            folder = str(self.folder / f"{order.application}-{number}")
            topics = (order.source, order.table, order.sink)
            words = (self.bootstrap, order.topology, order.application, *topics, folder)
            self.spawn([python, "-I", program, *words])

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
