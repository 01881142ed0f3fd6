"""Starts the contenders as processes of their own and reads what they cost from /proc."""

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

from ottla.wire import headers
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse
from tests.compat import java

_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
KAFKA_VERSION = "4.3.0"
_LOG4J = """log4j.rootLogger=WARN, C
log4j.appender.C=org.apache.log4j.ConsoleAppender
log4j.appender.C.layout=org.apache.log4j.SimpleLayout
"""


def free_port() -> int:
    """Return a port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """One running contender; `started_s` is the time from its start to its first answer."""

    def __init__(self, name: str, command: list[str], port: int, folder: Path) -> None:
        self.name = name
        self.port = port
        self.folder = folder
        self.bootstrap = f"127.0.0.1:{port}"
        begin = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            stdout=(folder / "out").open("wb"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._wait_until_ready()
        self.started_s = time.perf_counter() - begin

    def _wait_until_ready(self) -> None:
        request = headers.encode_request(MetadataRequest(topics=[]), 1, 1, "bench")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise SystemExit(f"{self.name} ended: {(self.folder / 'out').read_text()[-2000:]}")
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                    connection.settimeout(5)
                    connection.sendall(len(request).to_bytes(4, "big") + request)
                    size = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
                    answer = connection.recv(size, socket.MSG_WAITALL)
                    if headers.decode_response(MetadataResponse, 1, answer)[1].brokers:
                        return
            except OSError:
                pass
            time.sleep(0.01)
        raise SystemExit(f"{self.name} did not answer within a minute; see {self.folder / 'out'}")

    def cpu_seconds(self) -> float:
        """Return user and system time so far, of all threads."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / _CLOCK_TICKS

    def rss_mb(self) -> float:
        """Return the resident memory in MB."""
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        raise AssertionError("no VmRSS")

    def stop(self) -> None:
        """End the process and remove its data."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def start_ottla(options: Mapping[str, str] | None = None) -> Server:
    """Start `ottla up` on a free port."""
    folder = Path(tempfile.mkdtemp(prefix="ottla-bench-"))
    port = free_port()
    command = [sys.executable, "-m", "ottla.tools.main", "up", "--port", str(port)]
    command += ["--data", str(folder / "data")]
    for name, value in (options or {}).items():
        command += ["--option", f"{name}={value}"]
    return Server("ottla", command, port, folder)


def start_kafka(version: str = KAFKA_VERSION) -> Server:
    """Start Apache Kafka as one KRaft node, with the heap and collector of its own script."""
    folder = Path(tempfile.mkdtemp(prefix="kafka-bench-"))
    port, controller = free_port(), free_port()
    (folder / "log4j.properties").write_text(_LOG4J)
    properties = folder / "server.properties"
    properties.write_text(
        f"process.roles=broker,controller\nnode.id=1\n"
        f"controller.quorum.voters=1@127.0.0.1:{controller}\n"
        f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n"
        f"controller.listener.names=CONTROLLER\nlog.dirs={folder}/data\n"
        "offsets.topic.replication.factor=1\ntransaction.state.log.replication.factor=1\n"
        "transaction.state.log.min.isr=1\ngroup.initial.rebalance.delay.ms=0\n"
    )
    base = ["java", f"-Dlog4j.configuration=file:{folder}/log4j.properties", "-cp"]
    base += [java.kafka_class_path(version)]
    subprocess.run(
        [*base, "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qk"]
        + ["-c", str(properties)],
        check=True,
        capture_output=True,
    )
    heap = ["-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
    heap += ["-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"]
    command = [base[0], *heap, *base[1:], "kafka.Kafka", str(properties)]
    return Server(f"kafka {version}", command, port, folder)
