"""CreateTopics: created and rejected topics, and the response in each version."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.base.uuids import ZERO_UUID
from ottla.server.handlers import create_topics
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from tests.handlers.admin import AdminBroker, admin_broker


def topic(name: str, partitions: int = 1, factor: int = 1, **config: str) -> CreatableTopic:
    """Return a topic to create, with settings (dots as underscores)."""
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in config.items()
        ],
    )


async def create(
    broker: AdminBroker, *topics: CreatableTopic, version: int = 7, **fields: object
) -> list[CreatableTopicResult]:
    """Create topics and return the results."""
    request = CreateTopicsRequest(topics=list(topics), **fields)
    return (await create_topics.handle(broker.context(version), request)).topics


async def test_created_topic_is_returned_with_id_size_and_settings() -> None:
    """Version 5 returns the size and every setting, version 7 the id."""
    async with admin_broker() as broker:
        (result,) = await create(broker, topic("t", 3, retention_ms="5"))
        assert (result.error_code, result.error_message) == (0, None)
        assert (result.num_partitions, result.replication_factor) == (3, 1)
        assert result.topic_id == broker.image.topics["t"].topic_id != ZERO_UUID
        assert result.configs is not None
        settings = {item.name: (item.value, item.config_source) for item in result.configs}
        assert settings["retention.ms"] == ("5", 1)
        assert settings["segment.ms"] == ("604800000", 5)
        assert "internal.segment.bytes" not in settings


async def test_no_settings_are_returned_before_version_5() -> None:
    """The version has no field for settings, so they are not collected."""
    async with admin_broker() as broker:
        (result,) = await create(broker, topic("t"), version=4)
        assert (result.error_code, result.configs) == (0, [])


async def test_repeated_topic_is_rejected_and_others_are_created() -> None:
    """The intended topic would be ambiguous."""
    async with admin_broker() as broker:
        results = await create(broker, topic("a"), topic("b"), topic("a"))
        assert [(item.name, item.error_code) for item in results] == [
            ("a", ErrorCode.INVALID_REQUEST),
            ("b", 0),
        ]
        assert set(broker.image.topics) == {"b"}


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (topic("there"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (topic("a b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("x", 0), ErrorCode.INVALID_PARTITIONS),
        (topic("x", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic("x", retention_ms="soon"), ErrorCode.INVALID_CONFIG),
        (topic("x", no_such="1"), ErrorCode.INVALID_CONFIG),
    ],
)
async def test_rejected_topic_has_a_code_and_a_reason(
    asked: CreatableTopic, code: ErrorCode
) -> None:
    """The other fields of the result have their defaults."""
    async with admin_broker() as broker:
        await create(broker, topic("there"))
        (result,) = await create(broker, asked)
        assert result.error_code == code
        assert result.error_message
        assert (result.topic_id, result.num_partitions) == (ZERO_UUID, -1)


async def test_assignment_replaces_the_numbers() -> None:
    """The response has the resulting number of partitions and replication factor."""
    async with admin_broker() as broker:
        requested = topic("t", -1, -1)
        requested.assignments = [
            CreatableReplicaAssignment(partition_index=0, broker_ids=[1]),
            CreatableReplicaAssignment(partition_index=1, broker_ids=[1]),
        ]
        (result,) = await create(broker, requested)
        assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 2, 1)


async def test_validate_only_responds_as_usual_and_creates_nothing() -> None:
    """All checks run with validate_only."""
    async with admin_broker() as broker:
        good, bad = await create(broker, topic("t", -1, -1), topic("u", 0), validate_only=True)
        assert (good.error_code, good.num_partitions) == (0, 1)
        assert bad.error_code == ErrorCode.INVALID_PARTITIONS
        assert broker.image.topics == {}


async def test_request_without_timeout_creates_nothing() -> None:
    """The error is REQUEST_TIMED_OUT at once, as in Kafka 4."""
    async with admin_broker() as broker:
        (result,) = await create(broker, topic("t"), timeout_ms=0)
        assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert broker.image.topics == {}


async def test_last_value_of_a_repeated_setting_applies() -> None:
    """The last value of a repeated setting applies, as in Kafka."""
    async with admin_broker() as broker:
        requested = topic("t", retention_ms="1")
        requested.configs.append(CreatableTopicConfig(name="retention.ms", value="2"))
        await create(broker, requested)
        await broker.configs.load_topics(["t"])
        assert broker.configs.topic("t")["retention.ms"] == 2


async def test_broker_settings_are_the_defaults() -> None:
    """The number comes from num.partitions, and the source of the setting is log.retention.ms."""
    async with admin_broker(num_partitions="6", log_retention_ms="9") as broker:
        (result,) = await create(broker, topic("t", -1, -1))
        assert result.num_partitions == 6
        assert result.configs is not None
        (retention,) = [item for item in result.configs if item.name == "retention.ms"]
        assert (retention.value, retention.config_source) == ("9", 4)


async def test_too_many_partitions_in_all_topics_together() -> None:
    """The whole request is refused, as in KRaft; a default size counts, too."""
    async with admin_broker() as broker:
        results = await create(broker, topic("a", 6000), topic("b", 4000), topic("c", -1))
        assert [(item.name, item.error_code) for item in results] == [
            (name, ErrorCode.POLICY_VIOLATION) for name in "abc"
        ]
        assert not broker.image.topics
        results = await create(broker, topic("a", 6000), topic("b", 4000), validate_only=True)
        assert [item.error_code for item in results] == [0, 0]
