"""The metrics that clients push (KIP-714), on the HTTP port of the broker."""

import json
import struct
from pathlib import Path
from typing import Any

from ottla.metrics.exposition import render
from ottla.server.telemetry.clients import Pushed
from ottla.server.telemetry.otlp import Figure
from ottla.server.telemetry.shown import ClientFamilies, client_json, metric_name, readable
from ottla.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from ottla.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from tests.unit.server.monitoring.test_metrics import SETTINGS, get, parse
from tests.unit.server.telemetry.test_otlp import GAUGE, SUM, attribute, fixed, nested, payload
from tests.unit.server.test_node import Yard


def latency(name: str, value: float, node: str) -> bytes:
    """Encode a gauge with a label."""
    point = nested(1, fixed(4, struct.pack("<d", value)), attribute("node-id", node))
    return nested(1, name.encode()) + nested(5, point)


def push(body: bytes) -> Pushed:
    """Return a push of a client."""
    return Pushed(
        "abc", {"client_id": "c", "client_software_name": "librdkafka"}, 500.0, False, body
    )


def test_names_are_kafkas_without_the_package() -> None:
    """A sum is the increase since the last push, and named so."""
    producer = "org.apache.kafka.producer.connection.creation.rate"
    assert metric_name(Figure(producer, {}, 1.0, False)) == (
        "kafka_client_producer_connection_creation_rate"
    )
    assert metric_name(Figure("My.Own-total", {}, 1.0, True)) == "kafka_client_my_own_total_delta"


def test_families_are_valid_whatever_clients_send() -> None:
    """Names and labels are cleaned, repeated samples are served once, and their number is limited."""
    client_families = ClientFamilies(samples_max=3)
    sent = push(payload(latency("a.b", 1.0, '1"\n'), latency("a.b", 2.0, '1"\n'), GAUGE, SUM, SUM))
    for figure in readable(sent):
        client_families.add(sent, figure)
    samples = parse("".join(render(client_families.families())))
    assert sorted(name for name, _ in samples) == [
        "kafka_client_a_b",
        "kafka_client_org_bytes_total_delta",
        "kafka_client_org_latency_avg",
    ]
    assert samples["kafka_client_a_b", frozenset(
        {("node_id", '1\\"\\n'), ("client_id", "c"), ("client_instance_id", "abc")}
    )] == 2.0  # fmt: skip
    for figure in readable(sent):
        client_families.add(sent, Figure("z.z", {}, figure.value, False))
    assert not [
        name for name, _ in parse("".join(render(client_families.families()))) if "z_z" in name
    ]


def test_damaged_payload_is_shown_up_to_its_damage() -> None:
    """The readable metrics before it are shown, and NaN is null in JSON."""
    sent = push(payload(latency("a", float("nan"), "1")) + b"\x0a\xff")
    document: Any = json.loads(
        json.dumps(client_json(sent, readable(sent), 2000.0), allow_nan=False)
    )
    assert document["instance_id"] == "abc"
    assert document["client_software_name"] == "librdkafka"
    assert document["age_seconds"] == 1.5
    assert document["metrics"] == [
        {"name": "a", "labels": {"node-id": "1"}, "value": None, "is_delta": False}
    ]


async def test_pushed_metrics_are_on_the_http_port(tmp_path: Path) -> None:
    """A client asks, pushes, and is listed with its name, age and metrics."""
    yard = Yard(tmp_path / "data")
    node = await yard.start(settings=SETTINGS)
    assert json.loads((await get(node, "/clients"))[1]) == {"clients": []}
    assert (await get(node, "/metrics/clients"))[1] == b""
    node.broker.client_metrics.settings_changed("client-metrics", "all", {"metrics": "*"})
    client = await yard.client(node)
    client.send(GetTelemetrySubscriptionsRequest(), 0)
    requested = await client.receive(GetTelemetrySubscriptionsResponse, 0)
    request = PushTelemetryRequest(
        client_instance_id=requested.client_instance_id,
        subscription_id=requested.subscription_id,
        metrics=payload(GAUGE, SUM),
    )
    client.send(request, 0)
    assert (await client.receive(PushTelemetryResponse, 0)).error_code == 0
    (output,) = json.loads((await get(node, "/clients?client_id=test"))[1])["clients"]
    assert output["client_id"] == "test"
    assert output["client_source_address"] == "127.0.0.1"
    assert [(record["name"], record["value"]) for record in output["metrics"]] == [
        ("org.latency.avg", 1.5),
        ("org.bytes.total", -7),
        ("org.bytes.total", 8),
    ]
    assert json.loads((await get(node, "/clients?client_id=other"))[1]) == {"clients": []}
    samples = parse((await get(node, "/metrics/clients"))[1].decode())
    assert {name for name, _ in samples} == {
        "kafka_client_org_latency_avg",
        "kafka_client_org_bytes_total_delta",
    }
    client.writer.close()
    await node.stop()
