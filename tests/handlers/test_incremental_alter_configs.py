"""IncrementalAlterConfigs: settings change at once, and each resource atomically."""

import logging

import pytest

from ottla.base.errors import ErrorCode
from ottla.base.options import Snapshot
from ottla.cluster.znodes import ConfigNode
from ottla.controller.planning.requests import Alteration, TopicRequest
from ottla.server.handlers import alter_configs as alter_configs_handler
from ottla.server.handlers import incremental_alter_configs
from ottla.wire.messages import alter_configs
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
)
from tests.handlers.admin import AdminBroker, admin_broker

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND = Alteration.SET, Alteration.DELETE, Alteration.APPEND


def resource(kind: int, name: str, *changes: tuple[str, int, str | None]) -> AlterConfigsResource:
    """Return a resource with changes (name, operation, value)."""
    return AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            AlterableConfig(name=key, config_operation=int(operation), value=value)
            for key, operation, value in changes
        ],
    )


async def alter(
    broker: AdminBroker, *resources: AlterConfigsResource, validate_only: bool = False
) -> list[AlterConfigsResourceResponse]:
    """Create a topic `t`, alter resources, and return the responses."""
    await broker.controller.create_topics([TopicRequest("t", 1, 1)])
    request = IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    response = await incremental_alter_configs.handle(broker.context(1), request)
    return response.responses


async def test_topic_setting_applies_when_the_response_is_sent() -> None:
    """Every component has applied the setting."""
    async with admin_broker() as broker:
        changes: list[tuple[str, int]] = []

        def note(topic: str, snapshot: Snapshot) -> None:
            changes.append((topic, snapshot["retention.ms"]))

        broker.configs.on_topic.append(note)
        (response,) = await alter(broker, resource(TOPIC, "t", ("retention.ms", SET, "5")))
        assert (response.error_code, response.error_message) == (0, None)
        assert changes == [("t", 5)]
        await alter(broker, resource(TOPIC, "t", ("retention.ms", DELETE, None)))
        assert changes[1:] == [("t", 604_800_000)]


@pytest.mark.parametrize(
    "name", ["ann", "users/ann", "../users/ann", "t/../../users/ann", "<default>", "..", ""]
)
async def test_no_resource_reaches_the_settings_of_users(name: str) -> None:
    """Quotas and credentials of users have APIs of their own; neither do AlterConfigs."""
    async with admin_broker() as broker:
        session = broker.world.tree.session()
        before = {}
        for user in ("ann", ConfigNode.DEFAULT):
            path = ConfigNode.path(ConfigNode.USERS, user)
            await session.ensure(path)
            before[path] = ConfigNode.encode({"SCRAM-SHA-256": "a", "producer_byte_rate": "7"})
            await session.set(path, before[path])
        for key in ("SCRAM-SHA-256", "producer_byte_rate"):
            for kind in range(-1, 65):
                await alter(broker, resource(kind, name, (key, SET, "b"), ("x", DELETE, None)))
                await alter(broker, resource(kind, name, (key, DELETE, None)))
                replaced = alter_configs.AlterConfigsResource(
                    resource_type=kind,
                    resource_name=name,
                    configs=[alter_configs.AlterableConfig(name=key, value="b")],
                )
                replacement = alter_configs.AlterConfigsRequest(resources=[replaced])
                await alter_configs_handler.handle(broker.context(1), replacement)
        assert {path: (await session.get(path))[0] for path in before} == before
        assert await session.children(ConfigNode.type_path(ConfigNode.USERS)) == sorted(
            path.rpartition("/")[2] for path in before
        )


async def test_lists_are_appended_to() -> None:
    """Appending to a list that is not set begins with its default."""
    async with admin_broker() as broker:
        await alter(broker, resource(TOPIC, "t", ("cleanup.policy", APPEND, "compact")))
        assert broker.configs.topic("t")["cleanup.policy"] == ["delete", "compact"]


