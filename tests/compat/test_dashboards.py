"""Dashboards and alert rules for Apache Kafka, evaluated by a real Prometheus.

The expressions come from Strimzi's and kafka_exporter's own files, unmodified; a cluster of
three under load is scraped. Alerts are evaluated by their expressions, without the time that they
have to last (`for`).
"""

import asyncio
import errno
import hashlib
import os
import resource
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer, Producer

from ottla.base.clock import RealClock
from ottla.testing import Cluster
from ottla.tools.generate import alert_rules, prometheus_config
from ottla.tools.generate.panels import rows
from tests.compat.prometheus import (
    PATIENCE_SECONDS,
    SCRAPE_INTERVAL,
    Expression,
    Prometheus,
    alerts_of,
    expressions,
    names,
)

# A cluster of three, Prometheus and several faults take 20 s: the only proof that dashboards work.
pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.needs("prometheus"),
]

OPTIONS = {
    "metrics.listener": "127.0.0.1:0",
    "metrics.dialects": (
        "jmx-exporter,kafka-exporter,strimzi-reporter,confluent,kafka-lag-exporter"
    ),
    "metrics.jvm.names": "true",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "3",
    "min.insync.replicas": "2",
    "auto.create.topics.enable": "false",
    "num.partitions": "2",
}
# The time for which a call blocks the event loop.
_BLOCKED_S = 0.005
NAMESPACE, CLUSTER = "kafka", "my-cluster"
TOPICS = ("orders", "events")
STRIMZI = {
    "kubernetes_namespace": NAMESPACE,
    "strimzi_cluster_name": CLUSTER,
    "kafka_broker": ".*",
    "kafka_topic": ".+",
    "kafka_partition": ".*",
    "consumergroup": ".*",
    "topic": ".*",
    "__rate_interval": "1m",
}
OWN = {"job": "ottla", "broker": ".*", "topic": ".*", "group": ".*", "__rate_interval": "1m"}


class TwoDirectories(Cluster):
    """A cluster whose brokers have two log directories; one of them may fail."""

    def _settings(self, number: int) -> dict[str, str]:
        settings = super()._settings(number)
        folder = settings["log.dirs"]
        return settings | {"log.dirs": f"{folder}/a,{folder}/b"}

    def fail_directory(self, broker: int) -> None:
        """Let a broker's second directory fail when a file is created there."""
        disk = self._running[broker].disk
        working = disk.open

        def failing(path: str, *, create: bool = False) -> Any:
            if create and "/b/" in path:
                raise OSError(errno.EIO, os.strerror(errno.EIO), path)
            return working(path, create=create)

        disk.open = failing  # type: ignore[method-assign]

    def targets(self) -> dict[int, str]:
        """Return the metrics listener of each live broker."""
        entries = {}
        for number in self.live_brokers:
            address = self._running[number].node.monitoring_address
            assert address is not None
            entries[number] = f"{address[0]}:{address[1]}"
        return entries


