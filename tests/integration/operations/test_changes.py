"""Operations that change a cluster return the change that was made."""

from ottla.base.errors import ErrorCode
from ottla.client import Producer
from ottla.client.admin import offsets, quotas, topics, transactions
from ottla.client.admin.configs import Resource, ResourceType, describe_config
from ottla.client.admin.scram import ScramDeletion, ScramUpsertion, mechanism_of
from ottla.client.brokers import Brokers
from ottla.operations import client_metrics, configs, elections
from ottla.operations import topics as operations
from ottla.operations import transactions as transaction_operations
from ottla.operations.access import changes as access
from ottla.operations.changes import MASKED, Change
from ottla.operations.moves import execution
from ottla.operations.offsets import groups
from ottla.operations.survey.connections import ClusterConnection
from ottla.testing import Cluster


def _described(brokers: Brokers, name: str, *, partitions: int) -> topics.Topic:
    """Return a topic when a broker knows all of its partitions: each learns of them by itself."""
    while True:
        described = topics.describe_topic(brokers, name)
        if len(described.partitions) == partitions:
            return described


def test_topic_is_created_extended_and_deleted(connection: ClusterConnection, topic: str) -> None:
    """Each change has the numbers that differ, and the name of the cluster."""
    with connection.brokers() as brokers:
        config = {"retention.ms": "1000"}
        created = operations.create(
            brokers, topic, partitions=2, replication_factor=1, config=config, cluster="c"
        )
        extended = operations.extend(brokers, _described(brokers, topic, partitions=2), 3)
        deleted = operations.delete(brokers, _described(brokers, topic, partitions=3))
    numbers = {"partitions": "2", "replication_factor": "1"}
    assert created == Change("c", "topic.create", topic, after=numbers | config)
    assert (extended.before, extended.after) == ({"partitions": "2"}, {"partitions": "3"})
    assert (deleted.action, deleted.before) == ("topic.delete", numbers | {"partitions": "3"})


def test_records_are_trimmed(cluster: Cluster, connection: ClusterConnection, topic: str) -> None:
    """The change has the start of each partition, before and after."""
    with connection.brokers() as brokers, Producer(bootstrap_servers=cluster.bootstrap) as producer:
        operations.create(brokers, topic, partitions=2, replication_factor=3)
        for _ in range(3):
            producer.send(topic, b"x", partition=1)
        producer.flush()
        (change,) = operations.trim(brokers, {(topic, 1): 2}, {(topic, 1): 0})
    assert change == Change(
        "", "topic.delete-records", topic, {"start of 1": "0"}, {"start of 1": "2"}
    )
    assert operations.new_starts([change]) == {(topic, 1): 2}


def _values(brokers: Brokers, resource: Resource) -> set[str | None]:
    return {entry.value for entry in describe_config(brokers, resource)}


def test_options_are_altered(connection: ClusterConnection, topic: str) -> None:
    """The present value is read unless the caller knows it; a reset has no value afterwards."""
    resource = Resource(ResourceType.TOPIC, topic)
    with connection.brokers() as brokers:
        operations.create(brokers, topic)
        first = configs.alter(brokers, resource, {"retention.ms": "5"})
        # Each broker learns of a change by itself.
        while first.after["retention.ms"] not in _values(brokers, resource):
            pass
        second = configs.alter(brokers, resource, {}, ["retention.ms"])
    assert (first.action, first.resource) == ("topic.alter-config", topic)
    assert first.after == second.before == {"retention.ms": "5"}
    assert second.after == {"retention.ms": configs.DEFAULT}


def test_subscription_is_altered_and_deleted(connection: ClusterConnection, topic: str) -> None:
    """The deletion has the options that the subscription had."""
    with connection.brokers() as brokers:
        altered = client_metrics.alter_subscription(brokers, topic, {"metrics": "*"})
        while client_metrics.describe_subscription(brokers, topic)["metrics"] != "*":
            pass
        deleted = client_metrics.delete_subscription(brokers, topic)
    assert (altered.action, altered.after) == ("client-metrics.alter-config", {"metrics": "*"})
    assert (deleted.action, deleted.before) == ("client-metrics.delete", {"metrics": "*"})


def test_password_is_not_in_the_change(connection: ClusterConnection, topic: str) -> None:
    """The mechanism and the iterations are."""
    mechanism = mechanism_of("SCRAM-SHA-256")
    with connection.brokers() as brokers:
        row = ScramUpsertion(topic, mechanism, "secret", 4096)
        change = access.set_password(brokers, row)
        deleted = access.delete_credential(brokers, ScramDeletion(topic, mechanism))
    facts = {"mechanism": "SCRAM-SHA-256", "iterations": "4096", "password": MASKED}
    assert (change.resource, change.after) == (topic, facts)
    assert (deleted.action, deleted.before) == (
        "user.delete-credential",
        {"mechanism": "SCRAM-SHA-256"},
    )


