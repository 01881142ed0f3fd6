"""The Apache Kafka brokers for recordings: 4.3.0 as its own controller, 3.9.2 with a ZooKeeper."""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ottla.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.compat import java, zookeeper
from tests.compat.recorded.player import Line, Target, ask
from tests.compat.recorded.transcript import MODERN, OLDER

# Only settings that make a recording faster or reproducible; Ottla gets those that it supports.
OPTIONS: Mapping[str, str] = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    # A heartbeat returns the assignment that it has caused (KIP-1263 lets it come later).
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.assignor.offload.enable": "false",
}
_QUIET: Mapping[str, str] = {
    # Old timestamps are not deleted while a file is played.
    "log.retention.check.interval.ms": "3600000",
    "log.initial.task.delay.ms": "3600000",
}
# A broker serves telemetry (KIP-714) only if a plug-in receives the metrics: an option of the
# transcript, metric.reporters=TelemetryReceiver, requests this one.
_RECEIVER = """
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.telemetry.ClientTelemetry;
import org.apache.kafka.server.telemetry.ClientTelemetryReceiver;

public class TelemetryReceiver implements MetricsReporter, ClientTelemetry {
    public ClientTelemetryReceiver clientReceiver() { return (context, payload) -> { }; }
    public void init(List<KafkaMetric> metrics) { }
    public void metricChange(KafkaMetric metric) { }
    public void metricRemoval(KafkaMetric metric) { }
    public void close() { }
    public void configure(Map<String, ?> configs) { }
}
"""
# The authorizer of the modern version has another name, and the same options.
_AUTHORIZERS = {"AclAuthorizer": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
_SETTLING_S = 0.4
_PATIENCE_S = 60.0


@contextlib.contextmanager
def running(
    version: str,
    folder: Path,
    options: Mapping[str, str],
    java_options: Sequence[str] = (),
    listeners: Sequence[str] = (),
) -> Iterator[Target]:
    """Run an Apache Kafka broker with these options until the end of the block.

    `listeners` are further ones of the modern version.
    """
    settings = {**OPTIONS, **_QUIET, **options}
    if version == MODERN and "authorizer.class.name" in settings:
        settings["authorizer.class.name"] = _AUTHORIZERS[
            settings["authorizer.class.name"].rpartition(".")[2]
        ]
    count = int(settings.pop("log.dirs", "1"))
    rows = [f"{name}={value}" for name, value in settings.items()]
    # As many as the transcript says; the first one is the node's own.
    rows.append("log.dirs=" + ",".join(str(folder / f"data{n or ''}") for n in range(count)))
    with contextlib.ExitStack() as stack:
        node: java.KafkaNode
        if version == OLDER:
            address = stack.enter_context(zookeeper.running(folder / "zookeeper"))
            node = zookeeper.Broker(folder, address, options=rows)
        else:
            node = _Modern(folder, rows, listeners)
        if "metric.reporters" in options:
            node.class_path += os.pathsep + _compile_receiver(folder, node.class_path)
        stack.callback(node.kill)
        node.java_options = tuple(java_options)
        node.start()
        target = Target("127.0.0.1", node.port, settling_s=_SETTLING_S, controller=node.controller)
        _wait_for_brokers(target)
        yield target


def _compile_receiver(folder: Path, class_path: str) -> str:
    source, target = folder / "TelemetryReceiver.java", folder / "classes"
    source.write_text(_RECEIVER)
    subprocess.run(
        ["javac", "-nowarn", "-cp", class_path, "-d", str(target), str(source)],
        check=True,
        capture_output=True,
    )
    return str(target)


class _Modern(java.KafkaNode):
    """A broker that is its own controller."""

    def __init__(self, folder: Path, options: list[str], listeners: Sequence[str]) -> None:
        super().__init__(folder, options, version=MODERN, listeners=listeners)
        # Eligible leader replicas would add min.insync.replicas to every topic's settings.
        java.run(
            self.class_path,
            "kafka.tools.StorageTool",
            *("format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", str(folder / "server.properties")),
            *("--feature", "eligible.leader.replicas.version=0"),
        )


def _wait_for_brokers(target: Target) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        with contextlib.closing(Line(target)) as line:
            cluster = ask(line, DescribeClusterRequest(), 0, DescribeClusterResponse)
            producer = ask(
                line, InitProducerIdRequest(transactional_id=None), 2, InitProducerIdResponse
            )
        if cluster.brokers and cluster.controller_id >= 0 and not producer.error_code:
            return
        assert time.monotonic() < deadline, "the broker is not part of its cluster"
        time.sleep(0.1)