class Traffic:
    """Produces to every partition and consumes in a group until it is stopped."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=run) for run in (self._produce, self._consume)]

    def start(self) -> "Traffic":
        """Start both threads."""
        for thread in self._threads:
            thread.start()
        return self

    def stop(self) -> None:
        """Stop both threads."""
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 0})
        while not self._is_over.wait(0.1):
            for topic in TOPICS:
                for partition in range(2):
                    producer.produce(topic, b"value", partition=partition)
            producer.poll(0)
        producer.flush(5)

    def _consume(self) -> None:
        settings = {
            "bootstrap.servers": self._bootstrap,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 100,
        }
        consumer = Consumer(settings)
        consumer.subscribe(list(TOPICS))
        while not self._is_over.is_set():
            consumer.poll(0.1)
        consumer.close()


def config_for(targets: dict[int, str], interval: str = SCRAPE_INTERVAL) -> dict[str, Any]:
    """Return a configuration with Ottla's own job, and one with the labels of Strimzi's PodMonitor.

    `interval` is the time between two scrapes, and the longest time that one may take.
    """
    own = prometheus_config.text_of(CLUSTER, tuple(targets.values()), interval, ())
    config: dict[str, Any] = yaml.safe_load(own)
    pods = [
        {
            "targets": [target],
            "labels": {
                "namespace": NAMESPACE,
                "strimzi_io_cluster": CLUSTER,
                "strimzi_io_name": f"{CLUSTER}-kafka",
                "kubernetes_pod_name": f"{CLUSTER}-kafka-{number}",
                "container": "kafka",
            },
        }
        for number, target in targets.items()
    ]
    config["scrape_configs"].append({"job_name": "strimzi", "static_configs": pods})
    config["global"] |= {"scrape_timeout": interval}
    return config


@pytest.fixture(scope="module")
def cluster() -> Iterator[TwoDirectories]:
    """Yield a cluster of three with topics that get records all the time."""
    with TwoDirectories(brokers=3, options=OPTIONS) as running:
        for topic in TOPICS:
            running.create_topic(topic, partitions=2, replication_factor=3)
        traffic = Traffic(running.bootstrap).start()
        try:
            yield running
        finally:
            traffic.stop()


@pytest.fixture(scope="module")
def prometheus(
    cluster: TwoDirectories, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    """Yield a Prometheus that has scraped each broker several times."""
    server = Prometheus(tmp_path_factory.mktemp("prometheus"))
    server.configure(config_for(cluster.targets()))
    with server:
        members = 'count_over_time(kafka_consumergroup_members{consumergroup="readers"}[1m]) > 3'
        server.wait_for(Expression("several scrapes", f"count({members}) >= 2"))
        yield server


@pytest.mark.parametrize(
    "name", ["strimzi-kafka.txt", "strimzi-kafka-exporter.txt", "strimzi-kafka-reporter.txt"]
)
def test_every_panel_of_strimzis_dashboards_has_data(prometheus: Prometheus, name: str) -> None:
    """The expressions are unmodified, with the labels of Strimzi's PodMonitor."""
    results = [expression.with_variables(STRIMZI) for expression in expressions(name)]
    assert len(results) >= 15
    assert prometheus.without_data(results) == []


def test_every_panel_of_kafka_exporters_dashboard_has_data(prometheus: Prometheus) -> None:
    """It shows one instance: the generated configuration makes the cluster one instance."""
    (instance,) = {
        series["metric"]["instance"]
        for series in prometheus.query('kafka_consumergroup_current_offset{job="ottla"}')
    }
    assert instance == CLUSTER
    variables = {"instance": instance, "topic": "|".join(TOPICS)}
    results = [
        expression.with_variables(variables)
        for expression in expressions("kafka-exporter-overview.txt")
    ]
    assert prometheus.without_data(results) == []
    (_, lag, *_), topics = results, results[-1]
    assert {sample["metric"]["topic"] for sample in prometheus.query(lag.text)} == set(TOPICS)
    assert [sample["value"][1] for sample in prometheus.query(topics.text)] == ["2", "2"]


def test_strimzis_numbers_are_right(prometheus: Prometheus) -> None:
    """Sums count each partition, topic and broker once."""
    entries = {
        expression.title: expression.with_variables(STRIMZI)
        for expression in expressions("strimzi-kafka.txt")
    }
    entries |= {
        f"exporter: {expression.title}": expression.with_variables(STRIMZI)
        for expression in expressions("strimzi-kafka-exporter.txt")
    }
    expected = {
        "Brokers Online": 3,
        "Active Controllers": 1,
        "Online Replicas": 15,
        "Under Replicated Partitions": 0,
        "Offline Partitions Count": 0,
        "Partitions under minimum ISR": 0,
        "exporter: Topics": 3 * 2,
        "exporter: Partitions": 5 * 2,
        "exporter: Replicas": 15,
    }
    output = {}
    for title in expected:
        (series,) = prometheus.query(entries[title].text)
        output[title] = float(series["value"][1])
    # The exporter's board selects by namespace only, which one of the two jobs has.
    assert output == expected | {"exporter: Topics": 3, "exporter: Partitions": 5}


def test_every_panel_of_the_own_dashboard_has_data(prometheus: Prometheus) -> None:
    """The panel of errors is not checked: it is empty without errors."""
    results = [
        Expression(panel.title, query.expression).with_variables(OWN)
        for row in rows()
        for panel in row.panels
        if panel.title != "Errors"
        for query in panel.queries
    ]
    assert len(results) > 30
    assert prometheus.without_data(results) == []


@pytest.mark.parametrize("name", ["confluent-names.txt", "kafka-lag-exporter-names.txt"])
def test_the_names_that_other_dashboards_read_have_data(prometheus: Prometheus, name: str) -> None:
    """Confluent's boards and kafka-lag-exporter's find every name, with the labels they select."""
    found = names(name)
    assert len(found) >= 6
    assert [panel.title for panel in prometheus.without_data(found)] == []


