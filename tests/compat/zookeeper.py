"""A real ZooKeeper, from the jars of Apache Kafka 3.9.2, and Kafka brokers that use it."""

import contextlib
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.compat import java

_START_S = 100
_PAUSE = threading.Event()
_MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


_MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule required"


def login_options(folder: Path, username: str, password: str, section: str = "Client") -> str:
    """Write a JAAS file with a user; return the option of Java that names the file."""
    path = folder / f"{section}-{username}.conf"
    path.write_text(f'{section} {{ {_MODULE} username="{username}" password="{password}"; }};\n')
    return f"-Djava.security.auth.login.config={path}"


class Server:
    """A ZooKeeper at `address`, which can be killed and restarted with the same data.

    With `users`, whose values are their passwords, it accepts logins with DIGEST-MD5. With
    `certificates`, its own and a client's (`tests.certificates`), it serves TLS at
    `secure_address`.
    """

    def __init__(
        self,
        folder: Path,
        users: Mapping[str, str] | None = None,
        certificates: tuple[Path, Path] | None = None,
    ) -> None:
        folder.mkdir(parents=True)
        port, secure_port = java.free_ports(2)
        self.address = f"127.0.0.1:{port}"
        self.secure_address = f"127.0.0.1:{secure_port}"
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        rows = (
            "tickTime=2000",
            f"dataDir={folder}",
            f"clientPort={port}",
            "clientPortAddress=127.0.0.1",
            "admin.enableServer=false",
            "maxClientCnxns=0",
        )
        self._java_options: tuple[str, ...] = ()
        if certificates is not None:
            server, client = certificates
            rows += (
                f"secureClientPort={secure_port}",
                "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
                f"ssl.keyStore.location={server}",
                f"ssl.trustStore.location={client.with_suffix('.crt')}.pem",
                "authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider",
            )
            # ZooKeeper recognizes the format by the name.
            shutil.copy(client.with_suffix(".crt"), f"{client.with_suffix('.crt')}.pem")
        if users is not None:
            rows += ("authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",)
            words = " ".join(f'user_{name}="{password}"' for name, password in users.items())
            (folder / "server.conf").write_text(f"Server {{ {_MODULE} {words}; }};\n")
            self._java_options = (f"-Djava.security.auth.login.config={folder}/server.conf",)
        (folder / "zoo.cfg").write_text("\n".join(rows) + "\n")

    def start(self) -> None:
        """Start it without waiting for a response."""
        class_path = java.kafka_class_path()
        self.start_with(*java.archive_options("zookeeper", class_path, _run_a_server))

    def start_with(self, *java_options: str) -> None:
        """Start it with these options of Java, too, without waiting for a response."""
        class_path = java.kafka_class_path()
        program, *words = java.plain_command(class_path, _MAIN_CLASS, str(self.folder / "zoo.cfg"))
        with (self.folder / "out").open("ab") as out:
            self._process = subprocess.Popen(
                [program, *java_options, *self._java_options, *words],
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def await_start(self) -> None:
        """Wait until it responds."""
        deadline = time.monotonic() + _START_S
        while not self._answers():
            assert self._process is not None
            assert self._process.poll() is None, (self.folder / "out").read_text()[-3000:]
            assert time.monotonic() < deadline, "ZooKeeper did not start in time"
            _PAUSE.wait(0.05)

    def _answers(self) -> bool:
        host, _, port = self.address.partition(":")
        try:
            with socket.create_connection((host, int(port)), 1) as connection:
                connection.sendall(b"srvr")
                return b"Mode: standalone" in connection.makefile("rb").read()
        except OSError:
            return False

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


def _run_a_server(_class_path: str, folder: Path, java_options: tuple[str, ...]) -> None:
    server = Server(folder)
    server.start_with(*java_options)
    server.await_start()
    server.stop()


@contextlib.contextmanager
def running(folder: Path, users: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run a ZooKeeper that responds until the end of the block; yields its `host:port`."""
    server = Server(folder, users)
    server.start()
    try:
        server.await_start()
        yield server.address
    finally:
        server.kill()


class Broker(java.KafkaNode):
    """One Apache Kafka 3.9.2 broker, id 1, on a ZooKeeper; `data` is its log directory."""

    def __init__(
        self, folder: Path, zookeeper: str, data: Path | None = None, options: Sequence[str] = ()
    ) -> None:
        super().__init__(folder)
        self.data = data or self.data
        # ZooKeeper mode needs no formatting.
        self.data.mkdir(exist_ok=True)
        rows = (
            "broker.id=1",
            f"listeners=PLAINTEXT://{self.bootstrap}",
            f"zookeeper.connect={zookeeper}",
            f"log.dirs={self.data}",
            "offsets.topic.replication.factor=1",
            "offsets.topic.num.partitions=3",
            "transaction.state.log.replication.factor=1",
            "transaction.state.log.num.partitions=3",
            "transaction.state.log.min.isr=1",
            *options,
        )
        (folder / "server.properties").write_text("\n".join(rows) + "\n")
