"""Metrics that clients push (KIP-714) on the HTTP port of a running broker."""

import json
from pathlib import Path

from ottla.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from ottla.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from tests.integration.server.monitoring.test_metrics import SETTINGS, get
from tests.integration.server.test_node import Yard
from tests.unit.server.monitoring.exposition import parse
from tests.unit.server.telemetry.test_otlp import GAUGE, SUM, payload


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
