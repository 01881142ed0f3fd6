"""Clients that push metrics: ids, intervals, refusals, and what is kept of them."""

import gzip

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.rng import SeededRng
from ottla.base.uuids import METADATA_TOPIC_UUID, ZERO_UUID, random_uuid
from ottla.server.telemetry import clients
from ottla.server.telemetry.clients import Asked, ClientMetrics, Push
from ottla.wire.records.compression import compress

TYPE = "client-metrics"
WHO = {"client_id": "app"}
MAX_BYTES = 1000


@pytest.fixture
def metrics() -> ClientMetrics:
    """Nobody is asked for anything."""
    rng = SeededRng(7)
    return ClientMetrics(MAX_BYTES, lambda: random_uuid(rng))


def subscribe(metrics: ClientMetrics, /, **settings: str) -> None:
    """Ask everyone for all metrics, once a second."""
    written = {"metrics": "*", "interval.ms": "1000", **settings}
    metrics.settings_changed(TYPE, "all", written)


def push(
    asked: Asked, metrics: bytes = b"data", codec: int = 0, *, is_terminating: bool = False
) -> Push:
    """Return a push that does as it was asked."""
    return Push(asked.instance_id, asked.subscription_id, is_terminating, codec, metrics)


def code_of(action: object, *arguments: object) -> ErrorCode:
    """Call and return the code that it is refused with."""
    assert callable(action)
    with pytest.raises(ApiError) as caught:
        action(*arguments)
    return caught.value.code


def test_a_client_without_an_id_gets_one(metrics: ClientMetrics) -> None:
    """And keeps it; every other one gets another."""
    one = metrics.ask(ZERO_UUID, WHO, 0)
    two = metrics.ask(ZERO_UUID, WHO, 0)
    assert len({ZERO_UUID, one.instance_id, two.instance_id}) == 3
    again = metrics.ask(one.instance_id, WHO, 300_000)
    assert again == one


def test_without_a_subscription_nothing_is_asked(metrics: ClientMetrics) -> None:
    """The id of the subscription is the one that Kafka 4.3 computes."""
    asked = metrics.ask(bytes.fromhex("4a71c75785504e289df2b8aec776086b"), WHO, 0)
    assert (asked.metrics, asked.interval_ms) == ((), 300_000)
    assert asked.subscription_id == 1_096_966_756


def test_subscriptions_that_match_are_put_together(metrics: ClientMetrics) -> None:
    """All their metrics, at the shortest interval; `*` says it all."""
    for name, settings in {
        "one": {"metrics": "b.,a.", "interval.ms": "5000"},
        "two": {"metrics": "a.,c.", "interval.ms": "3000", "match": "client_id=app"},
        "other": {"metrics": "*", "interval.ms": "100", "match": "client_id=other"},
    }.items():
        metrics.settings_changed(TYPE, name, settings)
    asked = metrics.ask(ZERO_UUID, WHO, 0)
    assert (asked.metrics, asked.interval_ms) == (("a.", "b.", "c."), 3000)
    other = metrics.ask(ZERO_UUID, {"client_id": "other"}, 0)
    assert (other.metrics, other.interval_ms) == (("*",), 100)


def test_a_subscription_can_name_one_instance(metrics: ClientMetrics) -> None:
    """By the text of its id."""
    metrics.settings_changed(TYPE, "one", {"metrics": "x.", "match": "client_instance_id=AAAA.*"})
    assert metrics.ask(ZERO_UUID, WHO, 0).metrics == ()
    assert metrics.ask(bytes(14) + b"\x07\x07", WHO, 0).metrics == ("x.",)


def test_who_asks_too_often_is_throttled(metrics: ClientMetrics) -> None:
    """Unless the subscriptions have changed since."""
    subscribe(metrics)
    asked = metrics.ask(ZERO_UUID, WHO, 0)
    again = (asked.instance_id, WHO, 999)
    assert code_of(metrics.ask, *again) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    subscribe(metrics, metrics="a.")
    assert metrics.ask(asked.instance_id, WHO, 999).metrics == ("a.",)
    assert metrics.ask(asked.instance_id, WHO, 1999).metrics == ("a.",)


def test_the_first_push_may_come_at_any_time(metrics: ClientMetrics) -> None:
    """Clients spread it over the interval; the next ones have to keep to it."""
    subscribe(metrics)
    asked = metrics.ask(ZERO_UUID, WHO, 0)
    metrics.push(push(asked), WHO, 10)
    early = (push(asked), WHO, 1009)
    assert code_of(metrics.push, *early) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    metrics.push(push(asked, b"later"), WHO, 1010)
    (kept,) = metrics.pushed()
    assert (kept.payload, kept.at_ms, kept.attributes["client_id"]) == (b"later", 1010, "app")


def test_a_client_that_ends_may_push_at_once_and_then_no_more(metrics: ClientMetrics) -> None:
    """Its last figures are not lost to the interval."""
    subscribe(metrics)
    asked = metrics.ask(ZERO_UUID, WHO, 0)
    metrics.push(push(asked), WHO, 1)
    metrics.push(push(asked, b"last", is_terminating=True), WHO, 2)
    (kept,) = metrics.pushed()
    assert (kept.payload, kept.is_terminating) == (b"last", True)
    after = (push(asked, is_terminating=True), WHO, 9000)
    assert code_of(metrics.push, *after) is ErrorCode.INVALID_REQUEST


