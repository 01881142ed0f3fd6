"""The admin client: one method for each admin API."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client import AdminClient, Consumer, OffsetAndMetadata, Producer
from ottla.client.admin import acls
from ottla.client.admin.acls import AclOperation
from ottla.client.admin.configs import Resource, ResourceType
from ottla.client.admin.scram import ScramCredential, ScramDeletion, ScramUpsertion
from ottla.client.errors import ClientError, Closed, Fenced, Unsupported
from ottla.cluster.options.authorization_options import AUTHORIZER
from ottla.security.scram import ScramMechanism
from ottla.testing import Cluster
from tests.client.test_consumer import consumer_of, fill, poll_until


def test_topics(cluster: Cluster, topic: str) -> None:
    """Topics are created with partitions and configuration, grown, described and deleted."""
    name = f"{topic}-new"
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        created = admin.create_topic(
            name, partitions=2, replication_factor=1, config={"segment.ms": "60000"}
        )
        assert (created.partitions, created.replication_factor) == (2, 1)
        with pytest.raises(ApiError) as caught:
            admin.create_topic(name)
        assert caught.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
        admin.create_partitions(name, 4)
        described = admin.describe_topic(name)
        assert [row.partition for row in described.partitions] == [0, 1, 2, 3]
        assert "<th>leader</th>" in described._repr_html_()
        admin.alter_topic_config(name, {"max.message.bytes": "2000"}, delete=["segment.ms"])
        config = {row.name: row.value for row in admin.describe_topic_config(name)}
        assert (config["max.message.bytes"], config["segment.ms"]) == ("2000", "604800000")
        assert name in [row.name for row in admin.list_topics()]
        admin.delete_topic(name)
        assert name not in [row.name for row in admin.list_topics(include_internal=True)]


def test_topic_is_described_and_deleted_by_its_id(cluster: Cluster, topic: str) -> None:
    """A topic that was created again with the same name has another id (KIP-516)."""
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        former = admin.describe_topic(topic).topic_id
        admin.delete_topic(former)
        created = admin.create_topic(topic, partitions=2)
        assert admin.describe_topic(created.topic_id) == admin.describe_topic(topic)
        for call in (admin.describe_topic, admin.delete_topic):
            with pytest.raises(ApiError) as caught:
                call(former)
            assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_ID
        assert len(admin.describe_topic(topic).partitions) == 2


def test_settings_of_an_option_are_listed(cluster: Cluster, topic: str) -> None:
    """The one in force is the first; the others follow if it is deleted (KIP-226)."""
    resource = Resource(ResourceType.TOPIC, topic)
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        admin.alter_topic_config(topic, {"retention.ms": 7})
        words: dict[str, Any] = {"names": ["retention.ms"]}
        (entry,) = admin.describe_config(resource, include_synonyms=True, **words)
        assert [(row.name, row.value) for row in entry.synonyms][:2] == [
            ("retention.ms", "7"),
            ("log.retention.ms", "-1"),
        ]
        assert entry.synonyms[0].source is entry.source
        (entry,) = admin.describe_config(resource, **words)
        assert entry.synonyms == ()


def test_offsets_and_groups_are_filtered(cluster: Cluster, topic: str) -> None:
    """By partition, by protocol, and without a wait for open transactions (KIP-447)."""
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        admin.alter_group_offsets(topic, {(topic, 0): 1, (topic, 1): 2})
        assert admin.list_group_offsets(topic, [(topic, 1)]) == {(topic, 1): (2, "")}
        assert len(admin.list_group_offsets(topic, require_stable=False)) == 2
        assert topic not in [row.group_id for row in admin.list_groups(protocol_types=["x"])]
        (listed,) = [row for row in admin.list_groups() if row.group_id == topic]
        assert listed in admin.list_groups(protocol_types=[listed.protocol_type])
        admin.delete_group(topic)


def test_one_broker_is_asked(cluster: Cluster, topic: str) -> None:
    """Its features, and the producers that its replica of a partition remembers."""
    fill(cluster, topic, [b"a"], enable_idempotence=True)
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        (broker,) = admin.describe_cluster().brokers
        words = {"node_id": broker.node_id}
        assert admin.describe_features(**words) == admin.describe_features()
        assert admin.describe_producers(topic, 0, **words) == admin.describe_producers(topic, 0)


def test_reassignment_may_not_change_the_number_of_replicas() -> None:
    """If it must not, the other number is an error (KIP-860)."""
    with (
        Cluster(brokers=2) as cluster,
        AdminClient(bootstrap_servers=cluster.bootstrap) as admin,
    ):
        admin.create_topic("t", assignments=[[1]])
        with pytest.raises(ApiError) as caught:
            admin.alter_partition_reassignments(
                {("t", 0): [1, 2]}, allow_replication_factor_change=False
            )
        assert caught.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
        assert admin.describe_topic("t").replication_factor == 1


def test_records_and_offsets(cluster: Cluster, topic: str) -> None:
    """Offsets are found by time; records before an offset are deleted."""
    fill(cluster, topic, [b"%d" % number for number in range(9)])
    with AdminClient({"bootstrap.servers": cluster.bootstrap}) as admin:
        assert admin.list_offsets({(topic, 0): 1004})[topic, 0].offset == 2
        assert admin.delete_records({(topic, 0): 2}) == {(topic, 0): 2}
        assert admin.list_offsets({(topic, 0): -2})[topic, 0].offset == 2


def test_groups(cluster: Cluster, topic: str) -> None:
    """Groups are listed and described; their offsets are altered and deleted while they are empty."""
    fill(cluster, topic, [b"a"])
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        with consumer_of(cluster, topic, group_id=topic) as consumer:
            poll_until(consumer, lambda: len(consumer.assignment) == 3)
            assert len(admin.describe_group(topic).members) == 1
            assert topic in [row.group_id for row in admin.list_groups(states=["Stable"])]
        admin.alter_group_offsets(topic, {(topic, 0): 0, (topic, 1): OffsetAndMetadata(0, "x")})
        assert admin.list_group_offsets(topic)[topic, 1] == OffsetAndMetadata(0, "x")
        admin.delete_group_offsets(topic, [(topic, 0)])
        assert (topic, 0) not in admin.list_group_offsets(topic)
        admin.delete_group(topic)
        with pytest.raises(ApiError) as caught:
            admin.describe_group(topic)
        assert caught.value.code is ErrorCode.GROUP_ID_NOT_FOUND


def test_cluster_and_replicas(cluster: Cluster, topic: str) -> None:
    """Brokers, their configuration and directories, elections and reassignments are reported."""
    fill(cluster, topic, [b"a"])
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        (broker,) = admin.describe_cluster().brokers
        node = broker.node_id
        config = {row.name: row.value for row in admin.describe_broker_config(node)}
        assert config["log.dirs"] == str(cluster.data)
        (directory,) = admin.describe_log_dirs(node)
        assert Path(directory.path) == cluster.data
        assert directory.replicas[topic, 0].size > 0
        assert admin.elect_leaders([(topic, 0)]) == []
        assert admin.list_partition_reassignments() == {}
        admin.alter_partition_reassignments({(topic, 0): [node]})
        admin.alter_broker_config(node, {"log.cleaner.threads": "2"})
        admin.alter_broker_config(node, delete=["log.cleaner.threads"])


def test_transactions(cluster: Cluster, topic: str) -> None:
    """Transactional ids and the producers of a partition are described."""
    with (
        Producer(bootstrap_servers=cluster.bootstrap, transactional_id=topic) as producer,
        AdminClient(bootstrap_servers=cluster.bootstrap) as admin,
    ):
        with producer.transaction():
            producer.send(topic, b"a", partition=0).result(10)
            described = admin.describe_transaction(topic)
            assert (described.state, described.partitions) == ("Ongoing", ((topic, 0),))
            (active,) = admin.describe_producers(topic, 0)
            assert (active.producer_id, active.transaction_start_offset) == (
                described.producer_id,
                0,
            )
        assert topic in [row.transactional_id for row in admin.list_transactions()]


@pytest.fixture
def guarded_cluster(topic: str) -> Iterator[Cluster]:
    """Yield a cluster with the topic, in which the user without a name is an administrator."""
    options = {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"}
    with Cluster(options=options) as running:
        running.create_topic(topic)
        yield running


def test_hanging_transaction_is_ended(guarded_cluster: Cluster, topic: str) -> None:
    """An administrator fences a producer, and aborts what is open in a partition."""
    bootstrap = guarded_cluster.bootstrap
    producer = Producer(bootstrap_servers=bootstrap, transactional_id=topic)
    with AdminClient(bootstrap_servers=bootstrap) as admin:
        producer.begin_transaction()
        producer.send(topic, b"open", partition=0).result(10)
        (active,) = admin.describe_producers(topic, 0)
        assert active.transaction_start_offset == 0
        admin.abort_transaction(topic, 0, active)
        (aborted,) = admin.describe_producers(topic, 0)
        assert aborted.transaction_start_offset == -1
        producer_id, epoch = admin.fence_producer(topic)
        assert producer_id == active.producer_id
        assert epoch > active.producer_epoch
        with pytest.raises(ClientError):
            producer.commit_transaction()
    producer.close()


def test_markers_are_refused_without_an_authorizer(cluster: Cluster, topic: str) -> None:
    """Every client could otherwise end the transactions of others in a part of their partitions."""
    producer = Producer(bootstrap_servers=cluster.bootstrap, transactional_id=topic)
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        producer.begin_transaction()
        producer.send(topic, b"open", partition=0).result(10)
        (active,) = admin.describe_producers(topic, 0)
        with pytest.raises(ApiError) as error:
            admin.abort_transaction(topic, 0, active)
        assert error.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert admin.describe_producers(topic, 0) == [active]
        producer.commit_transaction()
    producer.close()


def test_quotas_features_and_resources(cluster: Cluster, topic: str) -> None:
    """Quotas are set, listed and removed; features and resources are listed."""
    entity = {"client-id": topic}
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        admin.alter_client_quotas(entity, {"producer_byte_rate": 1e6, "consumer_byte_rate": 2e6})
        rates = {"producer_byte_rate": 1e6, "consumer_byte_rate": 2e6}
        assert admin.describe_client_quotas(entity) == [(entity, rates)]
        assert (entity, rates) in admin.describe_client_quotas(any_of=["client-id"])
        admin.alter_client_quotas(entity, delete=list(rates))
        assert admin.describe_client_quotas(entity) == []
        with pytest.raises(ApiError):
            admin.alter_client_quotas(entity, {"speed": 1.0})
        (feature,) = [row for row in admin.describe_features() if row.name == "group.version"]
        admin.update_features({feature.name: feature.level}, validate_only=True)
        with pytest.raises(ApiError):
            admin.update_features({feature.name: feature.max_version + 1})
        assert Resource(ResourceType.TOPIC, topic) in admin.list_config_resources()
        assert all(
            row.type is ResourceType.BROKER
            for row in admin.list_config_resources([ResourceType.BROKER])
        )


def test_replica_moves_to_another_directory(tmp_path: Path) -> None:
    """A replica moves between the log directories of its broker; an unknown one is an error."""
    first, second = str(tmp_path / "a"), str(tmp_path / "b")
    with (
        Cluster(options={"log.dirs": f"{first},{second}"}) as cluster,
        AdminClient(bootstrap_servers=cluster.bootstrap) as admin,
    ):
        admin.create_topic("t")
        node = admin.describe_cluster().brokers[0].node_id
        (origin,) = [row for row in admin.describe_log_dirs(node) if ("t", 0) in row.replicas]
        target = second if origin.path == first else first
        admin.move_replicas(node, {("t", 0): target})
        deadline = time.monotonic() + 20
        while not any(
            row.path == target and ("t", 0) in row.replicas and not row.replicas["t", 0].is_future
            for row in admin.describe_log_dirs(node)
        ):
            assert time.monotonic() < deadline
        with pytest.raises(ApiError):
            admin.move_replicas(node, {("t", 0): str(tmp_path / "c")})


def test_wrong_use_is_explained(cluster: Cluster) -> None:
    """Use after close raises; so does a wrong protocol."""
    admin = AdminClient(bootstrap_servers=cluster.bootstrap)
    admin.close()
    admin.close()
    with pytest.raises(Closed):
        admin.list_topics()
    with pytest.raises(ConfigError, match=r"security\.protocol=TLS: use PLAINTEXT, SSL"):
        AdminClient(security_protocol="TLS")


def test_access_control_needs_an_authorizer(cluster: Cluster) -> None:
    """Ottla's broker has no authorizer, and says so as Apache Kafka without one does."""
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        for call in (admin.describe_acls, lambda: admin.delete_acls([acls.ANY])):
            with pytest.raises(ApiError, match="No Authorizer is configured") as caught:
                call()
            assert caught.value.code is ErrorCode.SECURITY_DISABLED


