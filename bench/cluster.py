"""Compare a cluster of three Ottla brokers with three Apache Kafka 3.9.2 brokers, both on
ZooKeeper.

`python -m bench.cluster` runs both clusters at the same time and alternates between them; each
figure is the median of several rounds. The topics have three replicas, and every write has acks=all
with min.insync.replicas=2. CPU time is the sum of all three brokers; ZooKeeper's is not counted.

    python -m bench.cluster --rounds 5 --seconds 5
    python -m bench.cluster --only record --rounds 5 --seconds 3
    python -m bench.cluster --only failover controller --sessions 18000 6000 2000
    python -m bench.cluster --only start partitions --rounds 3
"""

import argparse
import json
import math
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from bench.compiled import compiled
from bench.failover import fail_over
from bench.load import produce_request, run_compiled
from bench.one_record import AIMS as RECORD_AIMS
from bench.one_record import one_record, prepare
from bench.servers import processor_seconds
from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.client.admin import topics
from tests.compat import java
from tests.process.broker_cluster import BrokerCluster, wait
from tests.process.zookeeper_servers import ZooKeeper

KAFKA_VERSION = "3.9.2"
RESULTS = Path(__file__).parent / "results"
_START_S = 90.0
_RECORD_BYTES = 1000
_BATCH_RECORDS = 100
_DEPTH = 5
_WARM_SECONDS = 1.0
_COMPILE_SECONDS = 8.0
_PARTITIONS = 1000
_MANY = "bench-many"
_LOG4J = """log4j.rootLogger=WARN, C
log4j.appender.C=org.apache.log4j.ConsoleAppender
log4j.appender.C.layout=org.apache.log4j.SimpleLayout
"""
Figures = dict[str, float]
# The aims of issue 14, as ratios to Kafka.
AIMS: dict[str, float | str] = {
    "1 partition MB/s": 1.5,
    "1 partition CPU s/GB": 0.5,
    "6 partitions MB/s": 1.5,
    "6 partitions CPU s/GB": 0.5,
    "one in flight p50 us": 1.0,
    "one in flight p99 us": 0.5,
    "memory of an idle broker MB": 0.15,
    **RECORD_AIMS,
}
# A minute of throughput writes tens of gigabytes, which must not fill the disk.
_SOON_DELETED = {"log.retention.check.interval.ms": "5000"}
PARTS = ("throughput", "record", "failover", "controller", "start", "partitions")


class OttlaCluster(BrokerCluster):
    """Ottla brokers."""

    shows_logs = False


class KafkaCluster(BrokerCluster):
    """Apache Kafka brokers with the heap and the garbage collector of its own script."""

    shows_logs = False

    def _spawn(self, number: int) -> "subprocess.Popen[str]":
        properties = self.folder / f"server{number}.properties"
        rows = self._rows(number)
        properties.write_text("\n".join(f"{key}={value}" for key, value in rows.items()))
        logging = self.folder / "log4j.properties"
        logging.write_text(_LOG4J)
        command = ["java", "-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC"]
        command += ["-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35"]
        command += ["-XX:+ExplicitGCInvokesConcurrent", f"-Dlog4j.configuration=file:{logging}"]
        command += ["-cp", java.kafka_class_path(KAFKA_VERSION), "kafka.Kafka", str(properties)]
        with (self.folder / f"broker{number}.err").open("ab") as errors:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                text=True,
                start_new_session=True,
            )

    def _await_ready(self, number: int) -> None:
        process = self._processes[number]

        def answers() -> bool:
            assert process.poll() is None, self.log(number)[-3000:]
            try:
                socket.create_connection((self.host(number), self.port(number)), 1).close()
            except OSError:
                return False
            return True

        wait(answers, f"Kafka broker {number} listens", _START_S)


def cpu_seconds(cluster: BrokerCluster) -> dict[int, float]:
    """Return the processor time of each broker so far."""
    return {number: processor_seconds(cluster.process_id(number)) for number in cluster.running}