def test_a_changed_subscription_is_unknown(metrics: ClientMetrics) -> None:
    """The client asks again, at once."""
    subscribe(metrics)
    asked = metrics.ask(ZERO_UUID, WHO, 0)
    metrics.push(push(asked), WHO, 1)
    subscribe(metrics, **{"interval.ms": "2000"})
    stale = (push(asked), WHO, 1001)
    assert code_of(metrics.push, *stale) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    renewed = metrics.ask(asked.instance_id, WHO, 1002)
    assert renewed.subscription_id != asked.subscription_id
    metrics.push(push(renewed), WHO, 1003)


@pytest.mark.parametrize("codec", range(5))
def test_every_codec_is_understood(metrics: ClientMetrics, codec: int) -> None:
    """What is kept is not compressed."""
    subscribe(metrics)
    asked = metrics.ask(ZERO_UUID, WHO, 0)
    metrics.push(push(asked, compress(codec, b"figures" * 20), codec), WHO, 1)
    assert metrics.pushed()[0].payload == b"figures" * 20


def test_what_cannot_be_kept_is_refused(metrics: ClientMetrics) -> None:
    """Too large, compressed or not; damaged; of a codec that nobody knows; of no client."""
    subscribe(metrics)
    asked = metrics.ask(ZERO_UUID, WHO, 0)
    bomb = gzip.compress(bytes(10_000_000))[: MAX_BYTES * 1000]
    cases = [
        (push(asked, bytes(MAX_BYTES + 1)), ErrorCode.TELEMETRY_TOO_LARGE),
        (push(asked, compress(4, bytes(MAX_BYTES + 1)), 4), ErrorCode.TELEMETRY_TOO_LARGE),
        (push(asked, bomb, 1), ErrorCode.TELEMETRY_TOO_LARGE),
        (push(asked, b"no gzip", 1), ErrorCode.INVALID_RECORD),
        (push(asked, b"x", 5), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (push(asked, b"x", -1), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (push(asked._replace(instance_id=ZERO_UUID)), ErrorCode.INVALID_REQUEST),
        (push(asked._replace(instance_id=METADATA_TOPIC_UUID)), ErrorCode.INVALID_REQUEST),
    ]
    for number, (pushed, code) in enumerate(cases):
        assert code_of(metrics.push, pushed, WHO, 1000 * number + 1) is code
    assert metrics.pushed() == []


def test_a_push_of_nothing_is_fine(metrics: ClientMetrics) -> None:
    """And is not kept."""
    subscribe(metrics)
    asked = metrics.ask(ZERO_UUID, WHO, 0)
    metrics.push(push(asked, b""), WHO, 1)
    assert metrics.pushed() == []


def test_a_silent_client_is_forgotten(metrics: ClientMetrics) -> None:
    """After three of its intervals, and a minute at least."""
    subscribe(metrics)
    asked = metrics.ask(ZERO_UUID, WHO, 0)
    metrics.push(push(asked), WHO, 1)
    metrics.ask(ZERO_UUID, WHO, 60_000)
    assert metrics.clients_count == 2
    metrics.ask(ZERO_UUID, WHO, 60_001)
    assert metrics.clients_count == 2
    assert metrics.pushed() == []


def test_memory_is_bounded(metrics: ClientMetrics, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many clients and so many bytes; the oldest give way."""
    monkeypatch.setattr(clients, "CLIENTS_MAX", 5)
    monkeypatch.setattr(clients, "PAYLOADS_BYTES_MAX", 2500)
    subscribe(metrics)
    for number in range(20):
        asked = metrics.ask(ZERO_UUID, WHO, number)
        metrics.push(push(asked, bytes([number]) * MAX_BYTES), WHO, number)
    assert metrics.clients_count == 5
    assert [kept.payload[0] for kept in metrics.pushed()] == [18, 19]
    assert metrics._payloads_bytes == 2000


def test_a_subscription_that_cannot_be_is_left_out(metrics: ClientMetrics) -> None:
    """Somebody else may have written it; others than subscriptions are not looked at."""
    metrics.settings_changed(TYPE, "bad", {"metrics": "*", "interval.ms": "1"})
    metrics.settings_changed("users", "alice", {"metrics": "*"})
    assert metrics.ask(ZERO_UUID, WHO, 0).metrics == ()
    metrics.settings_changed(TYPE, "good", {"metrics": "*"})
    metrics.settings_changed(TYPE, "good", {})
    assert metrics.ask(ZERO_UUID, WHO, 0).metrics == ()


def test_the_first_and_the_last_subscription_are_told(metrics: ClientMetrics) -> None:
    """The APIs are advertised while somebody asks for metrics; one that cannot be does not."""
    told: list[bool] = []
    metrics.on_change.append(told.append)
    metrics.settings_changed(TYPE, "bad", {"interval.ms": "1"})
    subscribe(metrics)
    metrics.settings_changed(TYPE, "all", {})
    assert told == [False, True, False]
