"""Clients that push metrics: ids, intervals, errors, and the stored metrics."""

import gzip

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.rng import SeededRng
from ottla.base.uuids import METADATA_TOPIC_UUID, ZERO_UUID, random_uuid
from ottla.server.telemetry import clients
from ottla.server.telemetry.clients import ClientMetrics, ClientSubscription, Push
from ottla.wire.records.compression import compress

TYPE = "client-metrics"
WHO = {"client_id": "app"}
MAX_BYTES = 1000


@pytest.fixture
def metrics() -> ClientMetrics:
    """Return client metrics without subscriptions."""
    rng = SeededRng(7)
    return ClientMetrics(MAX_BYTES, lambda: random_uuid(rng))


def subscribe(metrics: ClientMetrics, /, **settings: str) -> None:
    """Subscribe to all metrics of every client, once a second."""
    written = {"metrics": "*", "interval.ms": "1000", **settings}
    metrics.settings_changed(TYPE, "all", written)


def push(
    requested: ClientSubscription,
    metrics: bytes = b"data",
    codec: int = 0,
    *,
    is_terminating: bool = False,
) -> Push:
    """Return a push that follows the subscription."""
    return Push(requested.instance_id, requested.subscription_id, is_terminating, codec, metrics)


def code_of(action: object, *arguments: object) -> ErrorCode:
    """Return the error code that the call raises."""
    assert callable(action)
    with pytest.raises(ApiError) as caught:
        action(*arguments)
    return caught.value.code


def test_a_client_without_an_id_gets_one(metrics: ClientMetrics) -> None:
    """Each new client gets an id of its own, and keeps it."""
    one = metrics.ask(ZERO_UUID, WHO, 0)
    two = metrics.ask(ZERO_UUID, WHO, 0)
    assert len({ZERO_UUID, one.instance_id, two.instance_id}) == 3
    again = metrics.ask(one.instance_id, WHO, 300_000)
    assert again == one


def test_no_metrics_without_a_subscription(metrics: ClientMetrics) -> None:
    """The subscription id is the one that Kafka 4.3 computes."""
    subscription = metrics.ask(bytes.fromhex("4a71c75785504e289df2b8aec776086b"), WHO, 0)
    assert (subscription.metrics, subscription.interval_ms) == ((), 300_000)
    assert subscription.subscription_id == 1_096_966_756


def test_matching_subscriptions_are_combined(metrics: ClientMetrics) -> None:
    """The client gets all their metrics at the shortest interval; `*` includes every metric."""
    for name, settings in {
        "one": {"metrics": "b.,a.", "interval.ms": "5000"},
        "two": {"metrics": "a.,c.", "interval.ms": "3000", "match": "client_id=app"},
        "other": {"metrics": "*", "interval.ms": "100", "match": "client_id=other"},
    }.items():
        metrics.settings_changed(TYPE, name, settings)
    subscription = metrics.ask(ZERO_UUID, WHO, 0)
    assert (subscription.metrics, subscription.interval_ms) == (("a.", "b.", "c."), 3000)
    other = metrics.ask(ZERO_UUID, {"client_id": "other"}, 0)
    assert (other.metrics, other.interval_ms) == (("*",), 100)


def test_a_subscription_can_name_one_instance(metrics: ClientMetrics) -> None:
    """The pattern matches the id's text."""
    metrics.settings_changed(TYPE, "one", {"metrics": "x.", "match": "client_instance_id=AAAA.*"})
    assert metrics.ask(ZERO_UUID, WHO, 0).metrics == ()
    assert metrics.ask(bytes(14) + b"\x07\x07", WHO, 0).metrics == ("x.",)


def test_too_frequent_requests_are_throttled(metrics: ClientMetrics) -> None:
    """A changed subscription is returned at once."""
    subscribe(metrics)
    subscription = metrics.ask(ZERO_UUID, WHO, 0)
    again = (subscription.instance_id, WHO, 999)
    assert code_of(metrics.ask, *again) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    subscribe(metrics, metrics="a.")
    assert metrics.ask(subscription.instance_id, WHO, 999).metrics == ("a.",)
    assert metrics.ask(subscription.instance_id, WHO, 1999).metrics == ("a.",)


def test_first_push_is_accepted_at_any_time(metrics: ClientMetrics) -> None:
    """Clients spread the first push over the interval, and later ones have to respect it."""
    subscribe(metrics)
    subscription = metrics.ask(ZERO_UUID, WHO, 0)
    metrics.push(push(subscription), WHO, 10)
    early = (push(subscription), WHO, 1009)
    assert code_of(metrics.push, *early) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    metrics.push(push(subscription, b"later"), WHO, 1010)
    (pushed,) = metrics.pushed()
    assert (pushed.payload, pushed.at_ms, pushed.attributes["client_id"]) == (b"later", 1010, "app")


def test_terminating_client_may_push_once_at_any_time(metrics: ClientMetrics) -> None:
    """A terminating push ignores the interval, so the last values are stored."""
    subscribe(metrics)
    subscription = metrics.ask(ZERO_UUID, WHO, 0)
    metrics.push(push(subscription), WHO, 1)
    metrics.push(push(subscription, b"last", is_terminating=True), WHO, 2)
    (pushed,) = metrics.pushed()
    assert (pushed.payload, pushed.is_terminating) == (b"last", True)
    after = (push(subscription, is_terminating=True), WHO, 9000)
    assert code_of(metrics.push, *after) is ErrorCode.INVALID_REQUEST