def memory_mb(cluster: BrokerCluster) -> float:
    """Return the mean resident memory of a broker."""
    sizes = []
    for number in cluster.running:
        status = Path(f"/proc/{cluster.process_id(number)}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("VmRSS")]
        sizes.append(int(line.split()[1]) / 1024)
    return statistics.mean(sizes)


def write(cluster: BrokerCluster, topic: str, records: int, depth: int, seconds: float) -> Figures:
    """Write to every partition's leader at the same time; return rates and CPU time."""
    program = compiled("generator.c")
    assert program is not None, "a C compiler is required"
    by_leader: dict[int, list[bytes]] = defaultdict(list)
    for row in cluster.partitions(topic):
        request = produce_request(topic, row.partition, records, _RECORD_BYTES, acks=-1)
        by_leader[row.leader].append(request)
    values: list[dict[str, float]] = []

    def run(leader: int, requests: list[bytes]) -> None:
        values.append(run_compiled(program, cluster.port(leader), requests, depth, seconds))

    threads = [threading.Thread(target=run, args=item) for item in by_leader.items()]
    before, started = cpu_seconds(cluster), time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed, after = time.perf_counter() - started, cpu_seconds(cluster)
    used = {number: after[number] - before[number] for number in after}
    written = sum(item["requests"] for item in values) * records * _RECORD_BYTES
    following = [used[number] for number in used if number not in by_leader]
    return {
        "MB/s": written / elapsed / 1e6,
        "CPU s/GB": sum(used.values()) / (written / 1e9),
        "CPU of the leader s/GB": sum(used[number] for number in by_leader) / (written / 1e9),
        # NaN if every broker leads a partition.
        "CPU of a follower s/GB": statistics.mean(following or [math.nan]) / (written / 1e9),
        "p50 us": statistics.median(item["p50_us"] for item in values),
        "p99 us": max(item["p99_us"] for item in values),
    }


def throughput(cluster: BrokerCluster, seconds: float) -> Figures:
    """Return the figures of writing with acks=all: batches, and one small record in flight."""
    figures: Figures = {}
    for partitions in (1, 6):
        topic = f"bench-{partitions}"
        write(cluster, topic, _BATCH_RECORDS, _DEPTH, _WARM_SECONDS)
        result = write(cluster, topic, _BATCH_RECORDS, _DEPTH, seconds)
        name, keys = f"{partitions} partitions", ["MB/s", "CPU s/GB"]
        if partitions == 1:
            name = "1 partition"
            keys += ["CPU of the leader s/GB", "CPU of a follower s/GB"]
        figures |= {f"{name} {key}": result[key] for key in keys}
    write(cluster, "bench-1", 1, 1, _WARM_SECONDS)
    result = write(cluster, "bench-1", 1, 1, seconds)
    figures |= {f"one in flight {key}": result[key] for key in ("p50 us", "p99 us")}
    figures["memory of a broker MB"] = memory_mb(cluster)
    return figures


def controller_failover(cluster: BrokerCluster) -> float:
    """Kill the controller; return the time until a client has created a topic.

    Each attempt has a new client, which has never heard of the dead controller.
    """
    victim = cluster.controller()
    name = f"bench-controller-{time.monotonic_ns()}"
    started = time.perf_counter()
    cluster.kill(victim)
    wait(lambda: _creates(cluster, name), "a topic is created", 90)
    seconds = time.perf_counter() - started
    cluster.start(victim)
    wait(lambda: cluster.known() == set(cluster.ids), "all brokers know each other", _START_S)
    cluster.wait_in_sync("bench-1", 60)
    return seconds


def _creates(cluster: BrokerCluster, name: str) -> bool:
    """Create a topic on the brokers that run; return True if it exists then."""
    try:
        with cluster.admin() as brokers:
            topics.create_topic(brokers, name, partitions=1, replication_factor=2)
    except (OttlaError, OSError) as error:
        return isinstance(error, ApiError) and error.code is ErrorCode.TOPIC_ALREADY_EXISTS
    return True


def start(cluster: BrokerCluster) -> Figures:
    """Stop all brokers, start them again, and return the time until each knows the others."""
    for number in cluster.ids:
        cluster.stop(number)
    started = time.perf_counter()
    cluster.start(*cluster.ids)
    wait(lambda: cluster.known() == set(cluster.ids), "all brokers know each other", _START_S)
    seconds = time.perf_counter() - started
    return {"start of three brokers s": seconds, "memory of an idle broker MB": memory_mb(cluster)}


def many_partitions(cluster: BrokerCluster) -> Figures:
    """Create and delete a topic of 1 000 partitions with three replicas each."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    before = memory_mb(cluster)
    started = time.perf_counter()
    new = NewTopic(_MANY, _PARTITIONS, 3)
    admin.create_topics([new], request_timeout=120, operation_timeout=120)[_MANY].result()
    wait(lambda: _count_led(cluster) == len(cluster.ids) * _PARTITIONS, "all have leaders", 120)
    created = time.perf_counter() - started
    used = memory_mb(cluster) - before
    started = time.perf_counter()
    admin.delete_topics([_MANY], request_timeout=120, operation_timeout=120)[_MANY].result()
    wait(lambda: not _has_folders(cluster), "all logs are deleted", 180)
    deleted = time.perf_counter() - started
    return {
        "1 000 partitions created s": created,
        "1 000 partitions deleted s": deleted,
        "memory of a replica KB": 1000 * used / _PARTITIONS,
    }


def _count_led(cluster: BrokerCluster) -> int:
    """Return the partitions that have a leader and a complete ISR, as each broker reports them."""
    rows = [row for number in cluster.ids for row in cluster.partitions(_MANY, number)]
    return sum(row.leader >= 0 and len(row.isr) == len(cluster.ids) for row in rows)


def _has_folders(cluster: BrokerCluster) -> bool:
    """Return True while a broker has a log that is not about to be removed."""
    names = [path.name for n in cluster.ids for path in cluster.data(n).glob(f"{_MANY}-*")]
    return any(not name.endswith("-delete") for name in names)


@contextmanager
def both(session_ms: int, compile_seconds: float) -> Iterator[dict[str, BrokerCluster]]:
    """Run both clusters, each on a ZooKeeper of its own, with the topics of the benchmark."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cluster-bench-")))
        clusters: dict[str, BrokerCluster] = {}
        for name, kind in (("ottla", OttlaCluster), ("kafka", KafkaCluster)):
            own = folder / name
            own.mkdir()
            server = ZooKeeper(own / "zookeeper")
            server.start()
            stack.callback(server.kill)
            options = {"zookeeper.session.timeout.ms": str(session_ms), **_SOON_DELETED}
            cluster = kind(own, zookeeper=server.address, options=options)
            started = time.perf_counter()
            clusters[name] = stack.enter_context(cluster)
            print(f"{name}: three brokers in {time.perf_counter() - started:.1f} s", flush=True)
            # The prepared records have an old timestamp.
            remaining = {
                "retention.ms": "-1",
                "retention.bytes": "200000000",
                "segment.bytes": "100000000",
                "file.delete.delay.ms": "1000",
            }
            cluster.create_topic("bench-1", partitions=1, config=remaining)
            cluster.create_topic("bench-6", partitions=6, config=remaining)
            # The first pass compiles Java's hot paths.
            for topic in ("bench-1", "bench-6") if compile_seconds else ():
                write(cluster, topic, _BATCH_RECORDS, _DEPTH, compile_seconds)
        yield clusters


