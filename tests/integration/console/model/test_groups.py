"""Groups, lag, forecasts and resets of offsets."""

import pytest
from confluent_kafka import Producer

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client import AdminClient, Consumer, OffsetAndMetadata
from ottla.client.admin.offsets import PROGRESS
from ottla.console.model import groups, offsets, topics
from ottla.console.model.groups import LagPoint, forecast_catch_up
from ottla.console.model.overview import take_sample
from ottla.console.model.producing import ProduceRequest, produce
from ottla.operations.offsets.files import parse_offsets, to_csv
from ottla.operations.offsets.plans import OffsetDifference, ResetRequest, Strategy
from ottla.operations.offsets.resets import PlanOutdated, request_of
from ottla.operations.survey.connections import ClusterConnection, ClusterSettings
from ottla.testing import Cluster

_T0 = 1_767_225_600_000


@pytest.fixture
def group(connection: ClusterConnection, cluster: Cluster, topic: str) -> str:
    """Return a group that has committed offset 4 of 10 records, one record a second."""
    return _new_group(connection, cluster, topic)


@pytest.fixture(scope="module")
def shared_group(cluster: Cluster) -> str:
    """Return such a group for tests that change nothing."""
    connection = ClusterConnection(ClusterSettings("test", cluster.bootstrap))
    name = _new_group(connection, cluster, "shared")
    connection.close()
    return name


def _new_group(connection: ClusterConnection, cluster: Cluster, topic: str) -> str:
    # The records are of a fixed day: the topic keeps them.
    topics.create_topic(connection, topics.NewTopic(topic, 1, 3, {"retention.ms": "-1"}))
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for second in range(10):
        producer.produce(topic, f"v{second}", timestamp=_T0 + 1000 * second)
    assert producer.flush(10) == 0
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        admin.alter_group_offsets(f"group-of-{topic}", {(topic, 0): 4})
    return f"group-of-{topic}"


def _plan(
    connection: ClusterConnection, group: str, strategy: Strategy, value: str = ""
) -> OffsetDifference:
    request = request_of(group, strategy, value)
    (difference,) = offsets.plan_reset(connection, request).differences
    return difference


def test_lag_in_records_and_seconds(cluster: Cluster, group: str, topic: str) -> None:
    """The lag in seconds is the age of the first unread record, by its timestamp."""
    settings = ClusterSettings("clocked", cluster.bootstrap)
    connection = ClusterConnection(settings, clock=lambda: _T0 / 1000 + 60)
    detail = groups.describe_group(connection, group)
    (row,) = detail.partitions
    assert (row.committed, row.lag, row.lag_s, row.lag_s_source) == (4, 6, 56.0, "record")
    assert (detail.state, detail.lag, detail.lag_s) == ("Empty", 6, 56.0)
    sample = take_sample(connection)
    assert (sample.group_lags[group], sample.group_lags_s[group]) == (6, 56.0)
    (listed,) = [
        item for item in groups.list_groups(connection, with_lag=True) if item.group_id == group
    ]
    assert (listed.lag, listed.topics, listed.members) == (6, (topic,), 0)
    (by_topic,) = groups.list_topic_groups(connection, topic)
    assert by_topic.group_id == group
    connection.close()


@pytest.mark.parametrize(
    ("strategy", "value", "after"),
    [
        (Strategy.TO_EARLIEST, "", 0),
        (Strategy.TO_LATEST, "", 10),
        (Strategy.TO_CURRENT, "", 4),
        (Strategy.TO_OFFSET, "7", 7),
        (Strategy.TO_OFFSET, "70", 10),
        (Strategy.SHIFT_BY, "-1", 3),
        (Strategy.SHIFT_BY, "-10", 0),
        (Strategy.TO_DATETIME, str(_T0 + 2500), 3),
        (Strategy.TO_DATETIME, str(_T0 + 99_000), 10),
        (Strategy.TAIL, "3", 7),
        (Strategy.HEAD, "2", 2),
        (Strategy.BY_DURATION, "PT1S", 10),
        (Strategy.BY_DURATION, "P3650D", 0),
        (Strategy.DELETE, "", None),
    ],
)
def test_strategies(
    connection: ClusterConnection,
    shared_group: str,
    strategy: Strategy,
    value: str,
    after: int | None,
) -> None:
    """Each strategy of kafka-consumer-groups has its target, within the bounds of the log."""
    difference = _plan(connection, shared_group, strategy, value)
    assert (difference.before, difference.after) == (4, after)
    assert bool(difference.note) == (value in ("70", "-10"))


