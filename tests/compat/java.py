"""Java programs of other projects: fetched once with Maven, started here, with little logging.

`kafka_class_path` and `client_class_path` fetch at the first use (about 60 MB and 10 s for all of
Kafka) into `$OTTLA_JARS`, or `~/.cache/ottla/maven`. Tests that need them have the marker
`needs("java")`.
"""

import atexit
import contextlib
import functools
import hashlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from ottla.testing.cluster import Cluster
from tests.compat.java_tools.server import SOURCE, Result, ToolServer, server_of

KAFKA = "3.9.2"
TOOLS = "org.apache.kafka.tools"
_LOGGING = (
    "log4j.rootLogger=WARN, C\n"
    "log4j.appender.C=org.apache.log4j.ConsoleAppender\n"
    "log4j.appender.C.layout=org.apache.log4j.SimpleLayout\n"
)
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>ottla</groupId><artifactId>jars</artifactId><version>1</version>
<dependencies>{}</dependencies></project>
"""
_DEPENDENCY = (
    "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
)
_KAFKA_START_SECONDS = 60
# These programs leave threads that run until the JVM ends.
_ALONE = ("VerifiableProducer", "VerifiableConsumer", "ConsoleConsumer")
# These programs end before Java's optimizing compiler pays off.
SHORT = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_NO_CDS_LOGS = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


# The versions of clients and tools with which a test runs. Both send nearly the same requests: the
# test fails for the same faults with the newer one, which is the one of `make test`.
VERSIONS = ("4.3.0", pytest.param(KAFKA, marks=pytest.mark.nightly("[4.3.0]")))


def cache() -> Path:
    """Return the folder of the artifacts that Maven fetched."""
    return Path(os.environ.get("OTTLA_JARS") or Path.home() / ".cache" / "ottla" / "maven")


@functools.cache
def jars(*coordinates: str) -> Path:
    """Fetch artifacts (`group:artifact:version`) with their dependencies; return their folder."""
    name = hashlib.sha256(" ".join(coordinates).encode()).hexdigest()[:16]
    target = cache() / f"{coordinates[0].split(':')[1]}-{name}"
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        rows = [
            _DEPENDENCY.format(*map(escape, coordinate.split(":"))) for coordinate in coordinates
        ]
        Path(folder, "pom.xml").write_text(_POM.format("".join(rows)))
        done = subprocess.run(
            ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=libs"],
            cwd=folder,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        try:
            # Renamed in one step, so that an interrupted or concurrent fetch leaves no incomplete
            # folder.
            Path(folder, "libs").rename(target)
        except OSError:
            assert target.is_dir()
    return target


def kafka_jars(version: str = KAFKA) -> Path:
    """Return the folder of the jars of a whole Apache Kafka: broker and tools."""
    return jars(*_kafka_artifacts(version))


def kafka_class_path(version: str = KAFKA) -> str:
    """Return the class path of a whole Apache Kafka with the tool server."""
    return _class_path(*_kafka_artifacts(version))


def _kafka_artifacts(version: str) -> tuple[str, ...]:
    return (
        f"org.apache.kafka:kafka_2.13:{version}",
        f"org.apache.kafka:kafka-tools:{version}",
        "org.slf4j:slf4j-reload4j:1.7.36",
    )


def client_class_path(version: str) -> str:
    """Return the class path of the Java client alone, with the performance tools."""
    return _class_path(
        f"org.apache.kafka:kafka-clients:{version}",
        f"org.apache.kafka:kafka-tools:{version}",
        "org.slf4j:slf4j-reload4j:1.7.36",
    )


def _class_path(*coordinates: str) -> str:
    # The tool server is first: its jar has the logging configuration. Java archives no classes of a
    # class path with folders.
    others = f"{jars(*coordinates)}/*"
    return f"{compiled(SOURCE, others)}{os.pathsep}{others}"


def compiled(source: Path, class_path: str) -> Path:
    """Compile a source file, once for each content and class path; return the jar of its classes.

    The jar has the logging configuration, too.
    """
    content = source.read_bytes() + class_path.encode() + _LOGGING.encode()
    target = cache() / f"{source.stem}-{hashlib.sha256(content).hexdigest()[:16]}.jar"
    if not target.is_file():
        with tempfile.TemporaryDirectory(dir=cache()) as folder:
            arguments = ["javac", "-cp", class_path, "-d", f"{folder}/classes", str(source)]
            done = subprocess.run(arguments, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
            with zipfile.ZipFile(f"{folder}/jar", "w") as jar:
                jar.writestr("log4j.properties", _LOGGING)
                for path in Path(folder, "classes").iterdir():
                    jar.write(path, path.name)
            # An archive of classes has the time of the jar, so the first one is kept.
            with contextlib.suppress(FileExistsError):
                os.link(f"{folder}/jar", target)
    return target


def command(class_path: str, main_class: str, *arguments: str, heap_mb: int = 256) -> list[str]:
    """Return the command line of a Java program."""
    program, *words = plain_command(class_path, main_class, *arguments, heap_mb=heap_mb)
    return [program, *archive_options("tools", class_path, _run_tools), *words]


def plain_command(
    class_path: str, main_class: str, *arguments: str, heap_mb: int = 256
) -> list[str]:
    """Return the command line of a Java program without an archive of classes."""
    return ["java", *SHORT, f"-Xmx{heap_mb}m", "-cp", class_path, main_class, *arguments]


def tool(
    class_path: str, main_class: str, *arguments: str, java_options: tuple[str, ...] = ()
) -> Result:
    """Run one of Kafka's command-line tools, in the JVM that most tools share.

    Tools with the same options of Java share a JVM.
    """
    if main_class.rpartition(".")[2] in _ALONE:
        done = subprocess.run(
            command(class_path, main_class, *arguments), capture_output=True, text=True, timeout=100
        )
        return Result(done.returncode, done.stdout, done.stderr)
    key = (class_path, *java_options)
    server = server_of(key, lambda: _tool_server(class_path, java_options))
    return server.run(main_class, *arguments)


def _tool_server(class_path: str, java_options: tuple[str, ...]) -> ToolServer:
    program, *words = command(class_path, SOURCE.stem)
    return ToolServer([program, *java_options, *words])


def run(class_path: str, main_class: str, *arguments: str) -> str:
    """Run one of Kafka's tools and return its output; it must succeed."""
    done = tool(class_path, main_class, *arguments)
    assert done.code == 0, done.output[-2000:] + done.errors[-2000:]
    return done.output


