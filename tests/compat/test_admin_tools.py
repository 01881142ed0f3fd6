"""Elections, reassignments, log directories, offsets and producers with foreign tools."""

import json
from collections.abc import Iterator
from pathlib import Path

import kafka
import pytest
from confluent_kafka import Consumer, ElectionType, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType
from kafka import TopicPartition as PythonPartition
from kafka.admin import ConfigResource as PythonResource
from kafka.admin import ConfigResourceType, KafkaAdminClient
from kafka.admin import NewTopic as PythonTopic
from kafka.errors import (
    ElectionNotNeededError,
    GroupIdNotFoundError,
    InvalidReplicationAssignmentError,
    NoReassignmentInProgressError,
)

from ottla.testing.cluster import Cluster
from tests.compat import java

pytestmark = [pytest.mark.compat, pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Return a broker for this file; every test uses its own topics."""
    with Cluster() as running:
        yield running


def create(cluster: Cluster, name: str, partitions: int = 1) -> AdminClient:
    """Create a topic; return librdkafka's administration client."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result()
    return admin


def write(cluster: Cluster, topic: str, count: int) -> None:
    """Write records to partition 0 with an idempotent producer."""
    settings = {"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True}
    producer = Producer(settings)
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(30) == 0


def commit(cluster: Cluster, group: str, topic: str) -> None:
    """Commit offset 1 of partition 0 for a group without members."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    consumer.close()


# -- librdkafka -----------------------------------------------------------------------------------


def test_librdkafka_replaces_all_settings_of_a_topic(cluster: Cluster) -> None:
    """Settings that are missing in AlterConfigs are reset."""
    admin = create(cluster, "rd-replace")
    for settings in ({"retention.ms": "5", "segment.ms": "6"}, {"segment.ms": "7"}):
        change = ConfigResource(ResourceType.TOPIC, "rd-replace", set_config=settings)
        with pytest.warns(DeprecationWarning):
            admin.alter_configs([change])[change].result()
    resource = ConfigResource(ResourceType.TOPIC, "rd-replace")
    config = admin.describe_configs([resource])[resource].result()
    assert config["retention.ms"].is_default
    assert config["segment.ms"].value == "7"


def test_librdkafka_requests_elections(cluster: Cluster) -> None:
    """An election has a result for every partition."""
    admin = create(cluster, "rd-elect")
    requested = [TopicPartition("rd-elect", 0), TopicPartition("rd-none", 0)]
    answered = admin.elect_leaders(ElectionType.PREFERRED, requested).result()
    codes = {topic_partition.topic: error.code() for topic_partition, error in answered.items()}
    assert codes == {
        "rd-elect": KafkaError.ELECTION_NOT_NEEDED,
        "rd-none": KafkaError.UNKNOWN_TOPIC_OR_PART,
    }


# -- kafka-python ---------------------------------------------------------------------------------


@pytest.fixture
def python_admin(cluster: Cluster) -> Iterator[KafkaAdminClient]:
    """Return kafka-python's administration client."""
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    yield client
    client.close()


def test_kafka_python_replaces_all_settings(
    cluster: Cluster, python_admin: KafkaAdminClient
) -> None:
    """kafka-python sends the current settings again, and can reset one to its default."""
    create(cluster, "py-replace")
    resource = PythonResource(ConfigResourceType.TOPIC, "py-replace", configs={"retention.ms": "5"})
    python_admin.alter_configs([resource], incremental=False)
    other = PythonResource(ConfigResourceType.TOPIC, "py-replace", configs={"segment.ms": "6"})
    python_admin.alter_configs([other], incremental=False)
    requested = PythonResource(ConfigResourceType.TOPIC, "py-replace")
    config = python_admin.describe_configs([requested], config_filter="all")["topic"]["py-replace"]
    assert (config["retention.ms"]["value"], config["segment.ms"]["value"]) == ("5", "6")


def test_kafka_python_lists_resources_and_pages_of_topics(
    cluster: Cluster, python_admin: KafkaAdminClient
) -> None:
    """A page ends at its limit, and the cursor starts the next one."""
    python_admin.create_topics([PythonTopic("py-pages", 3, 1)])
    resources = python_admin.list_config_resources(["TOPIC", "BROKER"])
    assert "py-pages" in resources["topic"]
    assert resources["broker"] == ["1"]
    first = python_admin.describe_topic_partitions(["py-pages"], response_partition_limit=2)
    (topic,) = first["topics"]
    assert [item["partition_index"] for item in topic["partitions"]] == [0, 1]
    second = python_admin.describe_topic_partitions(["py-pages"], cursor=first["next_cursor"])
    (topic,) = second["topics"]
    assert [item["partition_index"] for item in topic["partitions"]] == [2]
    assert second["next_cursor"] is None


def test_kafka_python_describes_log_directories_and_producers(
    cluster: Cluster, python_admin: KafkaAdminClient
) -> None:
    """The size of a log and its producers are described."""
    create(cluster, "py-where")
    write(cluster, "py-where", 3)
    (broker,) = python_admin.describe_log_dirs({"py-where": [0]})
    (directory,) = broker["log_dirs"]
    (topic,) = directory["topics"]
    assert topic["partitions"][0]["partition_size"] > 0
    assert directory["total_bytes"] > directory["usable_bytes"] > 0
    topic_partition = PythonPartition("py-where", 0)
    (producer,) = python_admin.describe_producers([topic_partition])[
        topic_partition
    ].active_producers
    assert (producer.producer_epoch, producer.last_sequence) == (0, 2)


def test_kafka_python_deletes_offsets_of_a_group(
    cluster: Cluster, python_admin: KafkaAdminClient
) -> None:
    """Offsets of one partition are deleted; an unknown group is an error."""
    create(cluster, "py-forget")
    commit(cluster, "py-group", "py-forget")
    topic_partition = PythonPartition("py-forget", 0)
    answered = python_admin.delete_group_offsets("py-group", [topic_partition])
    assert answered == {topic_partition: kafka.errors.NoError}
    with pytest.raises(GroupIdNotFoundError):
        python_admin.delete_group_offsets("py-nobody", [topic_partition])


def test_kafka_python_requests_reassignments_and_elections(
    cluster: Cluster, python_admin: KafkaAdminClient
) -> None:
    """A cluster of one broker reports that nothing can be moved or elected."""
    create(cluster, "py-move", 3)
    here, there, nowhere = (PythonPartition("py-move", number) for number in range(3))
    answered = python_admin.alter_partition_reassignments({here: [1], there: [2], nowhere: None})
    assert answered == {
        here: None,
        there: InvalidReplicationAssignmentError,
        nowhere: NoReassignmentInProgressError,
    }
    assert python_admin.list_partition_reassignments() == {}
    elected = python_admin.elect_leaders(0, {"py-move": [0]}, raise_errors=False)
    (topic,) = elected.replica_election_results
    assert topic.partition_result[0].error_code == ElectionNotNeededError.errno


# -- Kafka's own tools ----------------------------------------------------------------------------

TOOLS = "org.apache.kafka.tools"


@pytest.fixture(params=java.VERSIONS)
def tool(cluster: Cluster, request: pytest.FixtureRequest) -> "Tool":
    """Return Kafka's tools of one version."""
    return Tool(cluster, request.param)


class Tool:
    """Runs Kafka's command-line tools against the broker."""

    def __init__(self, cluster: Cluster, version: str) -> None:
        self.version = version
        self._bootstrap = ("--bootstrap-server", cluster.bootstrap)
        self._class_path = java.kafka_class_path(version)

    def __call__(self, command: str, *arguments: str, before: tuple[str, ...] = ()) -> str:
        """Run a command; `before` are options that must be first."""
        main_class = f"{TOOLS}.{command}"
        return java.run(self._class_path, main_class, *before, *self._bootstrap, *arguments)


@pytest.mark.slow
@pytest.mark.needs("java")
def test_kafkas_tools_describe_topics_and_log_directories(cluster: Cluster, tool: Tool) -> None:
    """`kafka-topics` requests page by page, kafka-log-dirs every broker."""
    name = f"java-where-{tool.version}"
    create(cluster, name, 2)
    write(cluster, name, 3)
    described = tool(
        "TopicCommand", "--describe", "--topic", name, "--partition-size-limit-per-response", "1"
    )
    assert "PartitionCount: 2" in described
    assert described.count("Leader: 1") == 2
    assert "Elr: \t" in described
    lines = tool("LogDirsCommand", "--describe", "--topic-list", name).splitlines()
    document = json.loads(lines[-1])
    (directory,) = document["brokers"][0]["logDirs"]
    sizes = {item["partition"]: item["size"] for item in directory["partitions"]}
    assert directory["error"] is None
    assert sizes[f"{name}-0"] > sizes[f"{name}-1"] == 0


@pytest.mark.slow
@pytest.mark.needs("java")
def test_kafkas_tools_see_producers_and_delete_offsets(cluster: Cluster, tool: Tool) -> None:
    """`kafka-transactions` shows producers, kafka-consumer-groups deletes offsets."""
    name = f"java-forget-{tool.version}"
    create(cluster, name)
    write(cluster, name, 3)
    commit(cluster, name, name)
    described = tool(
        "TransactionsCommand", "describe-producers", "--topic", name, "--partition", "0"
    )
    assert "ProducerId" in described.splitlines()[0]
    assert len(described.splitlines()) == 2
    deleted = tool(
        "consumer.group.ConsumerGroupCommand", "--delete-offsets", "--group", name, "--topic", name
    )
    assert "Successful" in deleted


@pytest.mark.slow
@pytest.mark.needs("java")
def test_kafkas_tools_elect_and_reassign(cluster: Cluster, tool: Tool, tmp_path: Path) -> None:
    """On one broker nothing has to be elected or moved, and the tools report that."""
    name = f"java-move-{tool.version}"
    create(cluster, name)
    elected = tool(
        "LeaderElectionCommand", "--election-type", "preferred", "--all-topic-partitions"
    )
    assert "Error" not in elected
    elected = tool(
        "LeaderElectionCommand", "--election-type", "unclean", "--topic", name, "--partition", "0"
    )
    assert f"Valid replica already elected for partitions {name}-0" in elected
    plan = tmp_path / "plan.json"
    moves = [{"topic": name, "partition": 0, "replicas": [1]}]
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))
    command = "reassign.ReassignPartitionsCommand"
    file = ("--reassignment-json-file", str(plan))
    assert "Successfully started" in tool(command, "--execute", *file)
    assert f"Reassignment of partition {name}-0 is completed." in tool(command, "--verify", *file)
    assert "No partition reassignments found." in tool(command, "--list")