def alternate(
    clusters: dict[str, BrokerCluster], rounds: int, measure: Callable[[BrokerCluster], Figures]
) -> dict[str, Figures]:
    """Return the median of each figure for each cluster; the order alternates."""
    by_key: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in clusters}
    for number in range(rounds):
        names = list(clusters)
        for name in names if number % 2 == 0 else reversed(names):
            for key, value in measure(clusters[name]).items():
                by_key[name][key].append(value)
                print(f"round {number + 1} {name} {key}: {value:.3g}", flush=True)
    return {
        name: {key: statistics.median(values) for key, values in figures.items()}
        for name, figures in by_key.items()
    }


def table(result: dict[str, Figures]) -> str:
    """Return a Markdown table with the ratio to Kafka and its aim."""
    lines = ["| figure | Ottla | Kafka 3.9.2 | ratio | aim |", "|---|---|---|---|---|"]
    for key, ours in result["ottla"].items():
        theirs = result["kafka"][key]
        ratio = f"{ours / theirs:.2f}" if theirs else ""
        aim = AIMS.get(key)
        lines.append(f"| {key} | {ours:.4g} | {theirs:.4g} | {ratio} | {aim or ''} |")
    return "\n".join(lines) + "\n"


def gaps(cluster: BrokerCluster, *, session_ms: int, parts: Collection[str]) -> Figures:
    """Kill and stop brokers; return how long writers, and those who create topics, had to wait."""
    label = f"session {session_ms // 1000} s, s"
    figures: Figures = {}
    for fault in ("kill -9", "SIGSTOP") if "failover" in parts else ():
        found = fail_over(cluster, "bench-1", is_silent=fault == "SIGSTOP")
        figures[f"gap after {fault}, {label}"] = found.pause
        figures[f"brokers know the leader after {fault}, {label}"] = found.known
        figures[f"raw client has written after {fault}, {label}"] = found.written
    if "controller" in parts:
        figures[f"controller fail-over after kill -9, {label}"] = controller_failover(cluster)
    return figures


def run(words: argparse.Namespace) -> None:
    """Measure, print and store the result."""
    result: dict[str, Figures] = {"ottla": {}, "kafka": {}}
    rounds, warm_seconds = words.rounds, words.warm_seconds

    def note(medians: dict[str, Figures]) -> None:
        for name, figures in medians.items():
            result[name] |= figures

    if "throughput" in words.only:
        with both(18_000, warm_seconds) as clusters:
            note(alternate(clusters, rounds, lambda cluster: throughput(cluster, words.seconds)))
    if "record" in words.only:
        with both(18_000, 0) as clusters:
            for cluster in clusters.values():
                prepare(cluster, warm_seconds)
            note(alternate(clusters, rounds, lambda cluster: one_record(cluster, words.seconds)))
    others: dict[str, Callable[[BrokerCluster], Figures]] = {
        "start": start, "partitions": many_partitions,
    }  # fmt: skip
    for part, measure in others.items():
        if part in words.only:
            with both(18_000, 0) as clusters:
                note(alternate(clusters, rounds, measure))
    if {"failover", "controller"} & set(words.only):
        for session_ms in words.sessions:
            measure = partial(gaps, session_ms=session_ms, parts=words.only)
            with both(session_ms, warm_seconds) as clusters:
                note(alternate(clusters, max(1, rounds // 2), measure))
    text = table(result)
    print(text)
    stamp = time.strftime("%Y-%m-%d-%H%M%S", time.gmtime())
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{stamp}-cluster.json").write_text(json.dumps(result, indent=2) + "\n")
    (RESULTS / f"{stamp}-cluster.md").write_text(text)


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--sessions", type=int, nargs="+", default=[18_000, 6_000, 2_000])
    parser.add_argument("--warm-seconds", type=float, default=_COMPILE_SECONDS)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    run(parser.parse_args())


if __name__ == "__main__":
    main()
