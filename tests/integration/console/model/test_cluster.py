"""Topics, brokers, partitions, options and samples of a cluster of three brokers."""

import pytest

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client.errors import Unsupported
from ottla.console.model import acls_users_quotas as access
from ottla.console.model import configs, overview, partitions, producing, reassignments, topics
from ottla.console.model.brokers import describe_broker, list_api_versions, list_brokers
from ottla.console.model.log_inspector import inspect, read_batches
from ottla.console.model.zookeeper import has_tree, read_znode, run_four_letter_command
from ottla.operations.mirror.once import RecordCopy, copy_topic
from ottla.operations.survey import metadata, options
from ottla.operations.survey.connections import ClusterConnection, ClusterSettings
from ottla.operations.survey.metadata import (
    Topic,
    read_metadata,
    read_topic,
    unknown_topic,
)
from ottla.testing import Cluster
from ottla.testing.process import ZooKeeperProcess, run_command


def _fill(connection: ClusterConnection, topic: str, count: int, codec: str = "none") -> None:
    request = producing.ProduceRequest(
        topic,
        "value {{n}}",
        key="k{{n}}",
        key_format=producing.InputFormat.TEXT,
        count=count,
        codec=codec,
        has_templates=True,
    )
    assert producing.produce(connection, request).records == count


def _create(connection: ClusterConnection, topic: str, count: int = 3, factor: int = 3) -> None:
    topics.create_topic(connection, topics.NewTopic(topic, count, factor))


def test_a_topic_lives(connection: ClusterConnection, topic: str) -> None:
    """Create, produce, copy, empty and delete, with the numbers of each state."""
    change = topics.create_topic(
        connection, topics.NewTopic(topic, 3, 2, {"retention.ms": "3600000"})
    )
    assert change.after == {
        "partitions": "3",
        "replication_factor": "2",
        "retention.ms": "3600000",
    }
    _fill(connection, topic, 100, "zstd")
    (row,) = [row for row in topics.list_topics(connection) if row.name == topic]
    assert (row.partitions, row.replication_factor, row.records) == (3, 2, 100)
    detail = topics.describe_topic(connection, topic)
    assert detail.overrides == {"retention.ms": "3600000"}
    assert sum(end or 0 for end in detail.end_offsets) == 100
    copied = copy_topic(
        connection, topic, f"{topic}-2", records=RecordCopy(lambda _: None, lambda: None)
    )
    assert "100 records" in copied.notes
    statistics = topics.read_statistics(connection, f"{topic}-2")
    assert (statistics.scanned, statistics.distinct_keys, statistics.superseded) == (100, 100, 0)
    with pytest.raises(ConfigError, match="type its name"):
        topics.empty_topic(connection, topic, confirmation="")
    emptied = topics.empty_topic(connection, topic, confirmation=topic)
    assert sum(map(int, emptied.after.values())) == 100
    assert topics.describe_topic(connection, topic).row.records == 0
    topics.add_partitions(connection, topic, 4)
    assert topics.describe_topic(connection, topic).row.partitions == 4
    topics.delete_topic(connection, topic, confirmation=topic)
    with pytest.raises(ApiError) as error:
        topics.describe_topic(connection, topic)
    assert error.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_impatient_list_does_not_wait_for_sizes(connection: ClusterConnection) -> None:
    """Without patience, numbers that are not known yet are None; a patient call knows them."""
    _create(connection, "impatient")
    first = topics.list_topics(connection, is_patient=False)
    assert [row.records for row in first if row.name == "impatient"] in ([None], [0])
    patient = topics.list_topics(connection)
    assert [row.records for row in patient if row.name == "impatient"] == [0]


