"""Quota entities: their names, their paths in the tree, and their values."""

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.znodes import ConfigNode
from ottla.server.quotas.entities import (
    Entity,
    checked_text,
    entity_at,
    entity_of,
    tree_path,
    values_of,
)

BYTES, PERCENT, IP_RATE = "producer_byte_rate", "request_percentage", "connection_creation_rate"


@pytest.mark.parametrize(
    ("entity", "entity_type", "path"),
    [
        (Entity("alice"), "users", "alice"),
        (Entity(None), "users", "<default>"),
        (Entity("al/ice", "my app"), "users", "al%2Fice/clients/my%20app"),
        (Entity(None, None), "users", "<default>/clients/<default>"),
        (Entity(None, "<default>"), "users", "<default>/clients/%3Cdefault%3E"),
        (Entity(client_id="a*b~"), "clients", "a%2Ab%7E"),
        (Entity(client_id=None), "clients", "<default>"),
        (Entity(ip="::1"), "ips", "%3A%3A1"),
        (Entity(ip=None), "ips", "<default>"),
    ],
)
def test_entity_has_a_path_in_the_tree(entity: Entity, entity_type: str, path: str) -> None:
    """The path is the same as in Kafka 3.9, and it is parsed back to the entity."""
    assert tree_path(entity) == (entity_type, path)
    assert entity_at(entity_type, path) == entity


@pytest.mark.parametrize(
    "names",
    [
        {},
        {"user": ""},
        {"user": "a", "client-id": ""},
        {"planet": "earth"},
        {"ip": "1.2.3.4", "user": "a"},
        {"ip": "localhost"},
        {"ip": "1.2.3"},
    ],
)
def test_invalid_entity_is_rejected(names: dict[str, str | None]) -> None:
    """The error is INVALID_REQUEST, as in Kafka."""
    with pytest.raises(ApiError) as caught:
        entity_of(names)
    assert caught.value.code is ErrorCode.INVALID_REQUEST


def test_null_is_the_default() -> None:
    """A null name is the default entity of any type."""
    assert entity_of({"user": None, "client-id": "c"}) == Entity(None, "c")
    assert entity_of({"ip": None}) == Entity(ip=None)


def test_names_are_ordered_like_in_kafka() -> None:
    """The client id comes before the user."""
    assert list(Entity("u", "c").names()) == ["client-id", "user"]


@pytest.mark.parametrize(
    ("entity", "key", "value", "text"),
    [
        (Entity("a"), BYTES, 1048576.0, "1048576"),
        (Entity("a"), BYTES, 1000.0000000001, "1000"),
        (Entity("a"), BYTES, 2.0**63, "9223372036854775807"),
        (Entity("a"), PERCENT, 200.0, "200.0"),
        (Entity("a"), PERCENT, 0.5, "0.5"),
        (Entity("a"), PERCENT, 12345678.5, "1.23456785E7"),
        (Entity("a"), PERCENT, 1e7, "1.0E7"),
        (Entity("a"), PERCENT, 0.0001, "1.0E-4"),
        (Entity(client_id="c"), "controller_mutation_rate", 5.0, "5.0"),
        (Entity(ip=None), IP_RATE, 7.0, "7"),
    ],
)
def test_values_are_written_as_java_writes_them(
    entity: Entity, key: str, value: float, text: str
) -> None:
    """Whole numbers have no decimal point, others are written like Double.toString."""
    assert checked_text(entity, key, value) == text


@pytest.mark.parametrize(
    ("entity", "key", "value"),
    [
        (Entity("a"), BYTES, 0.0),
        (Entity("a"), BYTES, -1.0),
        (Entity("a"), BYTES, 1.5),
        (Entity("a"), BYTES, 1e30),
        (Entity("a"), BYTES, float("nan")),
        (Entity("a"), PERCENT, float("nan")),
        (Entity("a"), "nonsense", 1.0),
        (Entity("a"), IP_RATE, 1.0),
        (Entity(ip="1.2.3.4"), BYTES, 1.0),
        (Entity(ip="1.2.3.4"), IP_RATE, 1e10),
    ],
)
def test_invalid_value_is_rejected(entity: Entity, key: str, value: float) -> None:
    """The error is INVALID_REQUEST with a message that names the quota."""
    with pytest.raises(ApiError, match=key) as caught:
        checked_text(entity, key, value)
    assert caught.value.code is ErrorCode.INVALID_REQUEST


def test_only_quotas_are_read_from_settings() -> None:
    """A user's node also has credentials, and possibly leftovers of older versions."""
    settings = {"SCRAM-SHA-256": "salt=x", BYTES: "10", PERCENT: "often", IP_RATE: "5"}
    assert values_of(Entity("alice"), settings) == {BYTES: 10.0}
    assert values_of(Entity(ip="1.2.3.4"), settings) == {IP_RATE: 5.0}


def test_the_default_of_the_tree_is_no_name() -> None:
    """The name `<default>` in a path is null in the protocol."""
    assert entity_at(ConfigNode.USERS, "<default>/clients/c") == Entity(None, "c")
