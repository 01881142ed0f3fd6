"""DescribeConfigs: values, their sources, synonyms and documentation."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.base.options import OptionType
from ottla.cluster.options.option_tables import BROKER_OPTIONS
from ottla.cluster.znodes import ConfigNode
from ottla.controller.planning.requests import Alteration, ConfigChange, ConfigRequest, TopicRequest
from ottla.server.handlers import describe_configs
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from tests.handlers.admin import AdminBroker, admin_broker

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


def describe(
    broker: AdminBroker, kind: int, name: str, keys: list[str] | None = None, **fields: bool
) -> DescribeConfigsResult:
    """Describe one resource."""
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys
    )
    request = DescribeConfigsRequest(resources=[resource], **fields)
    (result,) = describe_configs.handle(broker.context(4), request).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


async def with_topic(broker: AdminBroker, **config: str) -> None:
    """Create a topic `t` with settings (dots as underscores)."""
    settings: dict[str, str | None] = {
        name.replace("_", "."): value for name, value in config.items()
    }
    await broker.controller.create_topics([TopicRequest("t", 1, 1, config=settings)])
    await broker.configs.load_topics(["t"])


def only(result: DescribeConfigsResult) -> DescribeConfigsResourceResult:
    """Return the only option in the result."""
    assert result.error_code == 0
    (config,) = result.configs
    return config


async def test_resource_that_is_named_twice_has_two_rows() -> None:
    """Null and an empty list both request all options; an option that is named twice is in once."""
    async with admin_broker() as broker:
        await with_topic(broker)
        lists = [None, ["retention.ms"], [], ["retention.ms"] * 2, ["cleanup.policy"]]
        resources = [
            DescribeConfigsResource(resource_type=TOPIC, resource_name="t", configuration_keys=keys)
            for keys in lists * 3
        ]
        request = DescribeConfigsRequest(resources=resources)
        results = describe_configs.handle(broker.context(4), request).results
        names = [[config.name for config in result.configs] for result in results]
        every = names[0]
        assert len(every) > 20
        assert names == [every, ["retention.ms"], every, ["retention.ms"], ["cleanup.policy"]] * 3


async def test_a_topics_option_has_value_source_and_type() -> None:
    """Synonyms and documentation are returned only on request."""
    async with admin_broker() as broker:
        await with_topic(broker, retention_ms="5")
        config = only(describe(broker, TOPIC, "t", ["retention.ms"]))
        assert (config.value, config.config_source) == ("5", 1)
        assert (config.read_only, config.is_sensitive) == (False, False)
        assert config.config_type == OptionType.LONG.value
        assert (config.synonyms, config.documentation) == ([], None)


async def test_synonyms_list_every_source_of_the_value() -> None:
    """The first synonym applies: the topic, then the broker's settings, then the default."""
    async with admin_broker(log_retention_ms="9", log_retention_minutes="2") as broker:
        await with_topic(broker, retention_ms="5")
        config = only(describe(broker, TOPIC, "t", ["retention.ms"], include_synonyms=True))
        assert [(item.name, item.value, item.source) for item in config.synonyms] == [
            ("retention.ms", "5", 1),
            ("log.retention.ms", "9", 4),
            ("log.retention.minutes", "2", 4),
            ("log.retention.hours", "168", 5),
        ]


async def test_every_option_has_documentation() -> None:
    """Every option has a documentation of Ottla's own."""
    async with admin_broker() as broker:
        result = describe(broker, BROKER, "1", include_documentation=True)
        assert {config.name for config in result.configs} == set(BROKER_OPTIONS.rows)
        assert all(config.documentation for config in result.configs)


@pytest.mark.parametrize("keys", [None, []])
async def test_all_options_are_described_without_keys(keys: list[str] | None) -> None:
    """Internal options are omitted unless they are set."""
    async with admin_broker() as broker:
        await with_topic(broker)
        names = [config.name for config in describe(broker, TOPIC, "t", keys).configs]
        assert names == sorted(names)
        assert {"retention.ms", "cleanup.policy", "flush.on.ack"} <= set(names)
        assert "internal.segment.bytes" not in names


