"""DescribeClientQuotas: the quotas that this broker enforces, with filters."""

from ottla.base.errors import ErrorCode
from ottla.server.handlers import describe_client_quotas
from ottla.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from tests.handlers.admin import AdminBroker, admin_broker

Component = tuple[str, int, str | None]


def describe(
    broker: AdminBroker, *components: Component, strict: bool = False
) -> DescribeClientQuotasResponse:
    """Describe quotas with a filter."""
    request = DescribeClientQuotasRequest(
        components=[
            ComponentData(entity_type=kind, match_type=match, match=name)
            for kind, match, name in components
        ],
        strict=strict,
    )
    return describe_client_quotas.handle(broker.context(1), request)


def entities(response: DescribeClientQuotasResponse) -> list[dict[str, str | None]]:
    """Return the names of the entities in the response."""
    assert (response.error_code, response.error_message) == (0, None)
    assert response.entries is not None
    return [
        {item.entity_type: item.entity_name for item in entry.entity} for entry in response.entries
    ]


async def test_entities_have_their_values() -> None:
    """The default entity has no name; entities without a quota are omitted."""
    async with admin_broker() as broker:
        changed = broker.quotas.settings_changed
        changed("users", "u/clients/<default>", {"producer_byte_rate": "5", "SCRAM-SHA-256": "x"})
        changed("users", "v", {"SCRAM-SHA-256": "x"})
        response = describe(broker)
        assert entities(response) == [{"client-id": None, "user": "u"}]
        assert response.entries is not None
        (value,) = response.entries[0].values
        assert (value.key, value.value) == ("producer_byte_rate", 5.0)


async def test_filter_is_applied() -> None:
    """A filter is applied both strictly and not."""
    async with admin_broker() as broker:
        for path in ("u", "u/clients/c", "<default>"):
            broker.quotas.settings_changed("users", path, {"producer_byte_rate": "5"})
        exact: Component = ("user", 0, "u")
        assert len(entities(describe(broker, exact))) == 2
        assert entities(describe(broker, exact, strict=True)) == [{"user": "u"}]
        assert entities(describe(broker, ("user", 1, None))) == [{"user": None}]
        assert entities(describe(broker, ("ip", 2, None))) == []


async def test_contradictory_filter_is_a_top_level_error() -> None:
    """The response then has null entries."""
    async with admin_broker() as broker:
        response = describe(broker, ("user", 0, None))
        assert response.error_code == ErrorCode.INVALID_REQUEST
        assert response.error_message and response.entries is None
        unknown = describe(broker, ("planet", 2, None))
        assert unknown.error_code == ErrorCode.UNSUPPORTED_VERSION