async def test_a_brokers_setting_is_a_default_of_every_topic() -> None:
    """A broker's own value has precedence over the default of all brokers."""
    async with admin_broker() as broker:
        await alter(
            broker,
            resource(BROKER, "", ("log.retention.ms", SET, "7")),
            resource(BROKER, "1", ("log.retention.ms", SET, "6")),
        )
        assert broker.configs.topic("t")["retention.ms"] == 6
        await alter(broker, resource(BROKER, "1", ("log.retention.ms", DELETE, None)))
        assert broker.configs.topic("t")["retention.ms"] == 7


async def test_validate_only_changes_nothing() -> None:
    """All checks run with validate_only."""
    async with admin_broker() as broker:
        responses = await alter(
            broker,
            resource(TOPIC, "t", ("retention.ms", SET, "5")),
            resource(BROKER, "1", ("log.retention.ms", SET, "x")),
            validate_only=True,
        )
        assert [item.error_code for item in responses] == [0, ErrorCode.INVALID_REQUEST]
        assert broker.configs.topic("t")["retention.ms"] == 604_800_000


async def test_resource_changes_atomically() -> None:
    """An invalid setting rejects its resource entirely, and no other resource."""
    async with admin_broker() as broker:
        responses = await alter(
            broker,
            resource(TOPIC, "t", ("retention.ms", SET, "5"), ("nope", SET, "1")),
            resource(BROKER, "", ("log.retention.ms", SET, "7")),
        )
        assert [item.error_code for item in responses] == [ErrorCode.INVALID_CONFIG, 0]
        assert broker.configs.topic("t")["retention.ms"] == 7


async def test_repeated_resource_is_rejected() -> None:
    """Both of its results have the error, and other resources are altered."""
    async with admin_broker() as broker:
        responses = await alter(
            broker,
            resource(TOPIC, "t", ("retention.ms", SET, "5")),
            resource(TOPIC, "t", ("segment.ms", SET, "5")),
            resource(BROKER, "", ("log.retention.ms", SET, "7")),
        )
        twice = ErrorCode.INVALID_REQUEST
        assert [item.error_code for item in responses] == [twice, twice, 0]


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (resource(TOPIC, "", ("retention.ms", SET, "1")), ErrorCode.INVALID_REQUEST),
        (resource(TOPIC, "nope", ("retention.ms", SET, "1")), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (resource(TOPIC, "a b", ("retention.ms", SET, "1")), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (resource(TOPIC, "t", ("retention.ms", 9, "1")), ErrorCode.INVALID_REQUEST),
        (resource(TOPIC, "t", ("retention.ms", SET, "x")), ErrorCode.INVALID_CONFIG),
        (resource(TOPIC, "t", ("retention.ms", APPEND, "1")), ErrorCode.INVALID_CONFIG),
        (resource(BROKER, "2", ("log.retention.ms", SET, "1")), ErrorCode.INVALID_REQUEST),
        (resource(BROKER, "1", ("num.partitions", SET, "1")), ErrorCode.INVALID_REQUEST),
        (resource(BROKER_LOGGER, "2", ("root", SET, "INFO")), ErrorCode.INVALID_REQUEST),
        (resource(BROKER_LOGGER, "1", ("root", SET, "loud")), ErrorCode.INVALID_CONFIG),
        (resource(99, "x", ("root", SET, "INFO")), ErrorCode.INVALID_REQUEST),
    ],
)
async def test_rejected_resource_has_a_code_and_a_reason(
    asked: AlterConfigsResource, code: ErrorCode
) -> None:
    """The response has the resource."""
    async with admin_broker() as broker:
        (response,) = await alter(broker, asked)
        assert response.error_code == code
        assert response.error_message
        assert response.resource_name == asked.resource_name


async def test_logger_level_applies_when_the_response_is_sent() -> None:
    """The level applies to this process, and validate_only changes nothing."""
    name = "ottla.tests.level"
    logger = logging.getLogger(name)
    async with admin_broker() as broker:
        await alter(broker, resource(BROKER_LOGGER, "1", (name, SET, "TRACE")), validate_only=True)
        assert logger.level == logging.NOTSET
        (response,) = await alter(broker, resource(BROKER_LOGGER, "1", (name, SET, "ERROR")))
        assert (response.error_code, response.error_message) == (0, None)
        assert logger.level == logging.ERROR
        await alter(broker, resource(BROKER_LOGGER, "1", (name, DELETE, None)))
        assert logger.level == logging.NOTSET


