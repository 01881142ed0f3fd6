"""Starts the servers in separate processes and reads their CPU time and memory from /proc."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from ottla.base.errors import ErrorCode
from ottla.wire import headers
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.wire.records.records import Record, encode_batch
from tests.compat import java

T = TypeVar("T")
_PATIENCE_S = 30.0
_CPU_CLOCK = 2
KAFKA_VERSION = "4.3.0"
# The prepared records are years old: the next check of the retention would delete them.
_SETTINGS = {"log.retention.ms": "-1"}
_PROTOCOLS = "listener.security.protocol.map"
_LOG4J = """log4j.rootLogger=WARN, C
log4j.appender.C=org.apache.log4j.ConsoleAppender
log4j.appender.C.layout=org.apache.log4j.SimpleLayout
"""


def free_port() -> int:
    """Return a port that is free at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def receive_exactly(connection: socket.socket, size: int) -> bytearray:
    """Return the next `size` bytes; OSError if the peer closes the connection earlier."""
    body = bytearray(size)
    view, done = memoryview(body), 0
    while done < size:
        count = connection.recv_into(view[done:])
        if not count:
            raise ConnectionResetError("closed within an answer")
        done += count
    return body


def ask(port: int, request: Any, response: type[T], version: int) -> T:
    """Send one request on a new connection and return the response; OSError if the connection
    breaks, or if a read takes half a minute: a busy machine needs seconds for the largest requests.
    """
    body = headers.encode_request(request, version, 1, "bench")
    with socket.create_connection(("127.0.0.1", port), _PATIENCE_S) as connection:
        connection.sendall(len(body).to_bytes(4, "big") + body)
        size = int.from_bytes(receive_exactly(connection, 4), "big")
        return headers.decode_response(response, version, receive_exactly(connection, size))[1]


def produce_until_acknowledged(port: int, topic: str) -> None:
    """Have a topic created by requesting its metadata, and produce one record until it is
    acknowledged.
    """
    batch = bytes(encode_batch([Record(None, b"first", (), 1_700_000_000_000)]))
    partition = PartitionProduceData(index=0, records=batch)
    request = ProduceRequest(
        acks=1,
        timeout_ms=5000,
        topic_data=[TopicProduceData(name=topic, partition_data=[partition])],
    )
    metadata_request = MetadataRequest(
        topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=True
    )
    while True:
        ask(port, metadata_request, MetadataResponse, 4)
        response = ask(port, request, ProduceResponse, 9)
        if response.responses[0].partition_responses[0].error_code == 0:
            return
        time.sleep(0.005)


def produce_to_all(port: int, topic: str, count: int) -> None:
    """Produce one record to each partition of a new topic, again until all are acknowledged."""
    batch = bytes(encode_batch([Record(None, b"first", (), int(time.time() * 1000))]))
    missing = set(range(count))
    while missing:
        partitions = [PartitionProduceData(index=index, records=batch) for index in missing]
        data = [TopicProduceData(name=topic, partition_data=partitions)]
        request = ProduceRequest(acks=1, timeout_ms=5000, topic_data=data)
        response = ask(port, request, ProduceResponse, 9)
        for partition in response.responses[0].partition_responses:
            if partition.error_code == ErrorCode.NONE:
                missing.discard(partition.index)


def processor_seconds(pid: int) -> float:
    """Return user and system time of a process so far, also of its threads that have ended."""
    # clock_getcpuclockid(3): the scheduler's nanoseconds, where /proc counts hundredths of a
    # second.
    return time.clock_gettime((~pid << 3) | _CPU_CLOCK)


def _family(pid: int) -> list[int]:
    """Return a process and its running descendants."""
    family = [pid]
    for parent in family:
        for path in Path(f"/proc/{parent}/task").glob("*/children"):
            family += map(int, path.read_text().split())
    return family


