"""Client metrics with foreign clients: librdkafka and the Java client push the requested metrics."""

import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, Producer

from ottla.server.telemetry.clients import Pushed
from ottla.server.telemetry.otlp import figures
from ottla.testing.cluster import Cluster
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.compat import java

pytestmark = [pytest.mark.compat, pytest.mark.slow]

CLIENT_METRICS = 16


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Return a broker without a subscription to metrics."""
    with Cluster() as running:
        yield running


def subscribe(cluster: Cluster, **settings: str) -> None:
    """Subscribe to metrics of clients (dots of names as underscores)."""
    resource = AlterConfigsResource(
        resource_type=CLIENT_METRICS,
        resource_name="all",
        configs=[
            AlterableConfig(name=name.replace("_", "."), config_operation=0, value=value)
            for name, value in settings.items()
        ],
    )
    with cluster.admin() as brokers:
        request = IncrementalAlterConfigsRequest(resources=[resource])
        response = brokers.ask(request, IncrementalAlterConfigsResponse)
    assert response.responses[0].error_code == 0


def advertised(cluster: Cluster) -> set[int]:
    """Return the API keys that the broker advertises."""
    with cluster.admin() as brokers:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        return {item.api_key for item in brokers.ask(request, ApiVersionsResponse).api_keys}


def pushed(cluster: Cluster) -> list[Pushed]:
    """Return the stored payloads."""
    return cluster.node(cluster.live_brokers[0]).broker.client_metrics.pushed()


def names(payload: bytes, prefix: str) -> set[str]:
    """Return the names of the figures in a payload; all must begin with the prefix."""
    result = {figure.name for figure in figures(payload)}
    assert all(name.startswith(prefix) for name in result)
    return result


def until(condition: Callable[[], object], act: Callable[[], object]) -> None:
    """Act until a condition holds; clients push at times of their own."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "nothing was pushed"
        act()


def test_apis_are_advertised_only_with_subscription(cluster: Cluster) -> None:
    """The APIs are advertised only while there is a subscription, also after restarts."""
    apis = {71, 72}
    assert not apis & advertised(cluster)
    subscribe(cluster, metrics="*")
    assert apis <= advertised(cluster)
    cluster.restart()
    assert apis <= advertised(cluster)


def test_librdkafka_pushes_requested_metrics(cluster: Cluster) -> None:
    """Producers and consumers of librdkafka push, and once more when they are closed."""
    cluster.create_topic("t")
    subscribe(cluster, metrics="org.apache.kafka.", interval_ms="200", match="client_id=tele.*")
    settings = {"bootstrap.servers": cluster.bootstrap, "log_level": 0}
    producers = [Producer({**settings, "client.id": name}) for name in ("other", "tele-producer")]
    consumer = Consumer({**settings, "client.id": "tele-consumer", "group.id": "g"})
    consumer.subscribe(["t"])

    def act() -> None:
        for producer in producers:
            producer.produce("t", b"x")
            producer.flush(5)
        consumer.poll(0.05)

    until(lambda: len(pushed(cluster)) == 2, act)
    entries = {str(item.attributes["client_id"]): item for item in pushed(cluster)}
    assert set(entries) == {"tele-producer", "tele-consumer"}
    assert names(entries["tele-producer"].payload, "org.apache.kafka.producer.")
    assert names(entries["tele-consumer"].payload, "org.apache.kafka.consumer.")
    assert "rdkafka" in str(entries["tele-producer"].attributes["client_software_version"])
    consumer.close()
    producers.pop()
    until(
        lambda: [item.is_terminating for item in pushed(cluster)] == [True, True],
        lambda: producers[0].flush(0.05),
    )


@pytest.mark.slow
@pytest.mark.needs("java")
def test_java_client_pushes_requested_metrics(cluster: Cluster) -> None:
    """The Java client compresses with zstd, its first choice; Kafka's own tool subscribes."""
    cluster.create_topic("java")
    output = java.run(
        java.client_class_path("4.3.0"),
        "org.apache.kafka.tools.ClientMetricsCommand",
        *("--bootstrap-server", cluster.bootstrap, "--alter", "--name", "java"),
        *("--metrics", "org.apache.kafka.producer.", "--interval", "300"),
        *("--match", "client_software_name=apache-kafka-java"),
    )
    assert "Altered client metrics config for java" in output
    java.run(
        java.client_class_path("4.3.0"),
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", "java", "--num-records", "300", "--record-size", "10"),
        *("--throughput", "100", "--producer-props", f"bootstrap.servers={cluster.bootstrap}"),
        *("client.id=java-producer", "linger.ms=0"),
    )
    (push,) = pushed(cluster)
    assert push.attributes["client_software_name"] == "apache-kafka-java"
    assert push.attributes["client_software_version"] == "4.3.0"
    assert names(push.payload, "org.apache.kafka.producer.")
    listed = java.run(
        java.client_class_path("4.3.0"),
        "org.apache.kafka.tools.ClientMetricsCommand",
        *("--bootstrap-server", cluster.bootstrap, "--list"),
    )
    assert listed.split() == ["java"]