async def test_subscription_to_client_metrics_applies_when_the_response_is_sent() -> None:
    """The tree has it by its name; without settings it is removed."""
    async with admin_broker() as broker:
        changes = (("metrics", SET, "org.apache."), ("match", SET, "client_id=a"))
        (response,) = await alter(broker, resource(CLIENT_METRICS, "a b", *changes))
        assert (response.error_code, response.error_message) == (0, None)
        actual = broker.configs.entities("client-metrics")
        assert actual == {"a%20b": {"metrics": "org.apache.", "match": "client_id=a"}}
        gone = (("metrics", DELETE, None), ("match", DELETE, None), ("nonsense", DELETE, None))
        (response,) = await alter(broker, resource(CLIENT_METRICS, "a b", *gone))
        assert response.error_code == 0
        assert broker.configs.entities("client-metrics") == {}


@pytest.mark.parametrize(
    ("name", "change", "code"),
    [
        ("", ("interval.ms", SET, "1000"), ErrorCode.INVALID_REQUEST),
        ("s", ("interval.ms", SET, "10"), ErrorCode.INVALID_REQUEST),
        ("s", ("interval.ms", SET, "x"), ErrorCode.INVALID_CONFIG),
        ("s", ("interval.ms", SET, None), ErrorCode.INVALID_REQUEST),
        ("s", ("nonsense", SET, "10"), ErrorCode.INVALID_REQUEST),
        ("s", ("match", SET, "client_id=["), ErrorCode.INVALID_CONFIG),
        ("s", ("metrics", APPEND, "org."), ErrorCode.INVALID_CONFIG),
    ],
)
async def test_invalid_subscription_has_the_code_of_kafka(
    name: str, change: tuple[str, int, str | None], code: ErrorCode
) -> None:
    """An invalid subscription is not stored."""
    async with admin_broker() as broker:
        (response,) = await alter(broker, resource(CLIENT_METRICS, name, change))
        assert response.error_code == code
        assert response.error_message
        assert broker.configs.entities("client-metrics") == {}


async def test_group_settings_apply_at_once_within_the_broker_limits() -> None:
    """Group settings are checked against the limits, and stored also for groups that do not exist."""
    async with admin_broker(group_consumer_max_session_timeout_ms="50000") as broker:
        session, beat = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
        (response,) = await alter(broker, resource(GROUP, "g", (session, SET, "47000")))
        assert response.error_code == 0
        assert broker.configs.group("g") == {session: 47_000}
        refused = [
            (("no.such.key", SET, "1"), ErrorCode.INVALID_CONFIG),
            ((session, SET, "50001"), ErrorCode.INVALID_CONFIG),
            ((session, SET, "x"), ErrorCode.INVALID_CONFIG),
            ((session, APPEND, "46000"), ErrorCode.INVALID_CONFIG),
            ((session, SET, None), ErrorCode.INVALID_REQUEST),
            ((beat, SET, "4999"), ErrorCode.INVALID_CONFIG),
        ]
        for change, code in refused:
            (response,) = await alter(broker, resource(GROUP, "g", change))
            assert response.error_code == code
        (nameless,) = await alter(broker, resource(GROUP, "", (session, SET, "47000")))
        assert nameless.error_code == ErrorCode.INVALID_REQUEST
        await alter(broker, resource(GROUP, "g", (session, DELETE, None)))
        assert broker.configs.group("g") == {}


async def test_a_groups_session_is_longer_than_its_heartbeat_interval() -> None:
    """The two settings of a group are compared with each other, and with the broker's."""
    limits = {
        "group_consumer_min_session_timeout_ms": "1000",
        "group_consumer_max_heartbeat_interval_ms": "60000",
    }
    async with admin_broker(**limits) as broker:
        session, beat = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
        (first,) = await alter(broker, resource(GROUP, "g", (session, SET, "5000")))
        (second,) = await alter(
            broker, resource(GROUP, "g", (session, SET, "8000"), (beat, SET, "9000"))
        )
        assert first.error_code == second.error_code == ErrorCode.INVALID_CONFIG