def test_a_plan_is_executed_and_undone(connection: ClusterConnection, group: str) -> None:
    """The committed offsets are the plan's, and those from before after the undo."""
    plan = offsets.plan_reset(connection, ResetRequest(group, Strategy.TO_OFFSET, amount=9))
    change = offsets.execute(connection, plan)
    assert list(change.before.values()) == ["4"]
    assert list(change.after.values()) == ["9"]
    with pytest.raises(PlanOutdated, match="is 9 now, not 4"):
        offsets.execute(connection, plan)
    offsets.execute(connection, offsets.plan_undo(connection, plan))
    assert _plan(connection, group, Strategy.TO_CURRENT).before == 4


def test_offsets_that_stay_are_committed_again(
    connection: ClusterConnection, cluster: Cluster, group: str, topic: str
) -> None:
    """The metadata of the old commit is gone, as with Apache Kafka's tool."""
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        admin.alter_group_offsets(group, {(topic, 0): OffsetAndMetadata(4, PROGRESS)})
        plan = offsets.plan_reset(connection, ResetRequest(group, Strategy.TO_CURRENT))
        change = offsets.execute(connection, plan)
        (committed,) = admin.list_group_offsets(group).values()
    assert (change.before, change.after) == ({}, {})
    assert (committed.offset, committed.metadata) == (4, "")


def test_a_group_with_members_is_not_reset(
    connection: ClusterConnection, cluster: Cluster, topic: str
) -> None:
    """The plan names the obstacle, and the execution is refused."""
    topics.create_topic(connection, topics.NewTopic(topic, 1, 1))
    produce(connection, ProduceRequest(topic, "v"))
    group = f"busy-{topic}"
    settings = {"group_id": group, "auto_offset_reset": "earliest"}
    with Consumer(bootstrap_servers=cluster.bootstrap, **settings) as consumer:
        consumer.subscribe([topic])
        for _ in range(60):
            if consumer.poll(0.5):
                break
        consumer.commit()
        plan = offsets.plan_reset(connection, ResetRequest(group, Strategy.TO_EARLIEST))
        assert "Stable with 1 member:" in plan.obstacle
        with pytest.raises(ApiError) as error:
            offsets.execute(connection, plan)
        assert error.value.code is ErrorCode.NON_EMPTY_GROUP
        detail = groups.describe_group(connection, group)
        assert detail.members[0].partitions == ((topic, 0),)
        assert list(groups.topology_of(detail).values()) == [((topic, 0),)]


def test_a_group_is_deleted_with_its_id_as_confirmation(
    connection: ClusterConnection, group: str
) -> None:
    """Another confirmation is refused; the change contains the deleted offsets."""
    with pytest.raises(ConfigError):
        groups.delete_group(connection, group, confirmation="x")
    change = groups.delete_group(connection, group, confirmation=group)
    assert list(change.before.values()) == ["4"]
    with pytest.raises(ApiError):
        groups.describe_group(connection, group)


def test_offsets_of_a_file() -> None:
    """A file has topic, partition and offset on each line; an error names the line."""
    assert parse_offsets('orders,0,5\n"a b",1,7\n\n') == {("orders", 0): 5, ("a b", 1): 7}
    with pytest.raises(ConfigError, match="line 2"):
        parse_offsets("orders,0,5\norders,x,5")
    difference = OffsetDifference("orders", 0, 1, 5, 0, 9, 8, 4)
    assert to_csv([difference]) == "orders,0,5\n"


@pytest.mark.parametrize("text", ["T1H30M", "P1M", "P99999999999W"])
def test_a_wrong_duration_is_refused(connection: ClusterConnection, topic: str, text: str) -> None:
    """Months have no fixed length, and a request has at most 2^63 - 1 milliseconds."""
    topics.create_topic(connection, topics.NewTopic(topic, 1, 1))
    with pytest.raises(ConfigError, match="duration"):
        offsets.plan_reset(connection, request_of("g", Strategy.BY_DURATION, text, topics=(topic,)))


@pytest.mark.parametrize(
    ("lags", "verdict", "caught_up_at_ms"),
    [
        ([100, 80, 60, 40, 20], "catching-up", 50_000),
        ([100, 120, 140], "falling-behind", None),
        ([1000, 1001, 1000], "steady", None),
        ([100, 0], "caught-up", None),
        ([100, 90], "unknown", None),
    ],
)
def test_forecasts(lags: list[int], verdict: str, caught_up_at_ms: int | None) -> None:
    """The recent lag is continued in a straight line."""
    points = [LagPoint(10_000 * number, lag) for number, lag in enumerate(lags)]
    forecast = forecast_catch_up(points, now_ms=points[-1].at_ms)
    assert (forecast.verdict, forecast.caught_up_at_ms) == (verdict, caught_up_at_ms)