class Server:
    """A running server; `started_s` is the time from its start to its first response."""

    def __init__(self, name: str, command: list[str], port: int, folder: Path) -> None:
        self.name = name
        self.port = port
        self.folder = folder
        self.bootstrap = f"127.0.0.1:{port}"
        # An installed program has its bytecode next to it.
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        begin = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            env=environment,
            stdout=(folder / "out").open("wb"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._wait_until_ready()
        self.started_s = time.perf_counter() - begin

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise SystemExit(f"{self.name} ended: {(self.folder / 'out').read_text()[-2000:]}")
            try:
                response = ask(self.port, MetadataRequest(topics=[]), MetadataResponse, 1)
            except OSError:
                time.sleep(0.005)
                continue
            if response.brokers:
                return
        raise SystemExit(f"{self.name} did not answer within a minute; see {self.folder / 'out'}")

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def cpu_seconds(self) -> float:
        """Return user and system time so far, of all threads and child processes."""
        return sum(map(processor_seconds, _family(self._process.pid)))

    def rss_mb(self) -> float:
        """Return the resident memory in MB."""
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        raise AssertionError("no VmRSS")

    def end(self, sign: signal.Signals) -> None:
        """End the process; kill it if the signal is not enough."""
        self._process.send_signal(sign)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """End the process and remove its data."""
        self.end(signal.SIGTERM)
        shutil.rmtree(self.folder, ignore_errors=True)


def start_ottla(
    options: Mapping[str, str] | None = None, data: Path | None = None, command: Path | None = None
) -> Server:
    """Start `ottla up`, on a data directory of its own if none is given.

    It listens on a free port, unless the options have `listeners`, of which the first one has no
    security. `command` is the command of another installation.
    """
    folder = Path(tempfile.mkdtemp(prefix="ottla-bench-"))
    options = {**_SETTINGS, **(options or {})}
    port = first_port(options)
    program = command or Path(sys.executable).with_name("ottla")
    arguments = [str(program), "up", "--data", str(data or folder / "data")]
    if "listeners" not in options:
        arguments += ["--port", str(port)]
    for name, value in options.items():
        arguments += ["--option", f"{name}={value}"]
    return Server("ottla", arguments, port, folder)


def first_port(options: Mapping[str, str]) -> int:
    """Return the port of the first listener; a free port if the options have no listeners."""
    if "listeners" not in options:
        return free_port()
    return int(options["listeners"].split(",")[0].rpartition(":")[2])


def start_kafka(version: str = KAFKA_VERSION, options: Mapping[str, str] | None = None) -> Server:
    """Start Apache Kafka as one KRaft node, with the heap size and garbage collector of its own
    script.

    The options are as those of `start_ottla`.
    """
    folder = Path(tempfile.mkdtemp(prefix="kafka-bench-"))
    options = {**_SETTINGS, **(options or {})}
    port, controller = first_port(options), free_port()
    (folder / "log4j.properties").write_text(_LOG4J)
    properties = folder / "server.properties"
    rows = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": f"{folder}/data",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        **options,
    }
    own = options.get("listeners", f"PLAINTEXT://127.0.0.1:{port}")
    rows["listeners"] = f"{own},CONTROLLER://127.0.0.1:{controller}"
    if _PROTOCOLS in options:
        rows[_PROTOCOLS] += ",CONTROLLER:PLAINTEXT"
    properties.write_text("".join(f"{name}={value}\n" for name, value in rows.items()))
    base = ["java", f"-Dlog4j.configuration=file:{folder}/log4j.properties", "-cp"]
    base += [f"{java.kafka_jars(version)}/*"]
    identity = ("-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", str(properties))
    format_command = [*base, "kafka.tools.StorageTool", "format", *identity]
    done = subprocess.run(format_command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"kafka {version} cannot format its storage: {done.stdout}{done.stderr}")
    heap = ["-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
    heap += ["-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"]
    command = [base[0], *heap, *base[1:], "kafka.Kafka", str(properties)]
    return Server(f"kafka {version}", command, port, folder)
