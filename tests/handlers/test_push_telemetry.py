"""PushTelemetry: stored metrics, and the error codes of rejected pushes."""

from ottla.base.errors import ErrorCode
from ottla.base.uuids import ZERO_UUID
from ottla.server.handlers import get_telemetry_subscriptions, push_telemetry
from ottla.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from ottla.wire.messages.push_telemetry import PushTelemetryRequest
from ottla.wire.records.compression import CODECS, compress
from tests.handlers.telemetry import MetricsBroker


def request_of(broker: MetricsBroker) -> PushTelemetryRequest:
    """Return a push that follows the broker's subscription."""
    subscription = get_telemetry_subscriptions.handle(
        broker.context(), GetTelemetrySubscriptionsRequest(client_instance_id=ZERO_UUID)
    )
    return PushTelemetryRequest(
        client_instance_id=subscription.client_instance_id,
        subscription_id=subscription.subscription_id,
        compression_type=CODECS["zstd"],
        metrics=compress(CODECS["zstd"], b"figures"),
    )


def push(broker: MetricsBroker, request: PushTelemetryRequest) -> ErrorCode:
    """Push as a client."""
    return ErrorCode(push_telemetry.handle(broker.context(), request).error_code)


def test_latest_metrics_of_each_client_are_stored() -> None:
    """Each is stored with the client's attributes and the time."""
    broker = MetricsBroker()
    broker.subscribe(metrics="*", interval_ms="1000")
    assert push(broker, request_of(broker)) is ErrorCode.NONE
    (pushed,) = broker.client_metrics.pushed()
    assert (pushed.payload, pushed.at_ms) == (b"figures", 10_000)
    assert pushed.attributes == {
        "client_instance_id": pushed.instance_id,
        "client_id": "app",
        "client_software_name": "librdkafka",
        "client_software_version": "2.6.1",
        "client_source_address": "10.0.0.7",
        "client_source_port": "5000",
    }


def test_rejected_pushes_have_error_codes() -> None:
    """The code lets a client decide whether to wait, subscribe again, send less or stop."""
    broker = MetricsBroker()
    broker.subscribe(metrics="*", interval_ms="1000")
    request = request_of(broker)
    request.subscription_id += 1
    assert push(broker, request) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    request.subscription_id -= 1
    assert push(broker, request) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    broker.clock.now += 1
    request.compression_type = 9
    assert push(broker, request) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    broker.clock.now += 1
    request.compression_type = CODECS["gzip"]
    assert push(broker, request) is ErrorCode.INVALID_RECORD
    broker.clock.now += 1
    request.metrics = bytes(1001)
    assert push(broker, request) is ErrorCode.TELEMETRY_TOO_LARGE
    request.client_instance_id = ZERO_UUID
    assert push(broker, request) is ErrorCode.INVALID_REQUEST


def test_client_can_push_once_as_terminating() -> None:
    """A terminating push is accepted once, even before its interval has passed."""
    broker = MetricsBroker()
    broker.subscribe(metrics="*", interval_ms="1000")
    request = request_of(broker)
    assert push(broker, request) is ErrorCode.NONE
    request.terminating = True
    assert push(broker, request) is ErrorCode.NONE
    assert push(broker, request) is ErrorCode.INVALID_REQUEST
