"""ListConfigResources: names of topics, brokers and subscriptions to client metrics."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.server.handlers import list_config_resources
from ottla.wire.messages.list_config_resources import ListConfigResourcesRequest
from tests.handlers.logs import LogsBroker


class Configs:
    """A config store with one subscription and one group in the tree."""

    def entities(self, entity_type: str) -> dict[str, dict[str, str]]:
        if entity_type == "groups":
            return {"g%2Fh": {"consumer.session.timeout.ms": "46000"}}
        return {"m%20s": {"metrics": "*"}} if entity_type == "client-metrics" else {}


TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


@pytest.mark.parametrize(
    ("types", "found"),
    [
        (
            [],
            [
                ("m s", CLIENT_METRICS),
                ("1", BROKER),
                ("2", BROKER),
                ("1", BROKER_LOGGER),
                ("2", BROKER_LOGGER),
                ("a", TOPIC),
                ("b", TOPIC),
                ("g/h", GROUP),
            ],
        ),
        ([TOPIC], [("a", TOPIC), ("b", TOPIC)]),
        ([BROKER, GROUP], [("1", BROKER), ("2", BROKER), ("g/h", GROUP)]),
        ([BROKER_LOGGER], [("1", BROKER_LOGGER), ("2", BROKER_LOGGER)]),
        ([CLIENT_METRICS], [("m s", CLIENT_METRICS)]),
    ],
)
async def test_resources_of_the_requested_types_are_listed(
    broker: LogsBroker, types: list[int], found: list[tuple[str, int]]
) -> None:
    """An empty list of types selects every type."""
    broker.configs = Configs()  # type: ignore[assignment]
    broker.create("a")
    broker.create("b")
    request = ListConfigResourcesRequest(resource_types=types)
    response = await broker.ask(list_config_resources, request, 1)
    assert response.error_code == 0
    names = [(item.resource_name, item.resource_type) for item in response.config_resources]
    assert names == found


async def test_unknown_type_is_rejected(broker: LogsBroker) -> None:
    """The error is Kafka's, even if a known type is in the request as well."""
    broker.configs = Configs()  # type: ignore[assignment]
    request = ListConfigResourcesRequest(resource_types=[TOPIC, 1])
    response = await broker.ask(list_config_resources, request, 1)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert response.config_resources == []


async def test_version_0_lists_only_client_metrics(broker: LogsBroker) -> None:
    """Version 0 has no other types."""
    broker.configs = Configs()  # type: ignore[assignment]
    broker.create("a")
    response = await broker.ask(list_config_resources, ListConfigResourcesRequest(), 0)
    assert response.error_code == 0
    assert [item.resource_name for item in response.config_resources] == ["m s"]
