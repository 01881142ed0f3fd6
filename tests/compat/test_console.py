"""The console's model with Apache Kafka 4.3.0: it reads and changes the same as with Ottla."""

from collections.abc import Iterator

import pytest

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client import AdminClient
from ottla.console.model import acls_users_quotas as access
from ottla.console.model import configs, groups, offsets, reassignments, topics
from ottla.console.model.brokers import list_api_versions, list_brokers
from ottla.console.model.log_inspector import inspect, read_batches
from ottla.console.model.messages.browsing import BrowseRequest, Seek, browse
from ottla.console.model.overview import read_overview
from ottla.console.model.producing import ProduceRequest, produce
from ottla.operations.offsets.plans import Strategy
from ottla.operations.offsets.resets import request_of
from ottla.operations.survey.connections import ClusterConnection, ClusterSettings
from tests.compat import java

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,  # Apache Kafka takes seconds to start.
    pytest.mark.needs("java"),
]

_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterConnection]:
    """Return a connection to Apache Kafka with an authorizer and the topic orders."""
    options = [f"authorizer.class.name={_AUTHORIZER}", "super.users=User:ANONYMOUS"]
    node = java.KafkaNode(tmp_path_factory.mktemp("kafka"), options, "4.3.0")
    node.start()
    connection = ClusterConnection(ClusterSettings("kafka", node.bootstrap), timeout_s=30.0)
    try:
        config = {"retention.ms": "3600000"}
        topics.create_topic(connection, topics.NewTopic("orders", 2, 1, config))
        produce(
            connection,
            ProduceRequest("orders", '{"n":{{n}}}', count=50, codec="zstd", has_templates=True),
        )
        yield connection
    finally:
        connection.close()
        node.kill()


def test_topics_brokers_and_options(kafka: ClusterConnection) -> None:
    """Lists, details and options have the numbers of the cluster."""
    (row,) = topics.list_topics(kafka)
    assert (row.name, row.partitions, row.records) == ("orders", 2, 50)
    assert topics.describe_topic(kafka, "orders").overrides == {"retention.ms": "3600000"}
    assert [broker.node_id for broker in list_brokers(kafka)] == [1]
    assert {api.name for api in list_api_versions(kafka, 1)} >= {"Produce", "DescribeAcls"}
    assert read_overview(kafka).partitions >= 2
    resource = configs.ConfigResource(configs.ConfigKind.TOPIC, "orders")
    rows = {item.name: item for item in configs.describe_config(kafka, resource)}
    assert (rows["retention.ms"].source, rows["retention.ms"].value) == ("topic", "3600000")
    assert rows["retention.ms"].documentation
    reset = configs.alter_config(kafka, resource, delete=["retention.ms"])
    assert reset.before == {"retention.ms": "3600000"}


def test_records_are_searched(kafka: ClusterConnection) -> None:
    """Compressed records are read in both directions, and the log is inspected."""
    newest = browse(kafka, BrowseRequest("orders", limit=10))
    oldest = browse(kafka, BrowseRequest("orders", seek=Seek.OLDEST, limit=1000))
    assert (len(newest.rows), len(oldest.rows)) == (10, 50)
    partition = oldest.rows[0].partition
    log = inspect(kafka, "orders", partition)
    assert log.high_watermark > 0
    assert {batch.codec for batch in read_batches(kafka, "orders", partition, offset=0)} == {"zstd"}


def test_groups_and_resets(kafka: ClusterConnection) -> None:
    """Offsets are planned, committed and undone; the group has its lag."""
    with AdminClient(bootstrap_servers=kafka.bootstrap) as admin:
        admin.alter_group_offsets("billing", {("orders", 0): 0, ("orders", 1): 0})
    request = request_of("billing", Strategy.TO_LATEST, "")
    plan = offsets.plan_reset(kafka, request)
    offsets.execute(kafka, plan)
    assert groups.describe_group(kafka, "billing").lag == 0
    offsets.execute(kafka, offsets.plan_undo(kafka, plan))
    detail = groups.describe_group(kafka, "billing")
    assert (detail.lag, detail.state) == (50, "Empty")
    assert detail.lag_s is not None
    (row,) = groups.list_groups(kafka, with_lag=True)
    assert (row.lag, row.type, row.members) == (50, "classic", 0)


def test_access(kafka: ClusterConnection) -> None:
    """ACLs, SCRAM users and quotas are created, listed and deleted."""
    assert access.read_support(kafka) == access.Support(acls=True, users=True, quotas=True)
    acl = access.Acl("topic", "ord", "prefixed", "User:ann", "*", "read", "allow")
    access.create_acl(kafka, acl)
    assert _eventually(kafka, lambda: access.list_acls(kafka) == [acl])
    with pytest.raises(ConfigError, match="type its principal"):
        access.delete_acl(kafka, acl, confirmation="ann")
    access.delete_acl(kafka, acl, confirmation="User:ann")
    access.set_password(kafka, "ann", "secret")
    mechanisms = (access.ScramCredential("SCRAM-SHA-512", 4096),)
    assert _eventually(
        kafka, lambda: access.list_users(kafka) == [access.UserRow("ann", mechanisms)]
    )
    with pytest.raises(ConfigError, match="type the user's name"):
        access.delete_credential(kafka, "ann", "SCRAM-SHA-512", confirmation="")
    access.delete_credential(kafka, "ann", "SCRAM-SHA-512", confirmation="ann")
    access.alter_quota(kafka, {"user": "ann"}, {"producer_byte_rate": 1000.0})
    quota = access.QuotaRow({"user": "ann"}, {"producer_byte_rate": 1000.0})
    assert _eventually(kafka, lambda: access.list_quotas(kafka) == [quota])


def test_throttles_are_set_and_removed(kafka: ClusterConnection) -> None:
    """The rates of brokers and the replicas of topics are the same as with
    kafka-reassign-partitions.
    """
    move = reassignments.Move("orders", 0, (1,), (1,), (), (), 0, False)
    with pytest.raises(ApiError) as error:
        reassignments.cancel(kafka, [("orders", 0)])
    assert error.value.code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    reassignments.execute(kafka, [move], throttle_bytes_per_s=1_000_000)
    assert _eventually(
        kafka, lambda: reassignments.read_throttle(kafka).leader_bytes_per_s == {1: 1_000_000}
    )
    reassignments.remove_throttle(kafka)
    assert _eventually(kafka, lambda: not reassignments.read_throttle(kafka).leader_bytes_per_s)


def _eventually(connection: ClusterConnection, is_true: object) -> bool:
    """Return True as soon as the broker has applied a change of its controller."""
    assert callable(is_true)
    for _ in range(200):
        if is_true():
            return True
        connection.pause(0.05)
    return False