def own_rules() -> dict[str, Expression]:
    """Return the alerts of `ottla generate alert-rules` by name."""
    # The disk of the machine that runs the test may be almost full.
    text = alert_rules.text_of(alert_rules.AlertThresholds(disk_percent=1))
    return {alert.title: alert for alert in alerts_of(text)}


def test_alerts_fire_when_their_faults_are_injected(
    cluster: TwoDirectories, prometheus: Prometheus
) -> None:
    """Strimzi's and the own alerts are silent without a fault, fire with it, and end after it."""
    rules = own_rules() | {
        expression.title: expression for expression in expressions("strimzi-rules.txt")
    }
    assert len(rules) == 17 + 9
    prometheus.wait_for_silence(list(rules.values()))

    for sessions in cluster._sessions.values():
        sessions.suspend()
    for name in ("AbnormalControllerState", "OttlaNoActiveController"):
        prometheus.wait_for(rules[name])
    for sessions in cluster._sessions.values():
        sessions.resume()

    first, second = (broker for broker in cluster.brokers if broker != cluster.controller())
    cluster.create_topic("single", partitions=3)
    # One partition has no replica on the controller: it loses both, and the wrong one returns.
    unclean = {"unclean.leader.election.enable": "true"}
    cluster.create_topic("risky", partitions=3, replication_factor=2, config=unclean)
    cluster.kill(first)
    for name in (
        "UnderReplicatedPartitions",
        "UnderReplicatedPartition",
        "OfflinePartitions",
        "ScrapeProblem",
        "OttlaBrokerDown",
        "OttlaPartitionsOffline",
        "OttlaPartitionsUnderReplicated",
    ):
        prometheus.wait_for(rules[name])
    cluster.kill(second)
    for name in ("UnderMinIsrPartitionCount", "OttlaPartitionsUnderMinIsr"):
        prometheus.wait_for(rules[name])
    cluster.restart(first)
    prometheus.configure(config_for(cluster.targets()))
    prometheus.wait_for(rules["OttlaUncleanElection"])
    cluster.restart(second)
    prometheus.configure(config_for(cluster.targets()))
    # The topic without records keeps one alert firing.
    prometheus.wait_for(rules["NoMessageForTooLong"])
    lasting = {"NoMessageForTooLong", "OttlaCoordinationSessionLost", "OttlaUncleanElection"}
    prometheus.wait_for_silence([rules[name] for name in rules.keys() - lasting])


def wait_until_registered(cluster: Cluster, broker: int, former_epoch: int) -> None:
    """Wait until the controller knows the registration of a broker after `former_epoch`."""
    deadline, pause = RealClock().monotonic() + PATIENCE_SECONDS, threading.Event()
    while broker_epoch(cluster, broker) <= former_epoch:
        assert RealClock().monotonic() < deadline, "the broker does not register again"
        pause.wait(0.05)


def broker_epoch(cluster: Cluster, broker: int) -> int:
    """Return the epoch of a broker's registration as the controller knows it; -1 without one."""
    known = cluster.node(cluster.controller()).broker.image.brokers.get(broker)
    return -1 if known is None else known.epoch