def test_scram_credentials_are_set_described_and_deleted(cluster: Cluster) -> None:
    """Each mechanism of a user is a credential of its own."""
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        for mechanism in ScramMechanism:
            admin.alter_user_scram_credentials([ScramUpsertion("ann", mechanism, "secret", 8192)])
        assert admin.describe_user_scram_credentials(["ann"]) == {
            "ann": tuple(ScramCredential(mechanism, 8192) for mechanism in ScramMechanism)
        }
        for mechanism in ScramMechanism:
            admin.alter_user_scram_credentials(deletions=[ScramDeletion("ann", mechanism)])
        assert admin.describe_user_scram_credentials() == {}
        with pytest.raises(ApiError, match="does not exist"):
            admin.alter_user_scram_credentials(
                deletions=[ScramDeletion("ann", ScramMechanism.SCRAM_SHA_256)]
            )


@pytest.mark.parametrize(
    "call",
    [
        lambda admin: admin.create_delegation_token(),
        lambda admin: admin.renew_delegation_token(b"h"),
        lambda admin: admin.expire_delegation_token(b"h"),
        lambda admin: admin.describe_delegation_tokens(),
    ],
)
def test_delegation_tokens_need_an_authenticated_connection(
    cluster: Cluster, call: Callable[[AdminClient], object]
) -> None:
    """Ottla's broker refuses the requests, as Apache Kafka's does on a listener without SASL."""
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        with pytest.raises(ApiError) as caught:
            call(admin)
        assert caught.value.code is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


