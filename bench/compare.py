"""Compare Ottla with Apache Kafka (`make bench`); prints ratios and saves them in bench/results/.

Both servers run at the same time. Each figure is the median of several rounds, and the order of the
servers alternates. The ratio is that of the medians. On virtual machines that return memory to
their host, new pages of the page cache are slow for the first writer. So before each write a file
of the same size is written and removed, and the pages are available to both servers.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from bench import servers

RESULTS = Path(__file__).parent / "results"
Figures = dict[str, float]
_WARM_SECONDS = 0.8
_PASSES = 5
# Name, unit, which way is better, aim (ratio to Kafka), as the design sets it.
AIMS = {
    "tiny 10x1": ("requests/s", "more", 2.0),
    "tiny 10x1 p99": ("us", "less", 0.5),
    "tiny 10x1 CPU": ("us/request", "less", 0.5),
    "tiny 10x5": ("requests/s", "more", 2.5),
    "tiny 10x5 p99": ("us", "less", 0.5),
    "one in flight 1 KB p50": ("us", "less", 0.8),
    "one in flight 1 KB p99": ("us", "less", 0.9),
    "batches 16 KB": ("MB/s", "more", 1.5),
    "batches 16 KB CPU": ("s/GB", "less", 0.5),
    "batches 900 KB": ("MB/s", "more", 1.5),
    "batches 900 KB CPU": ("s/GB", "less", 0.5),
    "fetch 1 MB": ("MB/s", "more", 0.8),
    "fetch 1 MB CPU": ("s/GB", "less", 1.0),
    "fetch one small batch": ("requests/s", "more", 1.3),
    "fetch one small batch CPU": ("us/request", "less", 0.6),
    "metadata of 100 topics": ("requests/s", "more", 2.0),
    "start to first acknowledged produce": ("s", "less", 0.15),
    "idle memory": ("MB", "less", 0.15),
}
AIMS |= {
    "transactions of 1 record": ("/s", "more", 1.0),
    "transactions of 1 record p99": ("ms", "less", 1.0),
    "transactions of 100 records": ("/s", "more", 1.0),
    "transactions of 100 records p99": ("ms", "less", 1.0),
    "group of five joins (classic)": ("s", "less", 1.0),
    "one of five leaves (classic)": ("s", "less", 1.0),
    "group of five joins (consumer)": ("s", "less", 1.0),
    "one of five leaves (consumer)": ("s", "less", 1.0),
    "new group to first record": ("s", "less", 0.5),
    "end to end p50": ("us", "less", 0.8),
    "end to end p99": ("us", "less", 0.8),
    "1 000 partitions until each took a record": ("s", "less", 0.5),
    "1 000 partitions deleted": ("s", "less", 1.0),
    "memory with 1 000 partitions": ("MB", "less", 0.25),
    "connections": ("/s", "more", 0.5),
}
AIMS |= {
    "produce 1 KB none, 6 partitions": ("MB/s", "more", 1.1),
    "produce 1 KB none, 6 partitions CPU": ("s/GB", "less", 0.6),
    "consume 1 KB none, cold": ("MB/s", "more", 1.0),
    "consume 1 KB none, cold CPU": ("s/GB", "less", 1.0),
}
for _size in ("1 KB", "100 B"):
    for _codec in ("none", "lz4", "zstd"):
        AIMS[f"produce {_size} {_codec}"] = ("MB/s", "more", 1.0)
        AIMS[f"produce {_size} {_codec} CPU"] = ("s/GB", "less", 0.6)
    for _codec in ("none", "lz4", "zstd"):
        AIMS[f"consume {_size} {_codec}"] = ("MB/s", "more", 1.0)
        AIMS[f"consume {_size} {_codec} CPU"] = ("s/GB", "less", 1.0)


def recycle_pages(size_mb: int) -> None:
    """Write and remove a file, so that the page cache has free pages."""
    with tempfile.TemporaryFile() as file:
        block = bytes(1 << 20)
        for _ in range(size_mb):
            file.write(block)


def forget_pages(folder: Path) -> None:
    """Evict the segments below a folder from the page cache."""
    for path in folder.rglob("*.log"):
        file = os.open(path, os.O_RDONLY)
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
    """Run a load in a separate process and return the figures that it printed."""
    command = [sys.executable, "-m", module, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr[-2000:]}")
    return dict(json.loads(done.stdout))


class Contest:
    """The measurements of one server; every method returns named figures."""

    def __init__(self, server: servers.Server, seconds: float) -> None:
        self.server = server
        self.topics = Topics(server.bootstrap)
        self.seconds = seconds
        self._warm_up()

    def _warm_up(self) -> None:
        """Run both paths before the first figure, so that a just-in-time compiler has compiled
        them.
        """
        topic = self.topics.create(1)
        for words in (("--depth", 5), ("--records", 16, "--value-bytes", 1000)):
            self._load("produce", topic, *words)
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

    def tiny(self) -> Figures:
        """Produce one record of 100 B per request: ten connections, one and five in flight."""
        topic = self.topics.create(1)
        self._load("produce", topic, "--seconds", 0.5)
        one, cpu = self._load("produce", topic)
        five, _ = self._load("produce", topic, "--depth", 5)
        self.topics.delete(topic)
        return {
            "tiny 10x1": one["requests_s"],
            "tiny 10x1 p99": one["p99_us"],
            "tiny 10x1 CPU": cpu / one["requests"] * 1e6,
            "tiny 10x5": five["requests_s"],
            "tiny 10x5 p99": five["p99_us"],
        }

    def one_in_flight(self) -> Figures:
        """Produce with one connection, one record of 1 KB at a time."""
        topic = self.topics.create(1)
        self._load("produce", topic, "--connections", 1, "--seconds", 0.5)
        figures, _ = self._load("produce", topic, "--connections", 1, "--value-bytes", 1024)
        self.topics.delete(topic)
        return {
            "one in flight 1 KB p50": figures["p50_us"],
            "one in flight 1 KB p99": figures["p99_us"],
        }

    def batches(self, name: str, records: int, connections: int, depth: int) -> Figures:
        """Produce prepared batches to six partitions."""
        rates, costs = [], []
        # Short and often: pages that were given back stay warm for about a gigabyte.
        for _ in range(3):
            topic = self.topics.create(6)
            recycle_pages(1000)
            figures, cpu = self._load(
                "produce", topic, "--partitions", 6, "--records", records, "--value-bytes", 1000,
                "--connections", connections, "--depth", depth, "--seconds", _WARM_SECONDS,
            )  # fmt: skip
            self.topics.delete(topic)
            rates.append(figures["sent_mb_s"])
            costs.append(cpu / (figures["sent_mb_s"] * _WARM_SECONDS / 1000))
        return {
            f"batches {name}": statistics.median(rates),
            f"batches {name} CPU": statistics.median(costs),
        }

    def small_batches(self) -> Figures:
        """Produce batches of 16 KB."""
        return self.batches("16 KB", 16, 10, 4)

    def large_batches(self) -> Figures:
        """Produce batches of 900 KB."""
        return self.batches("900 KB", 890, 4, 2)

    def fetch(self) -> Figures:
        """Fetch 1 MB, and one small batch, from the page cache."""
        topic = self.topics.create(1)
        self._load(
            "produce", topic, "--records", 60, "--value-bytes", 1000,
            "--connections", 2, "--seconds", 1,
        )  # fmt: skip
        large, cpu = self._load("fetch", topic, "--connections", 2)
        small, small_cpu = self._load("fetch", topic, "--max-bytes", 1000)
        self.topics.delete(topic)
        gigabytes = large["received_mb_s"] * self.seconds / 1000
        return {
            "fetch 1 MB": large["received_mb_s"],
            "fetch 1 MB CPU": cpu / gigabytes,
            "fetch one small batch": small["requests_s"],
            "fetch one small batch CPU": small_cpu / small["requests"] * 1e6,
        }

    def metadata(self) -> Figures:
        """Request the metadata of 100 topics with one partition."""
        names = [self.topics.create(1) for _ in range(100)]
        figures, _ = self._load("metadata", ",".join(names))
        for name in names:
            self.topics.delete(name)
        return {"metadata of 100 topics": figures["requests_s"]}

    def partitions_and_disk(self) -> Figures:
        """Produce to six partitions; consume records that the page cache has evicted."""
        size, count = 1024, 300_000
        words = ("--codec", "none", "--count", count, "--value-bytes", size)
        gigabytes = count * size / 1e9
        topic = self.topics.create(6)
        recycle_pages(400)
        before = self.server.cpu_seconds()
        produced = self._client("produce", topic, *words)
        produce_cpu = self.server.cpu_seconds() - before
        self.topics.delete(topic)
        topic = self.topics.create(1)
        self._client("produce", topic, *words, "--linger-ms", 1000)
        forget_pages(self.server.folder)
        before = self.server.cpu_seconds()
        consumed = self._client("consume", topic, *words)
        consume_cpu = self.server.cpu_seconds() - before
        self.topics.delete(topic)
        return {
            "produce 1 KB none, 6 partitions": produced["mb_s"],
            "produce 1 KB none, 6 partitions CPU": produce_cpu / gigabytes,
            "consume 1 KB none, cold": consumed["mb_s"],
            "consume 1 KB none, cold CPU": consume_cpu / gigabytes,
        }

    def coordination(self) -> Figures:
        """Measure transactions, groups of both protocols, latency, a thousand partitions,
        connections.
        """
        figures: Figures = {}
        kinds = ["transactions", "group", "consumer_group", "first_record", "end_to_end"]
        for kind in (*kinds, "connections", "many_partitions"):
            words = ("--bootstrap", self.server.bootstrap, "--seconds", self.seconds)
            figures |= in_process("bench.coordination", kind, *words)
        return figures

    def clients(self) -> Figures:
        """Produce and consume through librdkafka, two sizes, three codecs."""
        figures: Figures = {}
        for label, size, count in (("1 KB", 1024, 300_000), ("100 B", 100, 1_000_000)):
            for codec in ("none", "lz4", "zstd"):
                words = ("--codec", codec, "--count", count, "--value-bytes", size)
                for kind in ("produce", "consume"):
                    topic = self.topics.create(1)
                    recycle_pages(400)
                    passes = 1
                    if kind == "consume":
                        # Full batches: otherwise a broker that responds faster would get smaller
                        # batches.
                        self._client("produce", topic, *words, "--linger-ms", 1000)
                        passes = _PASSES
                    before = self.server.cpu_seconds()
                    found = self._client(kind, topic, *words, "--passes", passes)
                    cpu = self.server.cpu_seconds() - before
                    figures[f"{kind} {label} {codec}"] = found["mb_s"]
                    figures[f"{kind} {label} {codec} CPU"] = cpu / (passes * count * size / 1e9)
                    self.topics.delete(topic)
        return figures


def measure_start(start: Callable[[], servers.Server]) -> Figures:
    """Start a new server, have one record acknowledged, wait until it is idle, read its memory."""
    begin = time.perf_counter()
    server = start()
    servers.produce_until_acknowledged(server.port, "first")
    acknowledged = time.perf_counter() - begin
    time.sleep(2)
    memory = server.rss_mb()
    Topics(server.bootstrap).create(1000)
    memory_of_many = server.rss_mb()
    server.stop()
    return {
        "start to first acknowledged produce": acknowledged,
        "idle memory": memory,
        "memory with 1 000 partitions": memory_of_many,
    }


def table(figures: dict[str, dict[str, list[float]]], peer: str) -> list[str]:
    """Return the lines of a Markdown table of medians and ratios."""
    lines = [
        f"| figure | unit | ottla | {peer} | ratio | aim | |",
        "|---|---|--:|--:|--:|--:|---|",
    ]
    for name, (unit, better, aim) in AIMS.items():
        if name not in figures:
            continue
        ours = statistics.median(figures[name]["ottla"])
        theirs = statistics.median(figures[name][peer])
        ratio = ours / theirs if theirs else float("inf")
        met = ratio >= aim if better == "more" else ratio <= aim
        sign = "≥" if better == "more" else "≤"
        lines.append(
            f"| {name} | {unit} | {ours:,.4g} | {theirs:,.4g} | {ratio:.2f} "
            f"| {sign} {aim} | {'met' if met else 'missed'} |"
        )
    return lines


def main() -> None:
    """Run all measurements."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--kafka", default=servers.KAFKA_VERSION)
    parser.add_argument("--only", default="", help="comma-separated: start,tiny,fetch,…")
    words = parser.parse_args()
    starts: dict[str, Callable[[], servers.Server]] = {
        "ottla": servers.start_ottla,
        f"kafka {words.kafka}": lambda: servers.start_kafka(words.kafka),
    }
    peer = f"kafka {words.kafka}"
    subjects = ["tiny", "one_in_flight", "small_batches", "large_batches", "fetch", "metadata"]
    subjects += ["coordination", "clients", "partitions_and_disk", "start"]
    if words.only:
        subjects = [name for name in subjects if name in words.only.split(",")]
    figures: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    running = {name: start() for name, start in starts.items()}
    try:
        contests = {name: Contest(server, words.seconds) for name, server in running.items()}
        for number in range(words.rounds):
            order = sorted(starts, reverse=bool(number % 2))
            for subject in subjects:
                for name in order:
                    print(f"round {number + 1}: {subject} of {name}", file=sys.stderr, flush=True)
                    if subject == "start":
                        found = measure_start(starts[name])
                    else:
                        found = getattr(contests[name], subject)()
                    for figure, value in found.items():
                        figures[figure][name].append(value)
    finally:
        for server in running.values():
            server.stop()
    report(figures, peer, words.rounds)


def report(figures: dict[str, dict[str, list[float]]], peer: str, rounds: int) -> None:
    """Print the table and save it with the raw figures."""
    stamp = time.strftime("%Y-%m-%d-%H%M%S")
    head = [
        f"# {stamp}: ottla beside {peer}",
        "",
        f"Medians of {rounds} interleaved rounds; {platform.machine()}, Linux "
        f"{platform.release()}, Python {platform.python_version()}. Command: `make bench`.",
        "",
    ]
    lines = [*head, *table(figures, peer), ""]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{stamp}.md").write_text("\n".join(lines))
    (RESULTS / f"{stamp}.json").write_text(json.dumps(figures, indent=1))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