def test_options_of_many_topics_are_read_in_several_requests(
    connection: ClusterConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that describes a thousand topics at once would serve no other client during that
    time.
    """
    names = [f"part-{number}" for number in range(3)]
    for name in names:
        _create(connection, name, 1)
    requests: list[int] = []
    ask = options._ask

    def counted(
        connection: ClusterConnection, topics: list[str], wanted: list[str]
    ) -> dict[str, dict[str, str]]:
        requests.append(len(topics))
        return ask(connection, topics, wanted)

    monkeypatch.setattr(options, "_TOPICS_AT_A_TIME", 2)
    monkeypatch.setattr(options, "_ask", counted)
    values = options.read_topic_options(connection, names, ["min.insync.replicas"])
    assert (requests, sorted(values)) == ([2, 1], names)


def test_a_page_of_a_large_cluster_does_not_wait_for_options(
    connection: ClusterConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are unknown until another thread has read them."""
    _create(connection, "unhurried")
    monkeypatch.setattr(metadata, "_LARGE_PARTITIONS", 0)
    assert read_metadata(connection).is_large
    assert overview.read_overview(connection).under_min_isr is None
    minima = partitions.min_isr_of_all(connection)
    assert minima["unhurried"] == 1
    assert partitions.known_min_isr(connection) == minima


def test_brokers_and_their_load(connection: ClusterConnection, topic: str) -> None:
    """Each broker has its replicas, its log directories and its API versions."""
    _create(connection, topic)
    rows = list_brokers(connection)
    assert [row.node_id for row in rows] == [1, 2, 3]
    assert sum(row.is_controller for row in rows) == 1
    detail = describe_broker(connection, 2)
    topics = [replica.topic for row in detail.log_directories for replica in row.replicas]
    assert topics.count(topic) == 3
    versions = {row.name: row.max_version for row in list_api_versions(connection, 1)}
    assert versions["Produce"] >= 9
    with pytest.raises(ApiError, match="Broker 9 is not running"):
        describe_broker(connection, 9)


def test_the_overview_counts(connection: ClusterConnection, topic: str) -> None:
    """The overview counts brokers, topics, replicas and problems."""
    _create(connection, topic, 2)
    actual = overview.read_overview(connection)
    assert (actual.brokers, actual.offline, actual.under_replicated) == (3, 0, 0)
    assert actual.replicas >= 6


def test_options_are_planned_and_changed(connection: ClusterConnection, topic: str) -> None:
    """A plan is validated by the cluster and shows the effect; a change is all or nothing."""
    _create(connection, topic)
    resource = configs.ConfigResource(configs.ConfigKind.TOPIC, topic)
    rows = {row.name: row for row in configs.describe_config(connection, resource)}
    assert rows["retention.ms"].shown == "604800000 (7 d)"
    assert rows["retention.ms"].source == "default"
    plan = configs.plan_change(connection, resource, assign={"retention.ms": "60000"})
    (difference,) = plan.differences
    assert (difference.before, difference.after) == ("604800000", "60000")
    assert "deletes older segments" in difference.effect
    with pytest.raises(ApiError) as error:
        configs.plan_change(connection, resource, assign={"retention.ms": "often"})
    assert error.value.code is ErrorCode.INVALID_CONFIG
    change = configs.alter_config(connection, resource, assign={"retention.ms": "60000"})
    assert change.after == {"retention.ms": "60000"}
    reset = configs.alter_config(connection, resource, delete=["retention.ms"])
    assert reset.after["retention.ms"] in ("604800000", "(default)")


def test_cluster_wide_options_hide_those_of_one_broker(connection: ClusterConnection) -> None:
    """The defaults of the cluster are shown without the overrides of a single broker."""
    broker = configs.ConfigResource(configs.ConfigKind.BROKER, "1")
    everywhere = configs.ConfigResource(configs.ConfigKind.CLUSTER)
    configs.alter_config(connection, broker, assign={"log.cleaner.min.cleanable.ratio": "0.3"})
    rows = {row.name: row for row in configs.describe_config(connection, everywhere)}
    assert rows["log.cleaner.min.cleanable.ratio"].value != "0.3"
    assert not any(row.is_read_only for row in rows.values())
    configs.alter_config(connection, broker, delete=["log.cleaner.min.cleanable.ratio"])


def test_partitions_are_reassigned(connection: ClusterConnection, topic: str) -> None:
    """A plan shows moves and bytes; executed with a limit, the replicas are where it wanted them."""
    _create(connection, topic, 3, 1)
    _fill(connection, topic, 300)
    request = reassignments.ReassignmentRequest(
        reassignments.Goal.REPLICATION_FACTOR, (topic,), replication_factor=2
    )
    plan = reassignments.plan_moves(connection, request)
    assert len(plan.moves) == 3
    assert plan.bytes_to_copy == sum(move.bytes_to_copy for move in plan.moves) > 0
    assert all(len(move.adding) == 1 and not move.removing for move in plan.moves)
    assert sum(received for received, _ in plan.bytes_by_broker.values()) == plan.bytes_to_copy
    reassignments.execute(connection, plan.moves, throttle_bytes_per_s=50_000_000)
    throttle = reassignments.read_throttle(connection)
    assert set(throttle.follower_bytes_per_s.values()) == {50_000_000}
    assert throttle.topics == (topic,)
    for _ in range(600):
        if not reassignments.list_running(connection):
            break
        connection.pause(0.05)
    rows = partitions.read_map(connection, topic).partitions
    assert [tuple(replica.broker for replica in row.replicas) for row in rows] == [
        move.after for move in plan.moves
    ]
    reassignments.remove_throttle(connection)
    # The broker reads the change from ZooKeeper a moment later.
    none = reassignments.Throttle({}, {}, ())
    for _ in range(600):
        if (throttle := reassignments.read_throttle(connection)) == none:
            break
        connection.pause(0.05)
    assert throttle == none
    with pytest.raises(ApiError, match="Make the plan again"):
        reassignments.execute(connection, plan.moves)


def test_impossible_assignments_are_rejected(connection: ClusterConnection, topic: str) -> None:
    """Unknown brokers, duplicates and missing partitions are errors of the request."""
    _create(connection, topic, 1, 1)
    for replicas in ((), (1, 1), (9,)):
        request = reassignments.ReassignmentRequest(
            reassignments.Goal.EXPLICIT, targets={(topic, 0): replicas}
        )
        with pytest.raises(ConfigError):
            reassignments.plan_moves(connection, request)


def test_the_log_of_a_partition(connection: ClusterConnection, topic: str) -> None:
    """Offsets, epochs, replicas and batches of a partition are read through the protocol."""
    _create(connection, topic, 1)
    _fill(connection, topic, 50, "lz4")
    log = inspect(connection, topic, 0)
    assert (log.start_offset, log.high_watermark, log.last_stable_offset) == (0, 50, 50)
    assert [(row.start_offset, row.end_offset) for row in log.epochs] == [(0, 50)]
    assert len(log.replicas) == 3
    batches = read_batches(connection, topic, 0, offset=0)
    assert sum(row.records for row in batches) == 50
    assert {row.codec for row in batches} == {"lz4"}
    assert all(row.is_crc_valid for row in batches)
    with pytest.raises(ApiError) as error:
        read_batches(connection, topic, 0, offset=51)
    assert error.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_quotas_are_altered(connection: ClusterConnection) -> None:
    """A limit is set, listed and removed; ACLs and users are reported as not served."""
    entity = {"user": "ann", "client-id": None}
    access.alter_quota(connection, entity, {"producer_byte_rate": 1000.0})
    assert _wait_for_limits(connection, entity, {"producer_byte_rate": 1000.0})
    change = access.alter_quota(connection, entity, {"producer_byte_rate": None})
    assert change.after == {}
    assert _wait_for_limits(connection, entity, None)
    support = access.read_support(connection)
    assert support.quotas
    if not support.users:
        with pytest.raises(Unsupported):
            access.list_users(connection)


def _wait_for_limits(
    connection: ClusterConnection,
    entity: dict[str, str | None],
    limits: dict[str, float] | None,
) -> bool:
    """Return True when a broker has learned of the limits."""
    for _ in range(200):
        result = [row.limits for row in access.list_quotas(connection) if row.entity == entity]
        if result == ([] if limits is None else [limits]):
            return True
        connection.pause(0.02)
    return False


def test_a_new_topic_is_known_when_its_creation_returns(
    connection: ClusterConnection, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker of a KRaft cluster may report for a moment that the topic does not exist."""
    late = [unknown_topic(topic), unknown_topic(topic)]

    def read_late(connection: ClusterConnection, name: str) -> Topic:
        if late:
            raise late.pop()
        return read_topic(connection, name)

    monkeypatch.setattr(topics, "read_topic", read_late)
    topics.create_topic(connection, topics.NewTopic(topic, 2, 1))
    assert late == []


def test_a_dead_broker_is_left_out(topic: str) -> None:
    """With a broker down, its partitions are under-replicated and the rest is reported."""
    with Cluster(brokers=2) as cluster:
        settings = ClusterSettings("two", cluster.bootstrap)
        connection = ClusterConnection(settings, timeout_s=5.0)
        topics.create_topic(connection, topics.NewTopic(topic, 2, 2))
        cluster.kill(2)
        for _ in range(200):
            troubled = partitions.list_troubled(connection)
            nodes = [row.node_id for row in list_brokers(connection)]
            # Metadata may list a broker once more after its partitions have other leaders.
            if len(troubled) == 2 and all(row.leader == 1 for row in troubled) and nodes == [1]:
                break
            connection.forget()
            connection.pause(0.05)
        assert [row.is_under_replicated for row in troubled] == [True, True]
        assert [row.node_id for row in list_brokers(connection)] == [1]
        sample = overview.take_sample(connection)
        assert sample.brokers == (1,)
        assert topics.describe_topic(connection, topic).row.under_replicated == 2
        connection.close()


@pytest.mark.slow  # An ensemble in a process of its own: kazoo needs a real server.
def test_a_zookeeper_tree_is_read(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nodes have values and children; an absent node, and one with secrets, are errors."""
    with ZooKeeperProcess(tmp_path_factory.mktemp("tree")) as ensemble:
        settings = ClusterSettings("zk", "127.0.0.1:1", zookeeper=ensemble.connect)
        connection = ClusterConnection(settings)
        assert has_tree(connection)
        root = read_znode(connection)
        assert root.path == "/"
        with pytest.raises(ConfigError, match="no node"):
            read_znode(connection, "/absent")
        shell = ("zookeeper", "shell", "--connect", ensemble.connect)
        for line in ("create /secret", "setAcl /secret digest:brokers:x:cdrwa"):
            assert run_command(*shell, *line.split()).returncode == 0
        with pytest.raises(ConfigError, match=r"only the user of the brokers may read '/secret'"):
            read_znode(connection, "/secret")
        assert "imok" in run_four_letter_command(connection, "ruok")
        with pytest.raises(ConfigError):
            run_four_letter_command(connection, "kill")
        connection.close()
