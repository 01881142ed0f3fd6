"""AlterConfigs: settings that are not in the request return to their defaults."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.controller.planning.requests import TopicRequest
from ottla.server.handlers import alter_configs
from ottla.wire import schema
from ottla.wire.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
)
from tests.handlers.admin import AdminBroker, admin_broker

TOPIC, BROKER = 2, 4
DEFAULT_RETENTION_MS = 604_800_000


def resource(kind: int, name: str, **settings: str | None) -> AlterConfigsResource:
    """Return a resource with all its settings; underscores are written for dots."""
    configs = [
        AlterableConfig(name=key.replace("_", "."), value=text) for key, text in settings.items()
    ]
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)


async def alter(
    broker: AdminBroker,
    *resources: AlterConfigsResource,
    validate_only: bool = False,
    version: int = 2,
) -> list[AlterConfigsResourceResponse]:
    """Create a topic `t`, alter resources, and return the responses."""
    await broker.controller.create_topics([TopicRequest("t", 1, 1)])
    request = AlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    requested, _ = schema.decode(AlterConfigsRequest, version, schema.encode(request, version))
    response = await alter_configs.handle(broker.context(version), requested)
    answer, _ = schema.decode(type(response), version, schema.encode(response, version))
    return answer.responses


@pytest.mark.parametrize("version", range(alter_configs.MAX_VERSION + 1))
async def test_all_settings_of_a_topic_are_replaced(version: int) -> None:
    """A setting that is missing in the second request is removed."""
    async with admin_broker() as broker:
        await alter(broker, resource(TOPIC, "t", retention_ms="5", segment_ms="6"), version=version)
        (response,) = await alter(broker, resource(TOPIC, "t", segment_ms="7"), version=version)
        assert (response.error_code, response.error_message) == (0, None)
        options = broker.configs.topic("t")
        assert (options["retention.ms"], options["segment.ms"]) == (DEFAULT_RETENTION_MS, 7)
        await alter(broker, resource(TOPIC, "t"), version=version)
        assert broker.configs.topic("t")["segment.ms"] == DEFAULT_RETENTION_MS


async def test_a_brokers_settings_are_replaced() -> None:
    """A broker and the default of all brokers are two resources."""
    async with admin_broker() as broker:
        await alter(
            broker,
            resource(BROKER, "", log_retention_ms="7"),
            resource(BROKER, "1", log_retention_ms="6"),
        )
        assert broker.configs.topic("t")["retention.ms"] == 6
        await alter(broker, resource(BROKER, "1"))
        assert broker.configs.topic("t")["retention.ms"] == 7


async def test_validate_only_changes_nothing() -> None:
    """All checks run with validate_only."""
    async with admin_broker() as broker:
        responses = await alter(
            broker,
            resource(TOPIC, "t", retention_ms="5"),
            resource(TOPIC, "nope", retention_ms="5"),
            validate_only=True,
        )
        assert [item.error_code for item in responses] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert broker.configs.topic("t")["retention.ms"] == DEFAULT_RETENTION_MS


async def test_repeated_resource_is_rejected() -> None:
    """Both of its results have the error, and other resources are altered."""
    async with admin_broker() as broker:
        responses = await alter(
            broker,
            resource(TOPIC, "t", retention_ms="5"),
            resource(TOPIC, "t"),
            resource(BROKER, "", log_retention_ms="7"),
        )
        twice = ErrorCode.INVALID_REQUEST
        assert [item.error_code for item in responses] == [twice, twice, 0]


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (resource(TOPIC, "", retention_ms="1"), ErrorCode.INVALID_REQUEST),
        (resource(TOPIC, "a b", retention_ms="1"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (resource(TOPIC, "t", retention_ms="x"), ErrorCode.INVALID_CONFIG),
        (resource(TOPIC, "t", nope="1"), ErrorCode.INVALID_CONFIG),
        (resource(TOPIC, "t", retention_ms=None), ErrorCode.INVALID_REQUEST),
        (resource(BROKER, "2", log_retention_ms="1"), ErrorCode.INVALID_REQUEST),
        (resource(BROKER, "1", num_partitions="1"), ErrorCode.INVALID_REQUEST),
        (resource(8, "1", root="INFO"), ErrorCode.INVALID_REQUEST),
    ],
)
async def test_rejected_resource_keeps_its_settings(
    asked: AlterConfigsResource, code: ErrorCode
) -> None:
    """The response has the resource and the reason."""
    async with admin_broker() as broker:
        await alter(broker, resource(TOPIC, "t", segment_ms="6"))
        (response,) = await alter(broker, asked)
        assert response.error_code == code
        assert response.error_message
        assert response.resource_name == asked.resource_name
        assert broker.configs.topic("t")["segment.ms"] == 6


async def test_too_many_changes_of_one_resource() -> None:
    """No resource has so many options; other resources are altered."""
    async with admin_broker() as broker:
        many = {f"option_{number}": "1" for number in range(2001)}
        refused, altered = await alter(
            broker, resource(TOPIC, "none", **many), resource(TOPIC, "t", retention_ms="5")
        )
        assert refused.error_code == ErrorCode.INVALID_REQUEST
        assert "2001 changes" in (refused.error_message or "")
        assert altered.error_code == 0
