"""The book of quotas: the most specific of eight kinds of entities applies, and filters match."""

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.server.quotas.book import Applied, Component, QuotaBook
from ottla.server.quotas.entities import Entity

KEY = "producer_byte_rate"
# The most specific entity first, with the clients that share the measure.
LEVELS = [
    (Entity("u", "c"), ("u", "c")),
    (Entity("u", None), ("u", "c")),
    (Entity("u"), ("u", "")),
    (Entity(None, "c"), ("u", "c")),
    (Entity(None, None), ("u", "c")),
    (Entity(None), ("u", "")),
    (Entity(client_id="c"), ("", "c")),
    (Entity(client_id=None), ("", "c")),
]


def book_of(*entities: Entity) -> QuotaBook:
    """Return a book in which the quota of each entity is its number."""
    book = QuotaBook()
    for number, entity in enumerate(entities):
        book.set(entity, {KEY: float(number)})
    return book


@pytest.mark.parametrize("first", range(8))
def test_most_specific_entity_applies(first: int) -> None:
    """The order is the same as in Kafka's ClientQuotaManager."""
    entity, shared = LEVELS[first]
    book = book_of(*(entity for entity, _ in LEVELS[first:]))
    assert book.applied(KEY, "u", "c") == Applied(0.0, *shared), entity


def test_each_quota_has_its_own_precedence() -> None:
    """A more specific entity without this quota does not hide a less specific one that has it."""
    book = QuotaBook()
    book.set(Entity("u", "c"), {"consumer_byte_rate": 1.0})
    book.set(Entity("u"), {KEY: 2.0})
    assert book.applied(KEY, "u", "c") == Applied(2.0, "u", "")
    assert book.applied("consumer_byte_rate", "u", "c") == Applied(1.0, "u", "c")


def test_others_are_not_limited() -> None:
    """Neither another name nor the quota of an address limits a client."""
    book = book_of(Entity("u", "c"), Entity(client_id="d"), Entity(ip=None))
    assert book.applied(KEY, "v", "c") is None
    assert book.applied(KEY, "u", "") is None


def test_a_client_without_id_has_only_its_users_quota() -> None:
    """The default of client ids applies only to clients that have an id."""
    book = book_of(Entity(client_id=None), Entity(None, None), Entity(None))
    assert book.applied(KEY, "u", "") == Applied(2.0, "u", "")


def test_default_applies_to_unnamed_addresses() -> None:
    """The quota of a named address has precedence."""
    book = book_of(Entity(ip="1.1.1.1"), Entity(ip=None))
    assert book.of_ip(KEY, "1.1.1.1") == 0.0
    assert book.of_ip(KEY, "2.2.2.2") == 1.0


def test_book_reports_whether_clients_can_be_limited() -> None:
    """Quotas of addresses alone do not limit requests."""
    book = book_of(Entity(ip=None))
    assert not book.limits_clients()
    assert book.set(Entity("u"), {KEY: 1.0})
    assert not book.set(Entity("u"), {KEY: 1.0})
    assert book.limits_clients()
    assert book.set(Entity("u"), {})
    assert not book.limits_clients()


ALL = [
    Entity("u"),
    Entity(None),
    Entity("u", "c"),
    Entity("u", None),
    Entity(client_id="c"),
    Entity(ip="1.1.1.1"),
    Entity(ip=None),
]


@pytest.mark.parametrize(
    ("components", "strict", "found"),
    [
        ([], False, ALL),
        ([], True, []),
        ([("user", 0, "u")], False, [ALL[0], ALL[2], ALL[3]]),
        ([("user", 0, "u")], True, [ALL[0]]),
        ([("user", 1, None)], False, [ALL[1]]),
        ([("user", 2, None)], True, [ALL[0], ALL[1]]),
        ([("user", 0, "u"), ("client-id", 1, None)], False, [ALL[3]]),
        ([("client-id", 2, None)], False, [ALL[2], ALL[3], ALL[4]]),
        ([("client-id", 2, None)], True, [ALL[4]]),
        ([("ip", 2, None)], False, [ALL[5], ALL[6]]),
        ([("ip", 0, "1.1.1.1")], True, [ALL[5]]),
        ([("user", 0, "nobody")], False, []),
    ],
)
def test_filter_finds_matching_entities(
    components: list[tuple[str, int, str | None]], strict: bool, found: list[Entity]
) -> None:
    """Components match an exact name, the default or any; a strict filter excludes other types."""
    result = book_of(*ALL).find([Component(*item) for item in components], strict=strict)
    assert [entity for entity, _ in result] == found


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("user", 0, None)], ErrorCode.INVALID_REQUEST),
        ([("user", 1, "x")], ErrorCode.INVALID_REQUEST),
        ([("user", 2, "x")], ErrorCode.INVALID_REQUEST),
        ([("user", 7, None)], ErrorCode.INVALID_REQUEST),
        ([("", 2, None)], ErrorCode.INVALID_REQUEST),
        ([("planet", 2, None)], ErrorCode.UNSUPPORTED_VERSION),
        ([("user", 2, None), ("user", 2, None)], ErrorCode.INVALID_REQUEST),
        ([("user", 2, None), ("ip", 2, None)], ErrorCode.INVALID_REQUEST),
    ],
)
def test_contradictory_filter_is_rejected(
    components: list[tuple[str, int, str | None]], code: ErrorCode
) -> None:
    """A contradictory filter is rejected with the error codes of Kafka 4.3."""
    with pytest.raises(ApiError) as caught:
        book_of().find([Component(*item) for item in components], strict=False)
    assert caught.value.code is code
