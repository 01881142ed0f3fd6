"""Compare the security of Ottla with Apache Kafka's: `python -m bench.secured`.

TLS: produce, fetch and handshakes. Logins with SCRAM and PLAIN. An authorizer with twenty access
control lists: requests with it and without it. All servers run at the same time, with the same
certificates and users, and each figure is measured in rounds that alternate which server goes
first. The first round is not counted: it is for just-in-time compilers. The report has the medians
of the rounds, and is stored in bench/results/.

    python -m bench.secured --rounds 5 --seconds 3 --warm-seconds 5
    python -m bench.secured --only handshakes,logins --output json
    python -m bench.secured --before ../old/.venv/bin/ottla
"""

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from bench import servers
from bench.compare import RESULTS, Values
from bench.contest import Figures, Topics, in_process, recycle_pages, reported
from bench.report import BEFORE, OURS, write
from bench.secured_load import SCRAM, connect, log_in_with_scram
from tests.certificates import rsa_signed, self_signed

KAFKA_VERSION = "4.4.0"
USER, PASSWORD = "ann", "secret"
SUBJECTS = ("tls_batches", "tls_fetch", "tls_clients", "handshakes", "logins", "authorizer")
ACLS_COUNT = 20
_ITERATIONS = 4096
_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_MODULES = "org.apache.kafka.common.security"
_SCRAM_SECONDS = 20.0
_CLIENT_RECORDS, _RECORD_BYTES = 300_000, 1024
_PASSES = 3
# Requests with the authorizer and without it alternate so often in a round.
_TURNS = 8
_PRODUCE, _FETCH = ("produce", "--depth", 5), ("fetch", "--max-bytes", 1, "--depth", 5)


class Ports(NamedTuple):
    """The listeners: without security, with TLS by a key of ECDSA or RSA, and with logins."""

    plaintext: int
    ssl: int
    rsa: int
    sasl_plaintext: int


Start = Callable[[Mapping[str, str]], servers.Server]


def options_of(ports: Ports, folder: Path, *, has_authorizer: bool) -> dict[str, str]:
    """Return the options of a broker, the same for Ottla and Apache Kafka.

    Clients of the listener without security are super users, which includes Kafka's controller.
    """
    names = [name.upper() for name in ports._fields]
    protocols = {name: "SSL" if name == "RSA" else name for name in names}
    jaas = "listener.name.sasl_plaintext.{}.sasl.jaas.config"
    options = {
        "listeners": ",".join(
            f"{name}://127.0.0.1:{port}" for name, port in zip(names, ports, strict=True)
        ),
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}" for name, protocol in protocols.items()
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "server.pem"),
        "listener.name.rsa.ssl.keystore.location": str(folder / "rsa.pem"),
        "sasl.enabled.mechanisms": f"PLAIN,{SCRAM}",
        jaas.format("plain"): (
            f'{_MODULES}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
        ),
        jaas.format(SCRAM.lower()): f"{_MODULES}.scram.ScramLoginModule required;",
    }
    if has_authorizer:
        options |= {"authorizer.class.name": _AUTHORIZER, "super.users": "User:ANONYMOUS"}
    return options


def acls(count: int) -> list[AclBinding]:
    """Return access control lists of the user: one allows the topics of this benchmark."""
    patterns = [("bench-", ResourcePatternType.PREFIXED)]
    patterns += [
        (f"other-{number}", ResourcePatternType.LITERAL if number % 2 else patterns[0][1])
        for number in range(count - 1)
    ]
    return [
        AclBinding(
            ResourceType.TOPIC, name, kind, f"User:{USER}", "*", AclOperation.ALL,
            AclPermissionType.ALLOW,
        )
        for name, kind in patterns
    ]  # fmt: skip


class SecuredServer:
    """A running server with its listeners, the user, and with an authorizer the lists."""

    def __init__(self, start: Start, folder: Path, *, has_authorizer: bool) -> None:
        self.ports = Ports(*(servers.free_port() for _ in Ports._fields))
        self.server = start(options_of(self.ports, folder, has_authorizer=has_authorizer))
        self.topics = Topics(self.server.bootstrap)
        self._add_user()
        if has_authorizer:
            for future in self.topics.admin.create_acls(acls(ACLS_COUNT)).values():
                future.result(30)

    def _add_user(self) -> None:
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, _ITERATIONS)
        user = UserScramCredentialUpsertion(USER, info, PASSWORD.encode())
        for future in self.topics.admin.alter_user_scram_credentials([user]).values():
            future.result(30)
        deadline = time.monotonic() + _SCRAM_SECONDS
        while True:
            try:
                with connect(self.ports.sasl_plaintext) as connection:
                    log_in_with_scram(connection, USER, PASSWORD)
                return
            except (OSError, SystemExit):
                if time.monotonic() > deadline:
                    raise
                time.sleep(1)


