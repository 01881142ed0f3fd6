"""GetTelemetrySubscriptions: the metrics that a client has to push."""

from ottla.base.errors import ErrorCode
from ottla.base.uuids import ZERO_UUID
from ottla.server.handlers import get_telemetry_subscriptions
from ottla.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from tests.handlers.telemetry import MetricsBroker


def get(
    broker: MetricsBroker, instance_id: bytes = ZERO_UUID, software: tuple[str, str] | None = None
) -> GetTelemetrySubscriptionsResponse:
    """Send the request as a client."""
    request = GetTelemetrySubscriptionsRequest(client_instance_id=instance_id)
    return get_telemetry_subscriptions.handle(broker.context(software), request)


def test_subscription_has_all_fields() -> None:
    """The response has id, metrics, interval, size limit and codecs, with zstd first."""
    broker = MetricsBroker()
    broker.subscribe(metrics="org.apache.", interval_ms="2000")
    response = get(broker)
    assert response.error_code == 0
    assert len(response.client_instance_id) == 16 and response.client_instance_id != ZERO_UUID
    assert response.requested_metrics == ["org.apache."]
    assert response.push_interval_ms == 2000
    assert response.telemetry_max_bytes == 1000
    assert response.accepted_compression_types == [4, 3, 1, 2]
    assert response.delta_temporality


def test_no_metrics_are_requested_without_a_subscription() -> None:
    """The client asks again after five minutes."""
    response = get(MetricsBroker())
    assert (response.requested_metrics, response.push_interval_ms) == ([], 300_000)


def test_subscription_can_match_the_software() -> None:
    """The software is the one that the client named in ApiVersions."""
    broker = MetricsBroker()
    broker.subscribe(metrics="*", match="client_software_name=librdkafka")
    assert get(broker, software=("librdkafka", "2.6.1")).requested_metrics == ["*"]
    assert get(broker, software=("apache-kafka-java", "4.3.0")).requested_metrics == []
    assert get(broker).requested_metrics == []


def test_too_frequent_requests_are_rejected() -> None:
    """The error code is THROTTLING_QUOTA_EXCEEDED."""
    broker = MetricsBroker()
    broker.subscribe(metrics="*", interval_ms="1000")
    first = get(broker)
    response = get(broker, first.client_instance_id)
    assert response.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    broker.clock.now += 1
    assert get(broker, first.client_instance_id).error_code == 0