@pytest.mark.parametrize(
    ("api", "call"),
    [
        ("DescribeQuorum", lambda admin: admin.describe_metadata_quorum()),
        ("AddRaftVoter", lambda admin: admin.add_raft_voter(1, bytes(16), [])),
        ("RemoveRaftVoter", lambda admin: admin.remove_raft_voter(1, bytes(16))),
        ("ShareGroupDescribe", lambda admin: admin.describe_share_group("g")),
        ("DescribeShareGroupOffsets", lambda admin: admin.list_share_group_offsets("g")),
        ("AlterShareGroupOffsets", lambda admin: admin.alter_share_group_offsets("g", {})),
        ("DeleteShareGroupOffsets", lambda admin: admin.delete_share_group_offsets("g", [])),
        ("StreamsGroupDescribe", lambda admin: admin.describe_streams_group("g")),
    ],
)
def test_apis_of_apache_kafka_need_its_brokers(
    cluster: Cluster, api: str, call: Callable[[AdminClient], object]
) -> None:
    """Ottla's broker does not serve them: the error names the broker and the missing request."""
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        with pytest.raises(Unsupported) as caught:
            call(admin)
        assert str(caught.value) == f"The broker at {cluster.bootstrap} does not offer {api}."


def test_authorized_operations_are_reported(cluster: Cluster, topic: str) -> None:
    """Without an authorizer every operation of the resource is authorized."""
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        admin.alter_group_offsets(topic, {(topic, 0): 0})
        described = admin.describe_topic(topic, include_authorized_operations=True)
        assert {AclOperation.READ, AclOperation.WRITE} <= (described.authorized_operations or set())
        group = admin.describe_group(topic, include_authorized_operations=True)
        assert group.authorized_operations == {
            AclOperation.READ,
            AclOperation.DELETE,
            AclOperation.DESCRIBE,
            AclOperation.DESCRIBE_CONFIGS,
            AclOperation.ALTER_CONFIGS,
        }
        whole = admin.describe_cluster(include_authorized_operations=True)
        assert AclOperation.CLUSTER_ACTION in (whole.authorized_operations or set())
        assert admin.describe_cluster().authorized_operations is None


