"""New topics and partitions: Kafka's checks in Kafka's order, and the nodes that are written."""

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.rng import SeededRng
from ottla.cluster.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from ottla.cluster.options import option_tables
from ottla.cluster.zk.port import Create, SetData
from ottla.controller.planning import creation
from ottla.controller.planning.requests import PartitionsRequest, TopicRequest


def environment(brokers: int = 3, **settings: str) -> creation.Environment:
    """Return a cluster of brokers 1 to n, with broker settings (dots as underscores)."""
    written = {name.replace("_", "."): text for name, text in settings.items()}
    image = ClusterImage().with_brokers(
        BrokerImage(number, "host", 9092, epoch=number) for number in range(1, brokers + 1)
    )
    snapshot = option_tables.parse_broker_settings(written).snapshot
    return creation.Environment(image=image, options=snapshot, rng=SeededRng(7))


def plan(request: TopicRequest, existing: tuple[str, ...] = (), brokers: int = 3) -> TopicImage:
    """Plan the creation of a topic."""
    return creation.plan_topic(request, existing, environment(brokers)).topic


def test_a_topic_gets_the_requested_partitions_and_replicas() -> None:
    """The first replica of each partition is its first leader, and all live replicas are in sync."""
    topic = plan(TopicRequest("t", 4, 2))
    assert len(topic.partitions) == 4
    for partition in topic.partitions:
        assert len(set(partition.replicas)) == 2
        assert (partition.leader, partition.isr) == (partition.replicas[0], partition.replicas)
        assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)
    assert {partition.leader for partition in topic.partitions} == {1, 2, 3}


def test_minus_one_means_the_brokers_defaults() -> None:
    """A count of -1 means num.partitions, and a factor of -1 default.replication.factor."""
    now = environment(num_partitions="5", default_replication_factor="2")
    topic = creation.plan_topic(TopicRequest("t"), (), now).topic
    assert len(topic.partitions) == 5
    assert len(topic.partitions[0].replicas) == 2


