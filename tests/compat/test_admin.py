"""Topics and configuration with foreign administration clients and Kafka's own tools."""

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from kafka.admin import ConfigResource as PythonResource
from kafka.admin import ConfigResourceType, KafkaAdminClient
from kafka.admin import NewTopic as PythonTopic
from kafka.errors import InvalidConfigurationError, TopicAlreadyExistsError

from ottla.testing.cluster import Cluster
from tests.compat import java

pytestmark = [pytest.mark.compat, pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Return a broker for this file; every test uses its own topics."""
    with Cluster() as running:
        yield running


# -- librdkafka -----------------------------------------------------------------------------------


@pytest.fixture
def admin(cluster: Cluster) -> AdminClient:
    """Return librdkafka's administration client."""
    return AdminClient({"bootstrap.servers": cluster.bootstrap})


def code_of(future: object) -> int:
    """Return the error code of a future."""
    with pytest.raises(KafkaException) as caught:
        future.result()  # type: ignore[attr-defined]
    error = caught.value.args[0]
    assert error.str()
    return int(error.code())


def create(admin: AdminClient, name: str, partitions: int = 1, **config: str) -> None:
    """Create a topic and wait for it."""
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result()


def test_librdkafka_creates_topics_adds_partitions_and_deletes_topics(admin: AdminClient) -> None:
    """Topics that librdkafka has created, grown or deleted are up to date in the next metadata."""
    create(admin, "rd-life", 2)
    assert len(admin.list_topics("rd-life").topics["rd-life"].partitions) == 2
    admin.create_partitions([NewPartitions("rd-life", 5)])["rd-life"].result()
    assert len(admin.list_topics("rd-life").topics["rd-life"].partitions) == 5
    admin.delete_topics(["rd-life"])["rd-life"].result()
    assert "rd-life" not in admin.list_topics().topics
    create(admin, "rd-life")


def test_librdkafka_reports_why_topics_are_rejected(admin: AdminClient) -> None:
    """librdkafka reports the error codes of rejected topics, with a message."""
    create(admin, "rd-there")
    again = admin.create_topics([NewTopic("rd-there", 1, 1)])["rd-there"]
    assert code_of(again) == KafkaError.TOPIC_ALREADY_EXISTS
    wide = admin.create_topics([NewTopic("rd-wide", 1, 3)])["rd-wide"]
    assert code_of(wide) == KafkaError.INVALID_REPLICATION_FACTOR
    odd = admin.create_topics([NewTopic("rd odd", 1, 1)])["rd odd"]
    assert code_of(odd) == KafkaError.TOPIC_EXCEPTION
    bad = NewTopic("rd-bad", 1, 1, config={"retention.ms": "soon"})
    assert code_of(admin.create_topics([bad])["rd-bad"]) == KafkaError.INVALID_CONFIG
    fewer = admin.create_partitions([NewPartitions("rd-there", 1)])["rd-there"]
    assert code_of(fewer) == KafkaError.INVALID_PARTITIONS
    gone = admin.delete_topics(["rd-nope"])["rd-nope"]
    assert code_of(gone) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_librdkafka_validates_without_creating(admin: AdminClient) -> None:
    """`validate_only` creates nothing."""
    admin.create_topics([NewTopic("rd-dry", 3, 1)], validate_only=True)["rd-dry"].result()
    assert "rd-dry" not in admin.list_topics().topics


def test_librdkafka_reads_and_changes_settings(admin: AdminClient) -> None:
    """Settings have their source and synonyms."""
    create(admin, "rd-conf", retention_ms="60000")
    resource = ConfigResource(ResourceType.TOPIC, "rd-conf")
    config = admin.describe_configs([resource])[resource].result()
    assert config["retention.ms"].value == "60000"
    assert config["retention.ms"].source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    assert config["segment.bytes"].is_default
    change = ConfigResource(
        ResourceType.TOPIC,
        "rd-conf",
        incremental_configs=[
            ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE),
            ConfigEntry(
                "cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND
            ),
        ],
    )
    admin.incremental_alter_configs([change])[change].result()
    config = admin.describe_configs([resource])[resource].result()
    assert config["retention.ms"].is_default
    assert config["cleanup.policy"].value == "delete,compact"