def test_a_transaction_is_terminated_by_force(cluster: Cluster, topic: str) -> None:
    """The producer is fenced, and its transaction is aborted."""
    settings = {"bootstrap_servers": cluster.bootstrap, "transactional_id": topic}
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        with pytest.raises(Fenced), Producer(**settings) as producer, producer.transaction():
            producer.send(topic, b"a", partition=0).result(10)
            admin.force_terminate_transaction(topic)
        assert admin.describe_transaction(topic).state == "Empty"
        # The record and the marker of its abort.
        assert admin.list_offsets({(topic, 0): -1}, read_committed=True)[topic, 0].offset == 2


def test_log_directories_of_replicas(cluster: Cluster, topic: str) -> None:
    """Each replica has one directory while it is not being moved."""
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        node = admin.describe_cluster().brokers[0].node_id
        (found,) = admin.describe_replica_log_dirs([(topic, 0, node)]).values()
        assert found.current in [row.path for row in admin.describe_log_dirs(node)]
        assert (found.future, found.future_offset_lag) == (None, -1)
        assert admin.list_partition_reassignments([(topic, 0)]) == {}


def test_no_transaction_hangs(cluster: Cluster, topic: str) -> None:
    """A partition without open transactions has no hanging transaction."""
    fill(cluster, topic, [b"a"])
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        now_ms = int(time.time() * 1000)
        assert admin.find_hanging_transactions([(topic, 0)], now_ms=now_ms, max_timeout_ms=0) == []