def test_a_changed_subscription_is_unknown(metrics: ClientMetrics) -> None:
    """The client requests its subscription again, immediately."""
    subscribe(metrics)
    subscription = metrics.ask(ZERO_UUID, WHO, 0)
    metrics.push(push(subscription), WHO, 1)
    subscribe(metrics, **{"interval.ms": "2000"})
    stale = (push(subscription), WHO, 1001)
    assert code_of(metrics.push, *stale) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    renewed = metrics.ask(subscription.instance_id, WHO, 1002)
    assert renewed.subscription_id != subscription.subscription_id
    metrics.push(push(renewed), WHO, 1003)


@pytest.mark.parametrize("codec", range(5))
def test_every_codec_is_decompressed(metrics: ClientMetrics, codec: int) -> None:
    """The stored metrics are not compressed."""
    subscribe(metrics)
    subscription = metrics.ask(ZERO_UUID, WHO, 0)
    metrics.push(push(subscription, compress(codec, b"figures" * 20), codec), WHO, 1)
    assert metrics.pushed()[0].payload == b"figures" * 20


def test_invalid_push_is_rejected(metrics: ClientMetrics) -> None:
    """The push is too large, damaged, of an unknown codec, or of an unknown client."""
    subscribe(metrics)
    subscription = metrics.ask(ZERO_UUID, WHO, 0)
    bomb = gzip.compress(bytes(10_000_000))[: MAX_BYTES * 1000]
    cases = [
        (push(subscription, bytes(MAX_BYTES + 1)), ErrorCode.TELEMETRY_TOO_LARGE),
        (push(subscription, compress(4, bytes(MAX_BYTES + 1)), 4), ErrorCode.TELEMETRY_TOO_LARGE),
        (push(subscription, bomb, 1), ErrorCode.TELEMETRY_TOO_LARGE),
        (push(subscription, b"no gzip", 1), ErrorCode.INVALID_RECORD),
        (push(subscription, b"x", 5), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (push(subscription, b"x", -1), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (push(subscription._replace(instance_id=ZERO_UUID)), ErrorCode.INVALID_REQUEST),
        (push(subscription._replace(instance_id=METADATA_TOPIC_UUID)), ErrorCode.INVALID_REQUEST),
    ]
    for number, (pushed, code) in enumerate(cases):
        assert code_of(metrics.push, pushed, WHO, 1000 * number + 1) is code
    assert metrics.pushed() == []


def test_empty_push_is_accepted(metrics: ClientMetrics) -> None:
    """An empty push is accepted and not stored."""
    subscribe(metrics)
    subscription = metrics.ask(ZERO_UUID, WHO, 0)
    metrics.push(push(subscription, b""), WHO, 1)
    assert metrics.pushed() == []


def test_idle_client_expires(metrics: ClientMetrics) -> None:
    """A client expires after three of its intervals, and at least a minute."""
    subscribe(metrics)
    subscription = metrics.ask(ZERO_UUID, WHO, 0)
    metrics.push(push(subscription), WHO, 1)
    metrics.ask(ZERO_UUID, WHO, 60_000)
    assert metrics.clients_count == 2
    metrics.ask(ZERO_UUID, WHO, 60_001)
    assert metrics.clients_count == 2
    assert metrics.pushed() == []


def test_memory_is_bounded(metrics: ClientMetrics, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of clients and of bytes is limited, and the oldest are evicted."""
    monkeypatch.setattr(clients, "CLIENTS_MAX", 5)
    monkeypatch.setattr(clients, "PAYLOADS_BYTES_MAX", 2500)
    subscribe(metrics)
    for number in range(20):
        subscription = metrics.ask(ZERO_UUID, WHO, number)
        metrics.push(push(subscription, bytes([number]) * MAX_BYTES), WHO, number)
    assert metrics.clients_count == 5
    assert [pushed.payload[0] for pushed in metrics.pushed()] == [18, 19]
    assert metrics._payloads_bytes == 2000


def test_invalid_subscription_is_ignored(metrics: ClientMetrics) -> None:
    """Another tool may have written it; other entity types are ignored."""
    metrics.settings_changed(TYPE, "bad", {"metrics": "*", "interval.ms": "1"})
    metrics.settings_changed("users", "alice", {"metrics": "*"})
    assert metrics.ask(ZERO_UUID, WHO, 0).metrics == ()
    metrics.settings_changed(TYPE, "good", {"metrics": "*"})
    metrics.settings_changed(TYPE, "good", {})
    assert metrics.ask(ZERO_UUID, WHO, 0).metrics == ()


def test_first_and_last_subscription_are_reported(metrics: ClientMetrics) -> None:
    """The APIs are advertised while a valid subscription exists."""
    changes: list[bool] = []
    metrics.on_change.append(changes.append)
    metrics.settings_changed(TYPE, "bad", {"interval.ms": "1"})
    subscribe(metrics)
    metrics.settings_changed(TYPE, "all", {})
    assert changes == [False, True, False]