def test_an_assignment_is_used_unchanged() -> None:
    """Partitions may be listed in any order; the order of the replicas is kept."""
    topic = plan(TopicRequest("t", assignments=((1, (3, 1)), (0, (2, 3)))))
    assert [partition.replicas for partition in topic.partitions] == [(2, 3), (3, 1)]
    assert [partition.leader for partition in topic.partitions] == [2, 3]


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (TopicRequest("x", 0, 1), ErrorCode.INVALID_PARTITIONS),
        (TopicRequest("x", -2, 1), ErrorCode.INVALID_PARTITIONS),
        (TopicRequest("x", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (TopicRequest("x", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (TopicRequest("x", 1, 4), ErrorCode.INVALID_REPLICATION_FACTOR),
        (TopicRequest("x", 0, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (TopicRequest("x", 10_001, 1), ErrorCode.POLICY_VIOLATION),
        (TopicRequest("x y", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TopicRequest("", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TopicRequest("x" * 250, 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TopicRequest("__cluster_metadata", 1, 1), ErrorCode.INVALID_REQUEST),
        (TopicRequest("taken", 0, 9), ErrorCode.TOPIC_ALREADY_EXISTS),
        (TopicRequest("a_b", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TopicRequest("x", 0, 1, config={"nope": "1"}), ErrorCode.INVALID_CONFIG),
        (TopicRequest("x", 1, 1, config={"retention.ms": "z"}), ErrorCode.INVALID_CONFIG),
        (TopicRequest("x", 1, 1, config={"retention.ms": None}), ErrorCode.INVALID_CONFIG),
        (TopicRequest("x", 1, -1, assignments=((0, (1,)),)), ErrorCode.INVALID_REQUEST),
        (TopicRequest("x", -1, 1, assignments=((0, (1,)),)), ErrorCode.INVALID_REQUEST),
        (
            TopicRequest("x", assignments=((0, (1,)), (2, (1,)))),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            TopicRequest("x", assignments=((0, (1,)), (0, (1,)))),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (TopicRequest("x", assignments=((-1, (1,)),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (TopicRequest("x", assignments=((0, (1, 1)),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (TopicRequest("x", assignments=((0, (9,)),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (TopicRequest("x", assignments=((0, ()),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (
            TopicRequest("x", assignments=((0, (1,)), (1, (1, 2)))),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
    ],
)
def test_an_invalid_topic_is_rejected_with_kafkas_code(
    request_: TopicRequest, code: ErrorCode
) -> None:
    """Names are checked first, then settings, the replication factor and the partitions."""
    with pytest.raises(ApiError) as caught:
        plan(request_, existing=("taken", "a.b"))
    assert caught.value.code is code


def test_settings_are_written_first_and_partition_states_last() -> None:
    """A reader that sees a partition's state also finds the nodes that it depends on."""
    now = environment(1)
    request = TopicRequest("t", 2, 1, config={"retention.ms": " 5 "})
    write = creation.write_topic(creation.plan_topic(request, (), now), controller_epoch=3)
    assert [operation.path for operation in write.operations] == [
        "/config/topics/t",
        "/brokers/topics/t",
        "/brokers/topics/t/partitions",
        "/brokers/topics/t/partitions/0",
        "/brokers/topics/t/partitions/0/state",
        "/brokers/topics/t/partitions/1",
        "/brokers/topics/t/partitions/1/state",
    ]
    first, last = write.operations[0], write.operations[-1]
    assert isinstance(first, Create)
    assert first.data == b'{"version":1,"config":{"retention.ms":"5"}}'
    assert isinstance(last, Create)
    assert b'"controller_epoch":3,"leader":1' in last.data


def test_leftover_settings_of_a_deleted_topic_are_overwritten() -> None:
    """A leftover settings node does not make the creation fail."""
    new = creation.plan_topic(TopicRequest("t", 1, 1), (), environment(1))
    write = creation.write_topic(new, 1, config_exists=True)
    assert isinstance(write.operations[0], SetData)


def extend(request: PartitionsRequest, brokers: int = 3) -> TopicImage:
    """Plan more partitions for a topic with two."""
    topic = plan(TopicRequest("t", assignments=((0, (2, 3)), (1, (3, 1)))))
    placement = creation.place_partitions(request, topic, environment(brokers))
    return topic.with_partitions(placement.partitions())


def test_leaders_of_new_partitions_continue_the_round_robin() -> None:
    """The old partitions stay, and the round robin of the leaders starts at the first leader."""
    topic = extend(PartitionsRequest("t", 5))
    assert [partition.replicas for partition in topic.partitions[:2]] == [(2, 3), (3, 1)]
    assert [partition.leader for partition in topic.partitions[2:]] == [1, 2, 3]


def test_new_partitions_can_be_assigned() -> None:
    """An assignment contains only the new partitions."""
    topic = extend(PartitionsRequest("t", 3, assignments=((1, 2),)))
    assert topic.partitions[2].replicas == (1, 2)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (PartitionsRequest("t", 2), ErrorCode.INVALID_PARTITIONS),
        (PartitionsRequest("t", 1), ErrorCode.INVALID_PARTITIONS),
        (PartitionsRequest("t", -1), ErrorCode.INVALID_PARTITIONS),
        (PartitionsRequest("t", 20_000), ErrorCode.POLICY_VIOLATION),
        (PartitionsRequest("t", 3, ((1, 2), (2, 1))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (PartitionsRequest("t", 4, ((1, 2),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (PartitionsRequest("t", 3, ()), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (PartitionsRequest("t", 3, ((1,),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (PartitionsRequest("t", 3, ((1, 1),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (PartitionsRequest("t", 3, ((1, 9),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (PartitionsRequest("t", 3, ((),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_invalid_new_partitions_are_rejected_with_kafkas_code(
    request_: PartitionsRequest, code: ErrorCode
) -> None:
    """The number of partitions is checked before the assignment."""
    with pytest.raises(ApiError) as caught:
        extend(request_)
    assert caught.value.code is code


def test_a_topic_that_is_being_reassigned_gets_no_partitions() -> None:
    """The number of replicas is unknown until the reassignment is complete."""
    partition = PartitionImage(0, 1, 0, isr=(1,), replicas=(1, 2), adding_replicas=(2,))
    topic = TopicImage("t", b"i" * 16, (partition,))
    with pytest.raises(ApiError) as caught:
        creation.place_partitions(PartitionsRequest("t", 2), topic, environment())
    assert caught.value.code is ErrorCode.REASSIGNMENT_IN_PROGRESS


@pytest.mark.parametrize(("brokers", "factor"), [(1, 1), (2, 2), (5, 3)])
def test_the_offsets_topic_is_compacted_and_replicated_as_far_as_the_cluster_allows(
    brokers: int, factor: int
) -> None:
    """In a cluster of one broker, groups do not need to wait for two more brokers."""
    snapshot = option_tables.parse_broker_settings({}).snapshot
    request = creation.internal_topic("__consumer_offsets", snapshot, brokers)
    assert (request.partitions, request.replication_factor) == (50, factor)
    assert request.config["cleanup.policy"] == "compact"
    assert request.config["segment.bytes"] == "104857600"
    assert request.config["flush.on.ack"] == "true"


def test_a_replication_factor_that_is_configured_is_kept() -> None:
    """Only the default is lowered to the number of brokers."""
    settings = {"offsets.topic.replication.factor": "3", "offsets.topic.num.partitions": "2"}
    snapshot = option_tables.parse_broker_settings(settings).snapshot
    request = creation.internal_topic("__consumer_offsets", snapshot, 1)
    assert (request.partitions, request.replication_factor) == (2, 3)


def test_min_insync_replicas_of_the_transaction_topic_does_not_exceed_its_replicas() -> None:
    """A cluster of one broker can commit transactions."""
    snapshot = option_tables.parse_broker_settings({}).snapshot
    request = creation.internal_topic("__transaction_state", snapshot, 1)
    assert request.config["min.insync.replicas"] == "1"
    assert request.config["unclean.leader.election.enable"] == "false"