async def test_unknown_keys_are_ignored() -> None:
    """Unknown keys are ignored, as in Kafka."""
    async with admin_broker() as broker:
        await with_topic(broker)
        assert describe(broker, TOPIC, "t", ["nope"]).configs == []


async def test_static_broker_options_are_read_only() -> None:
    """Static options are read-only and have the static source."""
    async with admin_broker(num_partitions="3") as broker:
        result = describe(broker, BROKER, "1", ["num.partitions", "log.retention.ms"])
        configs = {config.name: config for config in result.configs}
        assert (configs["num.partitions"].value, configs["num.partitions"].config_source) == (
            "3",
            4,
        )
        assert configs["num.partitions"].read_only
        assert not configs["log.retention.ms"].read_only


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "2", ErrorCode.INVALID_REQUEST),
        (BROKER, "x", ErrorCode.INVALID_REQUEST),
        (BROKER_LOGGER, "", ErrorCode.INVALID_REQUEST),
        (BROKER_LOGGER, "2", ErrorCode.INVALID_REQUEST),
        (CLIENT_METRICS, "", ErrorCode.INVALID_REQUEST),
        (99, "x", ErrorCode.INVALID_REQUEST),
    ],
)
async def test_resource_without_options_has_an_error(kind: int, name: str, code: ErrorCode) -> None:
    """The other resources of the request are described."""
    async with admin_broker() as broker:
        result = describe(broker, kind, name)
        assert (result.error_code, result.configs) == (code, [])
        assert result.error_message


async def test_the_loggers_of_the_broker_have_levels() -> None:
    """They have a source of their own, and no type, synonyms or documentation, as in Apache Kafka."""
    async with admin_broker() as broker:
        result = describe(broker, BROKER_LOGGER, "1", keys=["root"], include_synonyms=True)
        (root,) = result.configs
        assert (root.name, root.config_source, root.config_type) == ("root", 6, 0)
        assert root.value in ("FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE")
        assert (root.synonyms, root.documentation, root.read_only) == ([], "", False)
        everything = describe(broker, BROKER_LOGGER, "1").configs
        assert "ottla.controller.loop" in {config.name for config in everything}


async def test_a_subscription_to_client_metrics_has_three_options() -> None:
    """A missing subscription is described with the defaults, as in Kafka 4.3."""
    async with admin_broker() as broker:
        session = broker.world.tree.session()
        await session.ensure("/config/client-metrics/s")
        content = ConfigNode.encode({"interval.ms": "1000"})
        await session.set("/config/client-metrics/s", content)
        await broker.configs.refresh(ConfigNode.CLIENT_METRICS, "s")
        result = describe(broker, CLIENT_METRICS, "s", include_synonyms=True)
        assert [(item.name, item.value, item.config_source) for item in result.configs] == [
            ("interval.ms", "1000", 7),
            ("match", "", 5),
            ("metrics", "", 5),
        ]
        assert [len(item.synonyms) for item in result.configs] == [1, 0, 0]
        other = only(describe(broker, CLIENT_METRICS, "other", ["interval.ms"]))
        assert (other.value, other.config_source) == ("300000", 5)


async def test_group_options_have_their_sources() -> None:
    """The group's own setting comes first, then the broker's option behind it and the default."""
    async with admin_broker(group_consumer_heartbeat_interval_ms="6000") as broker:
        change = ConfigChange("consumer.session.timeout.ms", Alteration.SET, "46000")
        await broker.controller.alter_configs([ConfigRequest("groups", "g", (change,))])
        await broker.configs.refresh("groups", "g")
        result = describe(broker, GROUP, "g", include_synonyms=True)
        described = {item.name: item for item in result.configs}
        session = described["consumer.session.timeout.ms"]
        assert (session.value, session.config_source) == ("46000", 8)
        assert [(item.name, item.value, item.source) for item in session.synonyms] == [
            ("consumer.session.timeout.ms", "46000", 8),
            ("group.consumer.session.timeout.ms", "45000", 5),
        ]
        beat = described["consumer.heartbeat.interval.ms"]
        assert (beat.value, beat.config_source) == ("6000", 4)
        assert describe(broker, GROUP, "").error_code == ErrorCode.INVALID_REQUEST
