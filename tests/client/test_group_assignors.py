"""Groups whose assignor librdkafka does not have: the eager StickyAssignor, and one's own."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client import (
    AdminClient,
    Consumer,
    MemberSubscription,
    PartitionAssignor,
    Producer,
    RebalanceListener,
    TopicPartition,
)
from ottla.client.errors import ClientError, CommitFailed, TransactionAborted
from ottla.client.group.assignors import PartitionRacks
from ottla.testing import Cluster
from tests.client.test_consumer import PATIENCE_S, consumer_of, fill, poll_until, read, values_of

pytestmark = pytest.mark.slow

STICKY = {"partition_assignment_strategy": "sticky", "heartbeat_interval_ms": 50}


def polled_until(is_done: Callable[[], bool], *members: Consumer) -> None:
    """Poll all members until a condition holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_done():
        assert time.monotonic() < deadline, [one.assignment for one in members]
        for one in members:
            one.poll(0.02)


def balanced(*members: Consumer) -> None:
    """Poll until the members have all three partitions among them, in equal shares."""

    def is_balanced() -> bool:
        sizes = [len(one.assignment) for one in members]
        return sum(sizes) == 6 and max(sizes) - min(sizes) <= 1

    polled_until(is_balanced, *members)


@pytest.fixture
def topic(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    """A topic of this test with six partitions."""
    name = request.node.name.replace("_", "-")
    cluster.create_topic(name, partitions=6)
    return name


def test_members_keep_their_partitions(cluster: Cluster, topic: str) -> None:
    """When a member leaves, the others keep what they have and share the rest."""
    members = [consumer_of(cluster, topic, group_id=topic, **STICKY) for _ in range(3)]
    balanced(*members)
    before = [one.assignment for one in members]
    members.pop(1).close()
    balanced(*members)
    assert before[0] < members[0].assignment
    assert before[2] < members[1].assignment
    for one in members:
        one.close()


def test_group_has_the_protocol_of_the_java_client(cluster: Cluster, topic: str) -> None:
    """kafka-consumer-groups and every other member see the assignor `sticky`."""
    with (
        consumer_of(cluster, topic, group_id=topic, **STICKY) as consumer,
        AdminClient(bootstrap_servers=cluster.bootstrap) as admin,
    ):
        poll_until(consumer, lambda: len(consumer.assignment) == 6)
        group = admin.describe_group(topic)
        assert (group.state, group.assignor) == ("Stable", "sticky")
        (member,) = group.members
        assert len(member.assignment) == 6
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        assert admin.describe_group(topic).members == ()


class Alphabetic(PartitionAssignor):
    """Gives every partition to the member whose user data is the first in the alphabet."""

    name = "alphabetic"

    def __init__(self, word: str) -> None:
        self.word = word
        self.seen: list[tuple[int, int]] = []

    def user_data(self, topics: object) -> bytes:
        """Return the member's word."""
        return self.word.encode()

    def assign(
        self, counts: Mapping[str, int], members: Mapping[str, MemberSubscription]
    ) -> dict[str, list[TopicPartition]]:
        """Return all partitions for one member."""
        first = min(members, key=lambda key: members[key].user_data or b"")
        return {
            first: [
                TopicPartition(topic, n) for topic, count in counts.items() for n in range(count)
            ]
        }

    def assigned(self, partitions: Any, generation: int) -> None:
        """Remember the generation."""
        self.seen.append((generation, len(partitions)))


def test_own_assignor_decides(cluster: Cluster, topic: str) -> None:
    """A PartitionAssignor in code is used by the leader, with the user data of all members."""
    one, two = Alphabetic("b"), Alphabetic("a")
    settings = {"group_id": topic, "heartbeat_interval_ms": 50}
    first = consumer_of(cluster, topic, partition_assignment_strategy=[one], **settings)
    poll_until(first, lambda: len(first.assignment) == 6)
    second = consumer_of(cluster, topic, partition_assignment_strategy=[two], **settings)
    polled_until(lambda: len(second.assignment) == 6 and not first.assignment, first, second)
    second.close()
    poll_until(first, lambda: len(first.assignment) == 6)
    first.close()
    assert [size for _, size in one.seen] == [6, 0, 6]
    assert [generation for generation, _ in one.seen] == sorted({row[0] for row in one.seen})


def test_an_assignor_receives_the_racks_of_members_and_partitions() -> None:
    """The leader learns client.rack of each member, and the racks of the replicas (KIP-881)."""
    racks: list[tuple[object, set[str | None]]] = []

    class Near(Alphabetic):
        def assign_near(
            self, racks_of: PartitionRacks, members: Mapping[str, MemberSubscription]
        ) -> Mapping[str, Sequence[tuple[str, int]]]:
            racks.append((racks_of, {member.rack for member in members.values()}))
            return super().assign_near(racks_of, members)

    settings = {
        "partition_assignment_strategy": [Near("a")],
        "heartbeat_interval_ms": 50,
        "group_id": "g",
    }
    with Cluster(options={"broker.rack": "east"}) as cluster:
        cluster.create_topic("t", partitions=2)
        with (
            consumer_of(cluster, "t", client_rack="west", **settings) as first,
            consumer_of(cluster, "t", **settings) as second,
        ):
            expected = ({"t": [frozenset({"east"})] * 2}, {"west", None})
            polled_until(lambda: expected in racks, first, second)


def test_error_of_an_assignor_is_raised_by_poll(cluster: Cluster, topic: str) -> None:
    """The next polls join again."""

    class Broken(Alphabetic):
        fails = True

        def assign(self, counts: Any, members: Any) -> dict[str, list[TopicPartition]]:
            if self.fails:
                raise ValueError("the assignor fails")
            return super().assign(counts, members)

    broken = Broken("a")
    settings = {"partition_assignment_strategy": broken, "heartbeat_interval_ms": 50}
    with consumer_of(cluster, topic, group_id=topic, **settings) as consumer:
        with pytest.raises(ValueError, match="the assignor fails"):
            poll_until(consumer, lambda: False)
        broken.fails = False
        poll_until(consumer, lambda: bool(consumer.assignment))
        assert consumer.assignment == {(topic, number) for number in range(6)}


def test_topics_that_appear_or_grow_are_assigned(cluster: Cluster, topic: str) -> None:
    """The leader looks at the topics again: for new ones of a pattern, and for new partitions."""
    settings = {**STICKY, "metadata_max_age_ms": 100}
    with (
        consumer_of(cluster, group_id=topic, **settings) as consumer,
        AdminClient(bootstrap_servers=cluster.bootstrap) as admin,
    ):
        consumer.subscribe(pattern=f"{topic}.*")
        poll_until(consumer, lambda: len(consumer.assignment) == 6)
        cluster.create_topic(f"{topic}-more", partitions=2)
        poll_until(consumer, lambda: len(consumer.assignment) == 8)
        admin.create_partitions(topic, 7)
        poll_until(consumer, lambda: len(consumer.assignment) == 9)
        assert consumer.assignment == {
            *((topic, number) for number in range(7)),
            *((f"{topic}-more", number) for number in range(2)),
        }


def test_topic_that_does_not_exist_is_created(cluster: Cluster, topic: str) -> None:
    """As with the Java client, unless allow.auto.create.topics forbids it."""
    missing = f"{topic}-missing"
    settings = {**STICKY, "group_id": topic}
    with consumer_of(cluster, missing, **settings, allow_auto_create_topics=False) as consumer:
        assert consumer.poll(0.5) == []
        assert missing not in cluster.topics()
    with consumer_of(cluster, missing, **settings) as consumer:
        poll_until(consumer, lambda: len(consumer.assignment) == 1)


def test_subscription_may_change(cluster: Cluster, topic: str) -> None:
    """The listener gives up the old partitions, commits, and gets the new ones."""
    cluster.create_topic(f"{topic}-2", partitions=2)
    calls: list[tuple[str, int]] = []

    class Listener(RebalanceListener):
        def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
            calls.append(("assigned", len(partitions)))

        def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
            calls.append(("revoked", len(partitions)))

    fill(cluster, topic, [b"1", b"2", b"3"])
    with consumer_of(cluster, group_id=topic, **STICKY) as consumer:
        consumer.subscribe(topic, listener=Listener())
        assert values_of(read(consumer, 3)) == [b"1", b"2", b"3"]
        consumer.subscribe(f"{topic}-2", listener=Listener())
        poll_until(consumer, lambda: len(consumer.assignment) == 2)
        committed = consumer.committed([(topic, n) for n in range(3)])
        assert [row.offset for row in committed.values()] == [1, 1, 1]
        consumer.unsubscribe()
        assert consumer.assignment == frozenset()
        consumer.subscribe(topic, listener=Listener())
        poll_until(consumer, lambda: len(consumer.assignment) == 6)
    assert calls == [
        *(("assigned", 6), ("revoked", 6)),
        *(("assigned", 2), ("revoked", 2)),
        *(("assigned", 6), ("revoked", 6)),
    ]


def test_commit_of_a_member_that_polled_too_late_fails(strict: Cluster) -> None:
    """The sentence has the reason, and the records are read again."""
    strict.create_topic("late", partitions=3)
    fill(strict, "late", [b"1"])
    settings = {**STICKY, "session_timeout_ms": 400, "max_poll_interval_ms": 400}
    with consumer_of(strict, "late", group_id="late", **settings) as consumer:
        (record,) = read(consumer, 1)
        threading.Event().wait(0.8)  # the application is busy
        with pytest.raises(CommitFailed, match=r"poll was not called for .* s"):
            consumer.commit(record)
        assert read(consumer, 1)[0].offset == record.offset


def test_session_ends_while_the_coordinator_is_away(strict: Cluster) -> None:
    """The partitions are lost after session.timeout.ms; the member returns with the broker."""
    strict.create_topic("away", partitions=3)
    settings = {**STICKY, "session_timeout_ms": 400}
    with consumer_of(strict, "away", group_id="away", **settings) as consumer:
        poll_until(consumer, lambda: len(consumer.assignment) == 3)
        strict.kill(1)
        poll_until(consumer, lambda: not consumer.assignment)
        assert "no heartbeat within session.timeout.ms (400)" in str(consumer.departure)
        strict.restart(1)
        poll_until(consumer, lambda: len(consumer.assignment) == 3)


@pytest.fixture(scope="module")
def strict() -> Iterator[Cluster]:
    """A broker that allows short sessions."""
    with Cluster(options={"group.min.session.timeout.ms": "100"}) as running:
        yield running


def test_static_member_keeps_its_partitions_over_a_restart(cluster: Cluster, topic: str) -> None:
    """It does not leave when it is closed, so the group does not rebalance (KIP-345)."""
    settings = {**STICKY, "group_id": topic}
    other = consumer_of(cluster, topic, **settings)
    with consumer_of(cluster, topic, group_instance_id="one", **settings) as static:
        balanced(other, static)
        before = static.assignment, other.assignment
    with consumer_of(cluster, topic, group_instance_id="one", **settings) as static:
        polled_until(lambda: len(static.assignment) == 3, static, other)
        assert (static.assignment, other.assignment) == before
    other.close()


def test_transaction_commits_offsets(cluster: Cluster, topic: str) -> None:
    """Exactly once from topic to topic, with the positions of a sticky member."""
    cluster.create_topic(f"{topic}-out", partitions=1)
    fill(cluster, topic, [b"1", b"2"])
    with (
        consumer_of(cluster, topic, group_id=topic, enable_auto_commit=False, **STICKY) as consumer,
        Producer(bootstrap_servers=cluster.bootstrap, transactional_id=topic) as producer,
    ):
        records = read(consumer, 2)
        with producer.transaction():
            for record in records:
                producer.send(f"{topic}-out", record.value)
            producer.send_offsets(consumer, consumer.positions())
        committed = consumer.committed([(topic, 0), (topic, 1)])
        assert [row.offset for row in committed.values()] == [1, 1]


def removed_member_commits(cluster: Cluster, topic: str, **identity: str) -> None:
    """Commit offsets in a transaction before and after the member is removed."""
    settings: dict[str, Any] = {"enable_auto_commit": False, **STICKY, **identity}
    with (
        consumer_of(cluster, topic, group_id=topic, **settings) as member,
        Producer(bootstrap_servers=cluster.bootstrap, transactional_id=topic) as producer,
        AdminClient(bootstrap_servers=cluster.bootstrap) as admin,
    ):
        read(member, 2)
        with producer.transaction():
            producer.send_offsets(member, {(topic, 0): 0})
        admin.remove_members(topic)
        with producer.transaction():
            producer.send_offsets(member, {(topic, 0): 0})


def test_transaction_of_a_removed_member_is_aborted(cluster: Cluster, topic: str) -> None:
    """The coordinator compares member and generation (KIP-447): another one has the records."""
    fill(cluster, topic, [b"1", b"2"])
    with pytest.raises(TransactionAborted, match="Unknown member"):
        removed_member_commits(cluster, topic)
    with pytest.raises(TransactionAborted, match="Unknown member"):
        removed_member_commits(cluster, topic, group_instance_id="one")


def test_other_protocol_in_the_group_is_an_error(cluster: Cluster, topic: str) -> None:
    """INCONSISTENT_GROUP_PROTOCOL is raised by poll, as in the Java client."""
    with consumer_of(cluster, topic, group_id=topic) as first:
        poll_until(first, lambda: len(first.assignment) == 6)
        with consumer_of(cluster, topic, group_id=topic, **STICKY) as second:
            with pytest.raises(ApiError) as caught:
                poll_until(second, lambda: False)
            assert caught.value.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_lists_agree_on_the_common_assignor(cluster: Cluster, topic: str) -> None:
    """A group moves from range to sticky in two restarts; range is used between them."""
    settings = {"group_id": topic, "heartbeat_interval_ms": 100}
    with consumer_of(cluster, topic, **settings) as old:
        poll_until(old, lambda: len(old.assignment) == 6)
        both = {**settings, "partition_assignment_strategy": ["sticky", "range"]}
        with (
            consumer_of(cluster, topic, **both) as new,
            AdminClient(bootstrap_servers=cluster.bootstrap) as admin,
        ):
            balanced(old, new)
            assert admin.describe_group(topic).assignor == "range"


KAFKAS_DEFAULT = (
    "org.apache.kafka.clients.consumer.RangeAssignor,"
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
)


def test_default_of_kafka_moves_a_group_to_the_cooperative_assignor(
    cluster: Cluster, topic: str
) -> None:
    """Members with both assignors use range; with a member that has only the second, they use that.

    Partitions that a cooperative member gives up are assigned when it has revoked them.
    """
    fill(cluster, topic, [b"%d" % number for number in range(30)])
    settings = {"group_id": topic, "heartbeat_interval_ms": 50}
    default = {**settings, "partition_assignment_strategy": KAFKAS_DEFAULT}
    new = {**settings, "partition_assignment_strategy": "cooperative-sticky"}
    with (
        AdminClient(bootstrap_servers=cluster.bootstrap) as admin,
        consumer_of(cluster, topic, **default) as first,
    ):
        assert len(read(first, 30)) == 30
        with consumer_of(cluster, topic, **default) as second:
            balanced(first, second)
            assert admin.describe_group(topic).assignor == "range"
        with consumer_of(cluster, topic, **new) as third:
            balanced(first, third)
            assert admin.describe_group(topic).assignor == "cooperative-sticky"
            # The first member leads the group, and takes partitions from the third.
            with consumer_of(cluster, topic, **default) as fourth:
                balanced(first, third, fourth)
            balanced(first, third)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"},
            "sasl.mechanism=OAUTHBEARER needs a token",
        ),
        ({"group_protocol": "consumer"}, "cannot be set with group.protocol=consumer"),
        ({"heartbeat_interval_ms": 0}, "heartbeat.interval.ms=0 must be a positive number"),
    ],
)
def test_wrong_settings_are_sentences(settings: dict[str, Any], sentence: str) -> None:
    """Nothing is started."""
    with pytest.raises((ConfigError, ClientError), match=sentence):
        Consumer("t", bootstrap_servers="127.0.0.1:1", group_id="g", **(STICKY | settings))


def test_close_does_not_wait_for_a_silent_group(cluster: Cluster, topic: str) -> None:
    """A member that waits for others to join leaves at once."""
    first = consumer_of(cluster, topic, group_id=topic, **STICKY)
    poll_until(first, lambda: len(first.assignment) == 6)
    # The first one is not polled: the coordinator waits for it to join again.
    second = consumer_of(cluster, topic, group_id=topic, **STICKY)
    assert second.poll(0.5) == []
    begin = time.monotonic()
    second.close()
    assert time.monotonic() - begin < 2
    poll_until(first, lambda: len(first.assignment) == 6)
    first.close()