def test_librdkafka_reads_a_brokers_settings(admin: AdminClient) -> None:
    """The settings of a broker are found by its id in the metadata, as all tools do it."""
    (broker_id,) = admin.list_topics().brokers
    resource = ConfigResource(ResourceType.BROKER, str(broker_id))
    config = admin.describe_configs([resource])[resource].result()
    assert config["num.partitions"].value == "1"
    assert config["num.partitions"].is_read_only
    assert not config["log.retention.ms"].is_read_only


# -- kafka-python ---------------------------------------------------------------------------------


@pytest.fixture
def python_admin(cluster: Cluster) -> Iterator[KafkaAdminClient]:
    """Return kafka-python's administration client."""
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    yield client
    client.close()


def test_kafka_python_creates_describes_and_deletes_topics(
    python_admin: KafkaAdminClient,
) -> None:
    """kafka-python raises its own exceptions for error codes."""
    topic = PythonTopic("py-life", 3, 1, topic_configs={"max.message.bytes": "2000"})
    python_admin.create_topics([topic])
    (actual,) = python_admin.describe_topics(["py-life"])
    assert len(actual["partitions"]) == 3
    with pytest.raises(TopicAlreadyExistsError):
        python_admin.create_topics([topic])
    with pytest.raises(InvalidConfigurationError):
        bad = PythonTopic("py-bad", 1, 1, topic_configs={"retention.ms": "soon"})
        python_admin.create_topics([bad])
    python_admin.delete_topics(["py-life"])
    assert "py-life" not in python_admin.list_topics()


def test_kafka_python_describes_settings(python_admin: KafkaAdminClient) -> None:
    """One request describes topics and brokers."""
    python_admin.create_topics([PythonTopic("py-conf", 1, 1)])
    responses = python_admin.describe_configs(
        [
            PythonResource(ConfigResourceType.TOPIC, "py-conf"),
            PythonResource(ConfigResourceType.BROKER, "1"),
        ],
        config_filter="all",
    )
    assert responses["topic"]["py-conf"]["retention.ms"]["value"] == "604800000"
    assert responses["broker"]["1"]["log.retention.hours"]["value"] == "168"


# -- Kafka's own tools ----------------------------------------------------------------------------

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"


@pytest.mark.slow
@pytest.mark.needs("java")
@pytest.mark.parametrize("version", java.VERSIONS)
def test_kafkas_tools_manage_topics_and_settings(cluster: Cluster, version: str) -> None:
    """Kafka's kafka-topics and kafka-configs work unchanged."""
    class_path = java.kafka_class_path(version)
    name = f"java-{version}"
    bootstrap = ("--bootstrap-server", cluster.bootstrap)
    entity = ("--entity-type", "topics", "--entity-name", name)

    def topics(*arguments: str) -> str:
        return java.run(class_path, TOPICS, *bootstrap, *arguments)

    def settings(*arguments: str) -> str:
        return java.run(class_path, CONFIGS, *bootstrap, *entity, *arguments)

    topics("--create", "--topic", name, "--partitions", "3", "--config", "retention.ms=60000")
    topics("--alter", "--topic", name, "--partitions", "4")
    described = topics("--describe", "--topic", name)
    assert "PartitionCount: 4" in described
    assert "retention.ms=60000" in described
    settings("--alter", "--add-config", "cleanup.policy=[compact,delete],max.message.bytes=2000")
    settings("--alter", "--delete-config", "retention.ms")
    described = settings("--describe")
    assert "cleanup.policy=compact,delete" in described
    assert "DEFAULT_CONFIG:message.max.bytes=1048588" in described
    assert "retention.ms" not in described
    topics("--delete", "--topic", name)
    assert name not in topics("--list")