def test_replicas_of_new_partitions_are_chosen(cluster: Cluster, topic: str) -> None:
    """A validation creates nothing."""
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        (node,) = (broker.node_id for broker in admin.describe_cluster().brokers)
        name = f"{topic}-chosen"
        created = admin.create_topic(name, assignments=[[node], [node]])
        assert (created.partitions, created.replication_factor) == (2, 1)
        admin.create_partitions(name, 3, assignments=[[node]], validate_only=True)
        assert len(admin.describe_topic(name).partitions) == 2
        admin.create_partitions(name, 3, assignments=[[node]])
        assert len(admin.describe_topic(name).partitions) == 3
        with pytest.raises(ApiError):
            admin.create_partitions(name, 4, assignments=[[node + 1]])


def test_lists_gain_and_lose_elements(cluster: Cluster, topic: str) -> None:
    """Options of topics and groups, and levels of loggers, are changed by the same two methods."""
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        (node,) = (broker.node_id for broker in admin.describe_cluster().brokers)

        def value(resource: Resource, name: str) -> str | None:
            (row,) = admin.describe_config(resource, names=[name])
            return row.value

        policy, subject = "cleanup.policy", Resource(ResourceType.TOPIC, topic)
        admin.alter_config(subject, append={policy: "compact"}, validate_only=True)
        assert value(subject, policy) == "delete"
        admin.alter_config(subject, append={policy: "compact"})
        assert value(subject, policy) == "delete,compact"
        admin.alter_config(subject, subtract={policy: "delete"})
        assert value(subject, policy) == "compact"
        group = Resource(ResourceType.GROUP, topic)
        admin.alter_config(group, {"consumer.session.timeout.ms": 50_000})
        assert value(group, "consumer.session.timeout.ms") == "50000"
        logger = Resource(ResourceType.BROKER_LOGGER, str(node))
        name = admin.describe_config(logger)[0].name
        admin.alter_config(logger, {name: "DEBUG"})
        assert value(logger, name) == "DEBUG"
        admin.alter_config(logger, delete=[name])


def test_static_members_are_removed_by_their_id(cluster: Cluster, topic: str) -> None:
    """The other member stays; groups are listed by their type."""
    settings = {"bootstrap_servers": cluster.bootstrap, "group_id": topic}
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        members = [
            Consumer(topic, **settings, group_instance_id=name, heartbeat_interval_ms=500)
            for name in ("one", "two")
        ]

        def have_joined() -> bool:
            for member in members:
                with suppress(Fenced):
                    member.poll(0.05)
            with suppress(ApiError):
                group = admin.describe_group(topic)
                names = {row.instance_id for row in group.members}
                return names == {"one", "two"} and group.state == "Stable"
            return False

        # A member that joins again would be back at once, and one with partitions needs a poll.
        deadline = time.monotonic() + 30
        while not have_joined():
            assert time.monotonic() < deadline
        admin.remove_members(topic, instance_ids=["one", "nobody"])
        assert {row.instance_id for row in admin.describe_group(topic).members} == {"two"}
        assert topic in {row.group_id for row in admin.list_groups(types=["classic"])}
        assert topic not in {row.group_id for row in admin.list_groups(types=["consumer"])}
        for member in members:
            member.close()


def test_transactions_and_ends_are_filtered(cluster: Cluster, topic: str) -> None:
    """Transactions by pattern and duration; the end for read_committed is the open transaction."""
    with (
        Producer(bootstrap_servers=cluster.bootstrap, transactional_id=topic) as producer,
        AdminClient(bootstrap_servers=cluster.bootstrap) as admin,
        producer.transaction(),
    ):
        producer.send(topic, b"a", partition=0).result(10)
        ends = [
            admin.list_offsets({(topic, 0): -1}, read_committed=flag)[topic, 0].offset
            for flag in (False, True)
        ]
        assert ends == [1, 0]
        listed = admin.list_transactions(pattern=f"{topic[:-1]}.")
        assert [row.transactional_id for row in listed] == [topic]
        assert not admin.list_transactions(pattern=topic, min_duration_ms=3_600_000)


def test_kraft_clusters_unregister_brokers(cluster: Cluster) -> None:
    """Ottla's registrations end with their session, so there is no such request."""
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin, pytest.raises(Unsupported):
        admin.unregister_broker(7)