def free_ports(count: int) -> list[int]:
    """Return ports that are free at the moment."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


# Runs programs of a class path once, in a folder, with these options of Java, until they end.
Training = Callable[[str, Path, tuple[str, ...]], None]


def archive_options(kind: str, class_path: str, train: Training) -> tuple[str, ...]:
    """Return Java's options for a start with an archive of the classes of a class path's jars.

    The archive of each kind is written once, with the classes that `train` loads. Java maps it
    instead of reading and verifying the classes (JEP 350), which takes three fifths of a broker's
    processor time, and two fifths of a tool's. It ignores an archive of another Java or of other
    jars.
    """
    first, others, *_ = [*class_path.split(os.pathsep), ""]
    if not first.endswith(".jar") or not others.endswith("/*"):
        return ()
    return _archive_options(kind, f"{first}{os.pathsep}{others}", train)


@functools.cache
def _archive_options(kind: str, class_path: str, train: Training) -> tuple[str, ...]:
    java = os.path.realpath(shutil.which("java") or "java")
    name = hashlib.sha256(f"{java} {class_path}".encode()).hexdigest()[:16]
    archive = cache() / f"{kind}-{name}.jsa"
    if not archive.is_file():
        with tempfile.TemporaryDirectory(dir=cache()) as temporary:
            written = Path(temporary, "classes.jsa")
            options = (f"-XX:ArchiveClassesAtExit={written}", *_NO_CDS_LOGS)
            train(class_path, Path(temporary, "folder"), options)
            if not written.is_file():
                return ()
            written.replace(archive)
    return (f"-XX:SharedArchiveFile={archive}", *_NO_CDS_LOGS)


def _run_a_broker(class_path: str, folder: Path, java_options: tuple[str, ...]) -> None:
    node = KafkaNode(folder)
    node.class_path = class_path
    node.start_with(*java_options)
    node.stop()


def _run_tools(class_path: str, _folder: Path, java_options: tuple[str, ...]) -> None:
    """Load the classes of the clients and of the usual tools; some are missing without a broker."""
    program, *words = plain_command(class_path, SOURCE.stem)
    server = ToolServer([program, *java_options, *words])
    with Cluster() as cluster:
        to_cluster = ("--bootstrap-server", cluster.bootstrap)
        records = ("--topic", "t", "--num-records", "10")
        for main_class, *arguments in (
            (f"{TOOLS}.TopicCommand", *to_cluster, "--create", "--topic", "t"),
            (f"{TOOLS}.TopicCommand", *to_cluster, "--describe"),
            (f"{TOOLS}.consumer.group.ConsumerGroupCommand", *to_cluster, "--list"),
            ("kafka.admin.ConfigCommand", *to_cluster, "--describe", "--entity-type", "topics"),
            ("kafka.tools.StorageTool", "random-uuid"),
            (
                *(f"{TOOLS}.ProducerPerformance", *records, "--record-size", "9"),
                *(
                    "--throughput",
                    "-1",
                    "--producer-props",
                    f"bootstrap.servers={cluster.bootstrap}",
                ),
            ),
            (f"{TOOLS}.ConsumerPerformance", *to_cluster, "--topic", "t", "--messages", "10"),
        ):
            server.run(main_class, *arguments)
        server.end()


class KafkaNode:
    """An Apache Kafka broker that is its own KRaft controller, with its data below `folder`.

    `listeners` are those besides the one without security, such as `SSL://127.0.0.1:9093`.
    """

    def __init__(
        self,
        folder: Path,
        options: Sequence[str] = (),
        version: str = KAFKA,
        listeners: Sequence[str] = (),
    ) -> None:
        self.class_path = kafka_class_path(version)
        self.folder = folder
        self.data = folder / "data"
        self.port, controller = free_ports(2)
        self.controller = f"127.0.0.1:{controller}"
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.java_options: tuple[str, ...] = ()
        folder.mkdir(parents=True, exist_ok=True)
        self._properties = folder / "server.properties"
        rows = (
            "process.roles=broker,controller",
            "node.id=1",
            f"controller.quorum.voters=1@127.0.0.1:{controller}",
            "listeners="
            + ",".join(
                (f"PLAINTEXT://{self.bootstrap}", f"CONTROLLER://{self.controller}", *listeners)
            ),
            "controller.listener.names=CONTROLLER",
            f"log.dirs={self.data}",
            "offsets.topic.replication.factor=1",
            "offsets.topic.num.partitions=3",
            "transaction.state.log.replication.factor=1",
            "transaction.state.log.num.partitions=3",
            "transaction.state.log.min.isr=1",
            "group.initial.rebalance.delay.ms=0",
            *options,
        )
        self._properties.write_text("\n".join(rows) + "\n")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, the first time with an empty directory, and wait until it responds."""
        self.start_with(*archive_options("broker", self.class_path, _run_a_broker))

    def start_with(self, *java_options: str) -> None:
        """Start it with these options of Java."""
        if not self.data.exists():
            arguments = ("format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", str(self._properties))
            run(self.class_path, "kafka.tools.StorageTool", *arguments)
        java, *words = plain_command(
            self.class_path, "kafka.Kafka", str(self._properties), heap_mb=400
        )
        with (self.folder / "out").open("ab") as out:
            self._process = subprocess.Popen(
                [java, *java_options, *self.java_options, *words],
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + _KAFKA_START_SECONDS
        while not self._answers():
            assert self._process.poll() is None, (self.folder / "out").read_text()[-3000:]
            assert time.monotonic() < deadline, "Kafka did not start in time"
            self._process_wait(0.1)

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def _process_wait(self, seconds: float) -> None:
        assert self._process is not None
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return

    def stop(self) -> None:
        """Stop it cleanly."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)
            self._process = None

    def kill(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


# An Apache Kafka for all tests of a process that need these options, by version and options.
_SHARED: dict[tuple[str, ...], KafkaNode] = {}
# With share groups, and without a wait for more members of a streams group.
GROUPS_OF_ALL_TYPES = (
    "share.coordinator.state.topic.replication.factor=1",
    "share.coordinator.state.topic.min.isr=1",
    "group.streams.initial.rebalance.delay.ms=0",
)


def shared_node(version: str, options: tuple[str, ...] = ()) -> KafkaNode:
    """Return a broker that runs until this process ends; start it at the first use.

    Its users have topics and groups of their own, and neither stop it nor change its options.
    """
    key = (version, *options)
    if key not in _SHARED:
        folder = Path(tempfile.mkdtemp(prefix="kafka-"))
        node = KafkaNode(folder, options, version)
        node.start()
        _SHARED[key] = node
    return _SHARED[key]


@atexit.register
def _kill_shared() -> None:
    for node in _SHARED.values():
        node.kill()
        shutil.rmtree(node.folder, ignore_errors=True)
