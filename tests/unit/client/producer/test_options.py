"""The options that a producer passes to librdkafka."""

from typing import Any

import pytest

from ottla.client.config.names import Role
from ottla.client.config.settings import read_settings
from ottla.client.producer.options import native_options


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({}, None),
        ({"transactional_id": "p"}, 3000),
        ({"transactional_id": "p", "connections_max_idle_ms": 9000}, 9000),
    ],
)
def test_transactional_producer_closes_idle_connections(
    words: dict[str, Any], expected: int | None
) -> None:
    """Otherwise librdkafka may wait for minutes for a coordinator that has died."""
    settings = read_settings(Role.PRODUCER, {"bootstrap_servers": "b:9092"}, words)
    assert native_options(settings).get("connections.max.idle.ms") == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [({}, "true"), ({"retries": 0}, "false"), ({"retries": "3"}, "true"), ({"acks": 1}, "false")],
)
def test_idempotence_is_the_default_unless_another_option_contradicts(
    words: dict[str, Any], expected: str
) -> None:
    """A producer that sends each record once needs no numbers."""
    settings = read_settings(Role.PRODUCER, {"bootstrap_servers": "b:9092"}, words)
    assert native_options(settings)["enable.idempotence"] == expected