class SecuredContest:
    """The measurements of one kind of server; every public method returns named figures."""

    def __init__(self, start: Start, folder: Path, seconds: float) -> None:
        self.seconds = seconds
        self._folder = folder
        self._plain = SecuredServer(start, folder, has_authorizer=False)
        try:
            self._guarded = SecuredServer(start, folder, has_authorizer=True)
        except BaseException:
            self._plain.server.stop()
            raise

    def stop(self) -> None:
        """Stop both servers."""
        self._plain.server.stop()
        self._guarded.server.stop()

    def _load(self, kind: str, port: int, *words: object) -> tuple[Figures, float]:
        """Run a load; return its figures, and the CPU time of the broker."""
        server = self._plain.server
        before = server.cpu_seconds()
        figures = in_process(
            "bench.secured_load", kind, "--port", port, "--seconds", self.seconds, *words
        )
        return figures, server.cpu_seconds() - before

    def tls_batches(self) -> Figures:
        """Produce prepared batches of 900 KB through TLS, on two connections."""
        topic = self._plain.topics.create(2)
        recycle_pages(1000)
        words = ("--topic", topic, "--processes", 2)
        figures, cpu = self._load("produce", self._plain.ports.ssl, *words)
        self._plain.topics.delete(topic)
        name = "TLS batches 900 KB"
        return {name: figures["mb_s"], f"{name} CPU": cpu / figures["gigabytes"]}

    def tls_fetch(self) -> Figures:
        """Fetch 1 MB at a time through TLS, on two connections."""
        topic = self._plain.topics.create(2)
        in_process(
            "bench.load", "produce", "--port", self._plain.ports.plaintext, "--topic", topic,
            "--records", 60, "--value-bytes", 1000, "--partitions", 2, "--connections", 2,
            "--seconds", 0.5,
        )  # fmt: skip
        words = ("--topic", topic, "--processes", 2)
        figures, cpu = self._load("fetch", self._plain.ports.ssl, *words)
        self._plain.topics.delete(topic)
        name = "TLS fetch 1 MB"
        return {name: figures["mb_s"], f"{name} CPU": cpu / figures["gigabytes"]}

    def tls_clients(self) -> Figures:
        """Produce and consume records of 1 KB through TLS with librdkafka."""
        figures: Figures = {}
        topic = self._plain.topics.create(1)
        words = (
            "--bootstrap", f"127.0.0.1:{self._plain.ports.ssl}", "--topic", topic,
            "--count", _CLIENT_RECORDS, "--value-bytes", _RECORD_BYTES,
            "--setting", "security.protocol=SSL",
            "--setting", f"ssl.ca.location={self._folder / 'server.crt'}",
            "--setting", "ssl.endpoint.identification.algorithm=none",
        )  # fmt: skip
        recycle_pages(400)
        for kind, passes in (("produce", 1), ("consume", _PASSES)):
            before = self._plain.server.cpu_seconds()
            result = in_process("bench.clients", kind, *words, "--passes", passes)
            cpu = self._plain.server.cpu_seconds() - before
            figures[f"TLS {kind} 1 KB"] = result["mb_s"]
            gigabytes = passes * _CLIENT_RECORDS * _RECORD_BYTES / 1e9
            figures[f"TLS {kind} 1 KB CPU"] = cpu / gigabytes
        self._plain.topics.delete(topic)
        return figures

    def handshakes(self) -> Figures:
        """Connect with TLS and send one request, from four processes."""
        figures: Figures = {}
        ports = {"ECDSA P-256": self._plain.ports.ssl, "RSA 2048": self._plain.ports.rsa}
        for key, port in ports.items():
            result, cpu = self._load("handshakes", port)
            figures |= _each(f"TLS handshakes, {key}", result, cpu)
        return figures

    def logins(self) -> Figures:
        """Connect without TLS and log in, from four processes."""
        figures: Figures = {}
        for mechanism in (SCRAM, "PLAIN"):
            words = ("--mechanism", mechanism, "--user", f"{USER}:{PASSWORD}")
            result, cpu = self._load("logins", self._plain.ports.sasl_plaintext, *words)
            figures |= _each(f"{mechanism} logins", result, cpu)
        return figures

    def authorizer(self) -> Figures:
        """Produce and fetch one record per request after a login, with and without an authorizer."""
        figures: Figures = {}
        pair = [_Small(self._plain, self.seconds), _Small(self._guarded, self.seconds)]
        for kind, *words in (_PRODUCE, _FETCH):
            turns = []
            for number in range(_TURNS):
                # The order alternates.
                step = -1 if number % 2 else 1
                turns.append([small.run(kind, *words) for small in pair[::step]][::step])
            name = f"tiny {kind} with an authorizer"
            figures[name] = statistics.median(guarded.rate for _, guarded in turns)
            plain_us, guarded_us = least_cpu(turns)
            figures[f"{name} CPU"] = guarded_us
            figures[f"tiny {kind}, CPU with an authorizer to without"] = guarded_us / plain_us
        for small in pair:
            small.end()
        return figures


