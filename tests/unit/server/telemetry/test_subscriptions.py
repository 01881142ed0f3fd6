"""Subscriptions to client metrics: their validation and the clients that they match."""

import time

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.server.telemetry.subscriptions import check, subscription_of

CLIENT = {
    "client_instance_id": "SnHHV4VQTiid8riux3YIaw",
    "client_id": "app-7",
    "client_software_name": "librdkafka",
    "client_software_version": "2.6.1",
    "client_source_address": "10.0.0.7",
    "client_source_port": "50000",
}


@pytest.mark.parametrize(
    ("name", "settings", "code"),
    [
        ("", {"metrics": "*"}, ErrorCode.INVALID_REQUEST),
        ("s", {"nonsense": "1"}, ErrorCode.INVALID_REQUEST),
        ("s", {"interval.ms": "99"}, ErrorCode.INVALID_REQUEST),
        ("s", {"interval.ms": "3600001"}, ErrorCode.INVALID_REQUEST),
        ("s", {"interval.ms": "-5"}, ErrorCode.INVALID_REQUEST),
        ("s", {"interval.ms": "often"}, ErrorCode.INVALID_CONFIG),
        ("s", {"match": "client_id"}, ErrorCode.INVALID_CONFIG),
        ("s", {"match": "client_id="}, ErrorCode.INVALID_CONFIG),
        ("s", {"match": "client_id=["}, ErrorCode.INVALID_CONFIG),
        ("s", {"match": "client_id=a=b"}, ErrorCode.INVALID_CONFIG),
        ("s", {"match": "planet=earth"}, ErrorCode.INVALID_CONFIG),
    ],
)
def test_invalid_settings_are_rejected(
    name: str, settings: dict[str, str], code: ErrorCode
) -> None:
    """Invalid settings are rejected with the error codes of Kafka 4.3."""
    with pytest.raises(ApiError) as caught:
        check(name, settings)
    assert caught.value.code is code


def test_missing_settings_have_defaults() -> None:
    """The defaults are no metrics, five minutes and every client."""
    check("s", {"metrics": ""})
    subscription = subscription_of({})
    assert (subscription.metrics, subscription.interval_ms, dict(subscription.match)) == (
        (),
        300_000,
        {},
    )


def test_lists_are_split_at_commas() -> None:
    """Blanks around the items and around the equals sign are ignored."""
    subscription = subscription_of(
        {"metrics": "org.apache. , messaging.", "match": "client_id = app.*"}
    )
    assert subscription.metrics == ("org.apache.", "messaging.")
    assert subscription.is_for(CLIENT)


@pytest.mark.parametrize(
    ("match", "is_for"),
    [
        ("", True),
        ("client_id=app-.*", True),
        ("client_id=app", False),
        ("client_software_name=librdkafka,client_software_version=2\\..*", True),
        ("client_software_name=librdkafka,client_software_version=1\\..*", False),
        ("client_source_address=10\\.0\\.0\\.7,client_source_port=5.*", True),
        ("client_instance_id=SnHHV4VQTiid8riux3YIaw", True),
    ],
)
def test_a_client_must_meet_every_pattern_as_a_whole(match: str, is_for: bool) -> None:
    """A pattern has to match the entire value, as in Java's Matcher.matches."""
    check("s", {"match": match})
    assert subscription_of({"match": match}).is_for(CLIENT) is is_for


def test_client_without_attributes_matches_no_pattern() -> None:
    """A client without attributes, or with an endless value, matches no pattern."""
    subscription = subscription_of({"match": "client_software_name=.*"})
    assert not subscription.is_for({**CLIENT, "client_software_name": None})
    assert not subscription.is_for({**CLIENT, "client_software_name": "x" * 1000})


@pytest.mark.parametrize("expression", ["(a+)+$", "(a|aa)+$", "(a*)*b"])
def test_any_pattern_is_matched_in_linear_time(expression: str) -> None:
    """A pattern and an attribute together cannot stop the event loop: clients choose the latter."""
    check("s", {"match": f"client_id={expression}"})
    subscription = subscription_of({"match": f"client_id={expression}"})
    begin = time.thread_time()
    assert not subscription.is_for({**CLIENT, "client_id": "a" * 255 + "!"})
    assert time.thread_time() - begin < 0.1


def test_pattern_that_re2_does_not_know_is_rejected() -> None:
    """Java's look-around and back references cannot be matched in linear time."""
    for expression in ("(?!app).*", r"(.)\1"):
        with pytest.raises(ApiError) as caught:
            check("s", {"match": f"client_id={expression}"})
        assert caught.value.code is ErrorCode.INVALID_CONFIG
