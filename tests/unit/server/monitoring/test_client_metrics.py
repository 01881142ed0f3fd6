"""The metrics that clients push (KIP-714), on the HTTP port of the broker."""

import json
import struct
from typing import Any

from ottla.metrics.exposition import render
from ottla.server.telemetry.clients import Pushed
from ottla.server.telemetry.otlp import Figure
from ottla.server.telemetry.pushed_metrics import ClientFamilies, client_json, metric_name, readable
from tests.unit.server.monitoring.exposition import parse
from tests.unit.server.telemetry.test_otlp import GAUGE, SUM, attribute, fixed, nested, payload


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