def test_alerts_of_groups_and_disks_fire(cluster: TwoDirectories, prometheus: Prometheus) -> None:
    """A group that lags in records and in seconds, a lost session, a failed directory."""
    rules = own_rules() | {
        expression.title: expression for expression in expressions("strimzi-rules.txt")
    }
    cluster.create_topic("behind", partitions=3, config={"retention.ms": "-1"})
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for _ in range(1500):
        # 2001: the lag in seconds is the age of the first record that is not consumed.
        producer.produce("behind", b"value", partition=0, timestamp=10**12)
    assert producer.flush(20) == 0
    group = {"bootstrap.servers": cluster.bootstrap, "group.id": "late"}
    consumer = Consumer(group | {"auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.subscribe(["behind"])
    message = None
    while message is None or message.partition() != 0:
        message = consumer.poll(1)
    consumer.commit(message, asynchronous=False)
    for name in ("TooLargeConsumerGroupLag", "OttlaGroupBehind"):
        prometheus.wait_for(rules[name])
    consumer.close()
    prometheus.wait_for(rules["OttlaGroupWithoutMembers"])

    broker = next(node for node in cluster.brokers if node != cluster.controller())
    epoch = broker_epoch(cluster, broker)
    cluster.expire_session(broker)
    prometheus.wait_for(rules["OttlaCoordinationSessionLost"])

    wait_until_registered(cluster, broker, epoch)
    cluster.fail_directory(broker)
    cluster.create_topic("more", partitions=6, replication_factor=3)
    for name in ("OfflineLogDirectoryCount", "OttlaLogDirectoryOffline"):
        prometheus.wait_for(rules[name])


def test_alerts_of_a_process_and_its_files_fire(
    cluster: TwoDirectories, prometheus: Prometheus
) -> None:
    """A full disk, few descriptors, a blocked event loop, a failed task, a damaged log."""
    rules = own_rules()
    broker = cluster.controller()
    running = cluster._running[broker]
    names = (
        *("OttlaDiskAlmostFull", "OttlaFewDescriptorsLeft", "OttlaEventLoopBusy"),
        "OttlaBackgroundTaskFailed",
    )
    prometheus.wait_for_silence([rules[name] for name in (*names, "OttlaDamagedPartitions")])

    running.disk.free_bytes = lambda path: 0  # type: ignore[method-assign]
    prometheus.wait_for(rules["OttlaDiskAlmostFull"])
    del running.disk.free_bytes

    with few_descriptors():
        prometheus.wait_for(rules["OttlaFewDescriptorsLeft"])

    # A scrape waits for several of the calls that block the loop.
    prometheus.configure(config_for(cluster.targets(), interval="2s"))
    with blocked(running):
        prometheus.wait_for(rules["OttlaEventLoopBusy"])
    prometheus.configure(config_for(cluster.targets()))

    fails = asyncio.Event()
    failures: list[Exception] = []

    async def work() -> None:
        await fails.wait()
        if not failures:
            failures.append(LookupError("injected"))
            raise failures[0]

    running._loop.call_soon_threadsafe(running.node._tasks.supervise, work, "trial")
    count = 'ottla_background_task_failures_total{task="trial"}'
    prometheus.wait_for(Expression("scraped twice", f"count_over_time({count}[1m]) > 1"))
    running._loop.call_soon_threadsafe(fails.set)
    prometheus.wait_for(rules["OttlaBackgroundTaskFailed"])
    prometheus.wait_for_silence([rules[name] for name in names[:3]])

    damage(cluster, "torn")
    prometheus.configure(config_for(cluster.targets()))
    prometheus.wait_for(rules["OttlaDamagedPartitions"])
    assert repr(failures) == "[LookupError('injected')]"


@contextmanager
def few_descriptors() -> Iterator[None]:
    """Use 92 % of the process's descriptors; more than the reserve is left, for the scrapes."""
    former = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as held:
        for _ in range(1500):
            held.enter_context(Path(os.devnull).open("rb"))
        used = len(os.listdir("/proc/self/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(used / 0.92), former[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, former)


@contextmanager
def blocked(running: Any) -> Iterator[None]:
    """Block a broker's event loop by calls that compute, one after the other.

    The rule is about the processor time of a minute, which the loop's thread does not get on a
    machine that has other work. Here it gets all the time that passes, as on a free processor.
    """
    watch, loop, is_over = running.node._loop_watch, running._loop, threading.Event()
    clock = watch._clock

    def compute() -> None:
        until = clock.monotonic() + _BLOCKED_S
        while clock.monotonic() < until:
            # Without Python's lock: the other brokers of this process continue.
            hashlib.pbkdf2_hmac("sha256", b"a", b"b", 1_000)
        if not is_over.is_set():
            loop.call_soon(compute)

    watch._clock = SimpleNamespace(monotonic=clock.monotonic, cpu_seconds=clock.monotonic)
    loop.call_soon_threadsafe(compute)
    try:
        yield
    finally:
        is_over.set()
        watch._clock = clock


def damage(cluster: TwoDirectories, topic: str) -> None:
    """Overwrite the first segment of a new topic with zeros, and restart its broker."""
    cluster.create_topic(topic, config={"segment.bytes": str(1 << 20)})
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for _ in range(3):
        producer.produce(topic, bytes(700_000))
        assert producer.flush(20) == 0
    leader = cluster.leader(topic)
    folders = (cluster.data / f"broker{leader}").glob(f"*/{topic}-0")
    first, *others = sorted(next(folders).glob("*.log"))
    assert others
    first.write_bytes(bytes(first.stat().st_size))
    cluster.restart(leader)


def test_lists_of_expressions_name_their_source() -> None:
    """Each list begins with the address of the file that it was taken from."""
    folder = Path(__file__).parent / "dashboards"
    notice = (folder / "NOTICE").read_text("utf-8")
    for path in sorted(folder.glob("*.txt")):
        assert path.read_text("utf-8").startswith("# https://github.com/")
        assert path.name in notice or (
            path.name.startswith("strimzi-") and "strimzi-*.txt" in notice
        )