class Cost(NamedTuple):
    """Requests per second, and the broker's CPU time for each in microseconds."""

    rate: float
    cpu_us: float


def least_cpu(turns: Sequence[Sequence[Cost]]) -> list[float]:
    """Return the least CPU time of each server: other work of the machine only adds to it."""
    return [min(cost.cpu_us for cost in costs) for costs in zip(*turns, strict=True)]


class _Small:
    """Small requests of a client that has logged in, to one topic."""

    def __init__(self, server: SecuredServer, seconds: float) -> None:
        self._server = server
        self._seconds = seconds / _TURNS
        self._topic = server.topics.create(1)

    def run(self, kind: str, *words: object) -> Cost:
        """Run a load of one kind once."""
        server = self._server
        before = server.server.cpu_seconds()
        result = in_process(
            "bench.load", kind, "--port", server.ports.sasl_plaintext, "--topic", self._topic,
            "--user", f"{USER}:{PASSWORD}", "--seconds", self._seconds, *words,
        )  # fmt: skip
        cpu = server.server.cpu_seconds() - before
        return Cost(result["requests_s"], cpu / result["requests"] * 1e6)

    def end(self) -> None:
        """Delete the topic."""
        self._server.topics.delete(self._topic)


def _each(name: str, result: Figures, cpu: float) -> Figures:
    """Return the rate of a load, and the CPU time for each of its units in microseconds."""
    return {name: result["rate"], f"{name} CPU": cpu / result["count"] * 1e6}


def measure(starts: Mapping[str, Start], folder: Path, words: argparse.Namespace) -> Values:
    """Start the servers and return the values of all rounds by figure and server."""
    figures: Values = defaultdict(lambda: defaultdict(list))
    subjects = chosen(words.only)
    contests: dict[str, SecuredContest] = {}
    try:
        for name, start in starts.items():
            contests[name] = SecuredContest(start, folder, words.warm_seconds)
        for number in range(words.rounds + 1):
            order = sorted(starts, reverse=bool(number % 2))
            for subject in subjects:
                for name in order:
                    print(f"round {number}: {subject} of {name}", file=sys.stderr, flush=True)
                    result = reported(getattr(contests[name], subject))
                    for figure, value in result.items() if number else ():
                        figures[figure][name].append(value)
            for contest in contests.values():
                contest.seconds = words.seconds
    finally:
        for contest in contests.values():
            contest.stop()
    return figures


def chosen(only: str) -> list[str]:
    """Return the subjects of a comma-separated list, in their own order; all if it is empty."""
    names = only.split(",") if only else SUBJECTS
    unknown = sorted({*names} - {*SUBJECTS})
    if unknown:
        raise SystemExit(f"unknown subjects: {', '.join(unknown)}; known: {', '.join(SUBJECTS)}")
    return [name for name in SUBJECTS if name in names]


def main() -> None:
    """Measure all servers, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--warm-seconds", type=float, default=5, help="of the first round")
    parser.add_argument("--kafka", default=KAFKA_VERSION)
    parser.add_argument("--only", default="", help=f"comma-separated: {','.join(SUBJECTS)}")
    parser.add_argument("--before", type=Path, help="the ottla command of an older version")
    parser.add_argument("--output", choices=["table", "json"], default="table")
    words = parser.parse_args()
    peer = f"kafka {words.kafka}"
    about = {
        "peer": peer,
        "command": "bench.secured",
        "date": time.strftime("%Y-%m-%d"),
        "rounds": words.rounds,
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "linux": platform.release(),
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
        # Folders of this machine mean nothing to readers of the report.
        "arguments": " ".join(
            word.rpartition("/")[2] if word[0] == "/" else word for word in sys.argv[1:]
        ),
    }
    starts: dict[str, Start] = {
        OURS: servers.start_ottla,
        peer: lambda options: servers.start_kafka(words.kafka, options),
    }
    if words.before is not None:
        starts[BEFORE] = lambda options: servers.start_ottla(options, command=words.before)
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder:
        self_signed(Path(folder))
        rsa_signed(Path(folder), name="rsa", bits=2048)
        figures = measure(starts, Path(folder), words)
    result = RESULTS / f"{time.strftime('%Y-%m-%d-%H%M%S')}-secured.json"
    document = {"about": about, "figures": figures}
    result.write_text(json.dumps(document, indent=1), encoding="utf-8")
    lines = write(result)
    print(json.dumps(document) if words.output == "json" else "\n".join(lines))


if __name__ == "__main__":
    main()
