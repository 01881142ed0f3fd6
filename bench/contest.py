"""The measurements of `bench.compare` on one running server.

Fresh page cache is slow on virtual machines that return memory to their host, for whichever server
writes first: a file of the same size is written and removed before each write, so that the pages
are there for both.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from bench import servers
from bench.waiting import Line, wait_for_leaders

Figures = dict[str, float]
_WARM_SECONDS = 0.8
_PASSES = 5
_ONE_AND_SIX = ("1 partition", "6 partitions")
_THOUSAND, _MANY = 1000, 2000


def recycle_pages(size_mb: int) -> None:
    """Write and remove a file, so that the page cache has free pages."""
    with tempfile.TemporaryFile() as file:
        block = bytes(1 << 20)
        for _ in range(size_mb):
            file.write(block)


def forget_pages(folder: Path) -> None:
    """Evict the segments below a folder from the page cache."""
    # Unlike `Path.rglob`, `os.walk` continues if a folder is deleted during the walk.
    paths = [Path(parent, name) for parent, _, names in os.walk(folder) for name in names]
    for path in paths:
        if path.suffix != ".log":
            continue
        try:
            file = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            os.fsync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)


class Topics:
    """Fresh topics on one server."""

    def __init__(self, bootstrap: str) -> None:
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self.count = 0

    def create(self, partitions: int) -> str:
        """Create a topic and return its name."""
        self.count += 1
        name = f"bench-{self.count}"
        for future in self.admin.create_topics([NewTopic(name, partitions, 1)]).values():
            future.result(30)
        return name

    def delete(self, name: str) -> None:
        """Delete a topic, so that its pages return to the cache."""
        for future in self.admin.delete_topics([name]).values():
            future.result(30)


def in_process(module: str, *words: object) -> Figures:
    """Run a load in a process of its own and return what it printed."""
    command = [sys.executable, "-m", module, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr[-2000:]}")
    return dict(json.loads(done.stdout))


class Contest:
    """The measurements of one server; every public method returns named figures."""

    def __init__(self, server: servers.Server, seconds: float) -> None:
        self.server = server
        self.topics = Topics(server.bootstrap)
        self.seconds = seconds
        self._warm_up()

    def _warm_up(self) -> None:
        """Run both paths before the first figure, for just-in-time compilers."""
        topic = self.topics.create(1)
        for arguments in (("--depth", 5), ("--records", 16, "--value-bytes", 1000)):
            self._load("produce", topic, *arguments)
        self._load("fetch", topic)
        self.topics.delete(topic)

    def _load(self, kind: str, topic: str, *words: object) -> tuple[Figures, float]:
        before = self.server.cpu_seconds()
        figures = in_process(
            "bench.load", kind, "--port", self.server.port, "--topic", topic,
            "--seconds", self.seconds, *words,
        )  # fmt: skip
        return figures, self.server.cpu_seconds() - before

    def _client(self, kind: str, topic: str, *words: object) -> Figures:
        bootstrap = ("--bootstrap", self.server.bootstrap)
        return in_process("bench.clients", kind, *bootstrap, "--topic", topic, *words)

    def _costed(
        self, name: str, kind: str, topic: str, *words: object, is_bytes: bool = False
    ) -> Figures:
        """Warm up, run a load, and return its rate and the broker's CPU time for it."""
        self._load(kind, topic, *words, "--seconds", 0.5)
        result, cpu = self._load(kind, topic, *words)
        if not is_bytes:
            return {name: result["requests_s"], f"{name} CPU": cpu / result["requests"] * 1e6}
        gigabytes = result["received_mb_s"] * self.seconds / 1000
        return {name: result["received_mb_s"], f"{name} CPU": cpu / gigabytes}

    def tiny(self) -> Figures:
        """Produce one record of 100 B per request on ten connections, one and five in flight."""
        figures: Figures = {}
        topic = self.topics.create(1)
        for depth in (1, 5):
            for version in (3, 7, 9):
                name = f"tiny 10x{depth} v{version}"
                arguments = ("--depth", depth, "--version", version)
                self._load("produce", topic, *arguments, "--seconds", 0.5)
                result, cpu = self._load("produce", topic, *arguments)
                figures[name] = result["requests_s"]
                figures[f"{name} CPU"] = cpu / result["requests"] * 1e6
                figures[f"{name} p99"] = result["p99_us"]
        self.topics.delete(topic)
        return figures

    def one_in_flight(self) -> Figures:
        """Produce one record of 1 KB at a time on one connection."""
        figures: Figures = {}
        topic = self.topics.create(1)
        for version in (7, 9):
            arguments = ("--connections", 1, "--value-bytes", 1024, "--version", version)
            self._load("produce", topic, *arguments, "--seconds", 0.5)
            result, _ = self._load("produce", topic, *arguments)
            for part in ("p50", "p99"):
                figures[f"one in flight 1 KB v{version} {part}"] = result[f"{part}_us"]
        self.topics.delete(topic)
        return figures

    def _batches(
        self, name: str, records: int, connections: int, depth: int, version: int
    ) -> Figures:
        """Produce prepared batches to six partitions."""
        rates, costs = [], []
        # Short and often: pages that were freed stay warm for about a gigabyte.
        for _ in range(3):
            topic = self.topics.create(6)
            recycle_pages(1000)
            figures, cpu = self._load(
                "produce", topic, "--partitions", 6, "--records", records, "--value-bytes", 1000,
                "--connections", connections, "--depth", depth, "--seconds", _WARM_SECONDS,
                "--version", version,
            )  # fmt: skip
            self.topics.delete(topic)
            rates.append(figures["sent_mb_s"])
            costs.append(cpu / (figures["sent_mb_s"] * _WARM_SECONDS / 1000))
        return {name: statistics.median(rates), f"{name} CPU": statistics.median(costs)}

    def small_batches(self) -> Figures:
        """Produce batches of 16 KB."""
        old = self._batches("batches 16 KB v7", 16, 10, 4, 7)
        return old | self._batches("batches 16 KB v9", 16, 10, 4, 9)

    def large_batches(self) -> Figures:
        """Produce batches of 900 KB."""
        return self._batches("batches 900 KB v9", 890, 4, 2, 9)

    def fetch(self) -> Figures:
        """Fetch 1 MB of each of one and six partitions, 60 KB, and one record."""
        figures = self._fetch_of_one_record() | self._fetch_between_entries()
        for partitions in (1, 6):
            topic = self._filled(partitions)
            title = f"fetch 1 MB, {partitions} partition{'s' if partitions > 1 else ''}"
            arguments = ("--partitions", partitions, "--connections", 2)
            figures |= self._costed(title, "fetch", topic, *arguments, is_bytes=True)
            if partitions == 1:
                for version in (11, 12):
                    title = f"fetch one small batch v{version}"
                    arguments = ("--max-bytes", 1000, "--version", version)
                    figures |= self._costed(title, "fetch", topic, *arguments)
            self.topics.delete(topic)
        one, six = (figures[f"fetch 1 MB, {count} CPU"] for count in _ONE_AND_SIX)
        return figures | {"fetch 1 MB, CPU of six partitions to one": six / one}

    def _fetch_of_one_record(self) -> Figures:
        """Fetch a batch of one record of 1 KB, in the oldest, an old and a recent version."""
        figures: Figures = {}
        topic = self.topics.create(1)
        self._load("produce", topic, "--value-bytes", 1000, "--seconds", 0.1)
        for version in (4, 11, 12):
            words = ("--max-bytes", 1, "--version", version)
            figures |= self._costed(f"fetch one record v{version}", "fetch", topic, *words)
        self.topics.delete(topic)
        return figures

    def _fetch_between_entries(self) -> Figures:
        """Fetch single batches of 170 B whose offset has an entry of the index, and others.

        An entry covers 4 KB, 24 of these batches.
        """
        figures: Figures = {}
        topic = self.topics.create(1)
        self._load("produce", topic, "--value-bytes", 100, "--depth", 5, "--seconds", 1)
        for version in (4, 11, 12):
            for offset in (0, 5, 5000):
                words = ("--max-bytes", 1, "--version", version, "--offset", offset)
                title = f"fetch offset {offset} v{version}"
                figures |= self._costed(title, "fetch", topic, *words)
            alone = figures[f"fetch offset 0 v{version} CPU"]
            behind = max(figures[f"fetch offset {offset} v{version} CPU"] for offset in (5, 5000))
            figures[f"fetch v{version}, CPU behind an entry to at an entry"] = behind / alone
        self.topics.delete(topic)
        return figures

    def _filled(self, partitions: int) -> str:
        """Return a topic whose partitions have some megabytes each, in batches of 60 KB."""
        topic = self.topics.create(partitions)
        self._load(
            "produce", topic, "--records", 60, "--value-bytes", 1000, "--partitions", partitions,
            "--connections", max(2, partitions), "--seconds", 1,
        )  # fmt: skip
        return topic

    def many_partitions(self) -> Figures:
        """Fetch 100 partitions with one record each; wait over 2 000 partitions, and over one."""
        topic = self.topics.create(100)
        arguments = ("--partitions", 100, "--connections", 100, "--seconds", 0.2)
        self._load("produce", topic, *arguments)
        name, arguments = "fetch of 100 partitions", ("--partitions", 100, "--max-bytes", 1000)
        figures = self._costed(name, "fetch", topic, *arguments)
        self.topics.delete(topic)
        for name, kind, partitions in (
            ("long poll of 2 000 partitions", "poll", _MANY),
            ("long poll in a session", "session_poll", _MANY),
            ("long poll of one partition", "session_poll", 1),
        ):
            warm = self.topics.create(min(partitions, 100))
            self._waiting(kind, warm, "--seconds", 0.5, "--partitions", min(partitions, 100))
            topic = self.topics.create(partitions)
            self._ready(topic, partitions)
            before = self.server.cpu_seconds()
            result = self._waiting(
                kind, topic, "--seconds", self.seconds, "--partitions", partitions
            )
            cpu = self.server.cpu_seconds() - before
            figures[f"{name} p50"] = result["p50_us"]
            figures[f"{name} CPU"] = cpu / result["wakes"] * 1e6
            self.topics.delete(warm)
            self.topics.delete(topic)
        return figures

    def _ready(self, topic: str, partitions: int) -> None:
        """Wait until all partitions have a leader: creating them must not count."""
        wait_for_leaders(Line(self.server.port), topic, partitions)

    def _waiting(self, kind: str, topic: str, *words: object) -> Figures:
        where = ("--port", self.server.port, "--topic", topic)
        return in_process("bench.waiting", kind, *where, *words)

    def never_read(self) -> Figures:
        """Have 1 500 clients ask for megabytes that they never read."""
        topic = self._filled(6)
        result = self._waiting("never_read", topic, "--pid", self.server.pid)
        self.topics.delete(topic)
        return {"memory of 1 500 readers that never read": result["memory_mb"]}

    def metadata(self) -> Figures:
        """Metadata of 100 topics of one partition."""
        names = [self.topics.create(1) for _ in range(100)]
        figures, _ = self._load("metadata", ",".join(names))
        for name in names:
            self.topics.delete(name)
        return {"metadata of 100 topics": figures["requests_s"]}

    def cold(self) -> Figures:
        """Consume records that are not in the page cache."""
        arguments = ("--codec", "none", "--count", 300_000, "--value-bytes", 1024)
        topic = self.topics.create(1)
        self._client("produce", topic, *arguments, "--linger-ms", 1000)
        forget_pages(self.server.folder)
        before = self.server.cpu_seconds()
        result = self._client("consume", topic, *arguments)
        cpu = self.server.cpu_seconds() - before
        self.topics.delete(topic)
        name = "consume 1 KB, cold"
        return {name: result["mb_s"], f"{name} CPU": cpu / (300_000 * 1024 / 1e9)}

    def coordination(self) -> Figures:
        """Transactions, groups of both protocols, latency, a thousand partitions, connections."""
        figures: Figures = {}
        kinds = ["transactions", "group", "consumer_group", "first_record", "end_to_end"]
        for kind in (*kinds, "connections", "many_partitions"):
            arguments = ("--bootstrap", self.server.bootstrap, "--seconds", self.seconds)
            figures |= in_process("bench.coordination", kind, *arguments)
        return figures

    def clients(self) -> Figures:
        """Produce and consume through librdkafka: two sizes, some partitions, three codecs."""
        figures: Figures = {}
        for label, size, count in (("1 KB", 1024, 300_000), ("100 B", 100, 1_500_000)):
            for partitions in (1, 6, 100):
                noun = "partition" if partitions == 1 else "partitions"
                title = f"{label}, {partitions} {noun}"
                arguments = ("--partitions", partitions, "--count", count, "--value-bytes", size)
                figures |= self._transfer(title, partitions, arguments, count * size / 1e9)
            one, six = (figures[f"consume {label}, {count} CPU"] for count in _ONE_AND_SIX)
            figures[f"consume {label}, CPU of six partitions to one"] = six / one
        for codec in ("lz4", "zstd"):
            arguments = ("--codec", codec, "--count", 300_000, "--value-bytes", 1024)
            figures |= self._transfer(f"1 KB {codec}", 1, arguments, 300_000 * 1024 / 1e9)
        return figures

    def _transfer(
        self, title: str, partitions: int, words: tuple[object, ...], gigabytes: float
    ) -> Figures:
        """Produce records to a topic, then consume the records of another one several times."""
        figures: Figures = {}
        for kind, passes in (("produce", 1), ("consume", _PASSES)):
            if kind == "produce" and partitions == 100:
                continue
            topic = self.topics.create(partitions)
            recycle_pages(400)
            if kind == "consume":
                # Full batches: otherwise a broker that responds soon has smaller ones to serve.
                self._client("produce", topic, *words, "--linger-ms", 1000)
            before = self.server.cpu_seconds()
            result = self._client(kind, topic, *words, "--passes", passes)
            cpu = self.server.cpu_seconds() - before
            figures[f"{kind} {title}"] = result["mb_s"]
            figures[f"{kind} {title} CPU"] = cpu / (passes * gigabytes)
            self.topics.delete(topic)
        return figures

    def memory(self) -> Figures:
        """Read the memory of the server after all of the load before."""
        return {"memory after the load": self.server.rss_mb()}


def reported(measure: Callable[[], Figures]) -> Figures:
    """Return the figures of a load; one that fails is reported and has no figures."""
    try:
        return measure()
    except (SystemExit, KafkaException) as error:
        print(error, file=sys.stderr, flush=True)
        return {}


def measure_start(start: Callable[[], servers.Server]) -> Figures:
    """Start a fresh server, have one record acknowledged, read its memory at rest, and stop it."""
    begin = time.perf_counter()
    server = start()
    servers.produce_until_acknowledged(server.port, "first")
    acknowledged = time.perf_counter() - begin
    time.sleep(2)
    memory = server.rss_mb()
    topic = Topics(server.bootstrap).create(_THOUSAND)
    memory_of_many = server.rss_mb()
    servers.produce_to_all(server.port, topic, _THOUSAND)
    begin = time.perf_counter()
    server.end(signal.SIGTERM)
    stopped = time.perf_counter() - begin
    server.stop()
    return {
        "start to first acknowledged produce": acknowledged,
        "idle memory": memory,
        "memory with 1 000 partitions": memory_of_many,
        "clean stop with 1 000 partitions": stopped,
    }