def test_quotas_of_exactly_this_entity_are_in_the_change(
    connection: ClusterConnection, topic: str
) -> None:
    """The quotas of a user's clients are those of other entities."""
    name = "producer_byte_rate"
    with connection.brokers() as brokers:
        access.alter_quota(brokers, {"user": topic, "client-id": "c"}, {name: 9.0})
        first = access.alter_quota(brokers, {"user": topic}, {name: 1.0})
        while not quotas.describe_client_quotas(brokers, {"user": topic}, strict=True):
            pass
        second = access.alter_quota(brokers, {"user": topic}, {}, [name])
    assert (first.before, first.after) == ({}, {name: "1.0"})
    assert (second.resource, second.before, second.after) == (f"user {topic}", {name: "1.0"}, {})


def test_transaction_is_aborted(
    cluster: Cluster, connection: ClusterConnection, topic: str
) -> None:
    """The producer has another epoch afterwards."""
    with connection.brokers() as brokers:
        operations.create(brokers, topic)
        with Producer(bootstrap_servers=cluster.bootstrap, transactional_id=topic) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send(topic, b"x").result()
            described = transactions.describe_transaction(brokers, topic)
            change = transaction_operations.abort(brokers, described)
    assert change.before == {"state": "Ongoing", "producer_epoch": str(described.producer_epoch)}
    assert int(change.after["producer_epoch"]) > described.producer_epoch


def test_group_is_deleted(connection: ClusterConnection, topic: str) -> None:
    """The change has its committed offsets."""
    with connection.brokers() as brokers:
        operations.create(brokers, topic, partitions=1)
        offsets.commit_offsets(brokers, topic, {(topic, 0): offsets.CommittedOffset(0)})
        change = groups.delete_group(brokers, topic)
    assert change == Change("", "group.delete", topic, before={f"{topic}-0": "0"})


def test_results_of_partitions_are_returned_beside_the_change(
    connection: ClusterConnection, topic: str
) -> None:
    """Scripts print the error of each partition; the change has only those that succeeded."""
    key, missing = (topic, 0), (topic, 9)
    with connection.brokers() as brokers:
        operations.create(brokers, topic, partitions=[brokers.node_ids()[:2]])
        (row,) = _described(brokers, topic, partitions=1).partitions
        current = {key: row.replicas}
        refused = execution.reassign(brokers, {key: (99,), missing: (1,)}, current)
        elected = elections.try_elect(brokers, [key, missing], unclean=False)
        offsets.commit_offsets(brokers, topic, {key: offsets.CommittedOffset(0)})
        deleted = groups.delete_offsets(brokers, topic, [key, missing])
        trimmed = operations.trim(brokers, {key: 0})
    assert set(refused.errors) == {key, missing}
    assert (refused.change.resource, refused.change.after) == ("0 partitions", {})
    codes = {name: error and error.code for name, error in elected.results.items()}
    assert codes[key] is ErrorCode.ELECTION_NOT_NEEDED
    assert codes[missing] is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (elected.change.resource, elected.change.notes) == ("0 partitions", ())
    assert (deleted.errors[key], deleted.change.after[f"{topic}-0"]) == (None, "none")
    assert (trimmed[0].before, operations.new_starts(trimmed)) == ({}, {key: 0})


def test_moves_and_elections(connection: ClusterConnection, topic: str) -> None:
    """A plan without moves changes nothing, and neither does an election of the same leader."""
    with connection.brokers() as brokers:
        operations.create(brokers, topic, partitions=1, replication_factor=3)
        (row,) = _described(brokers, topic, partitions=1).partitions
        before = row.replicas
        after = before[::-1]
        plan = execution.MovePlan({(topic, 0): before}, {(topic, 0): after})
        moved = execution.start(brokers, plan, None)
        while execution.progress_of(brokers, plan).is_busy:
            pass
        needed = elections.plan(brokers, [(topic, 0)], unclean=False)
        elected = elections.execute(brokers, needed, unclean=False)
        again = elections.elect(brokers, [(topic, 0)], unclean=False)
    name = f"{topic}-0"
    assert moved.before == {name: ",".join(map(str, before))}
    assert moved.after == {name: ",".join(map(str, after))}
    assert elected.errors == {(topic, 0): ""}
    assert elected.change.before == {name: str(before[0])}
    assert elected.change.after == {name: str(after[0])}
    assert (again.resource, again.before, again.after) == ("0 partitions", {}, {})


def test_cancellation_has_the_replicas_of_running_moves(connection: ClusterConnection) -> None:
    """Without moves under way, it is an empty change."""
    with connection.brokers() as brokers:
        cancelled = execution.cancel(brokers, execution.Cancellation({}, {}))
    assert cancelled.change == Change("", "partition.cancel-reassignment", "0 partitions")
    assert not cancelled.is_idle


def test_acls_need_an_authorizer(connection: ClusterConnection) -> None:
    """No request is sent for no entries."""
    with connection.brokers() as brokers:
        assert access.add_entries(brokers, []) == []
