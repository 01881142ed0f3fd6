"""A cluster with a random history: every notice to a broker is consistent with those before.

Brokers join, leave and restart, ISRs shrink, and topics are created, extended and deleted. After
every step, each live broker's image, built only from its notices, equals the controller's. Leaders
are alive and in sync. Leader epochs and partition epochs never decrease, and increase with every
change.
"""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ottla.base.errors import ApiError
from ottla.base.rng import SeededRng
from ottla.cluster.image import NO_LEADER, BrokerImage, ClusterImage, PartitionState
from ottla.cluster.options import option_tables
from ottla.controller.planning import creation, planner
from ottla.controller.planning.notices import Fence
from ottla.controller.planning.requests import PartitionsRequest, TopicRequest

NAMES = ("a", "b", "c")
IDS = (1, 2, 3, 4)
OPTIONS = option_tables.parse_broker_settings({}).snapshot
FENCE = Fence(1, 1, 0)


class ControllerModel(RuleBasedStateMachine):
    """The planner, with brokers that know only their notices."""

    def __init__(self) -> None:
        super().__init__()
        self.image = ClusterImage(controller_id=1, controller_epoch=1)
        self.rng = SeededRng(3)
        self.registrations = 0
        self.unclean: set[str] = set()
        self.images: dict[int, ClusterImage] = {}
        self.states: dict[int, dict[tuple[bytes, int], PartitionState]] = {}
        # The last written state of each partition: (leader epoch, partition epoch, leader, isr).
        self.written: dict[tuple[bytes, int], tuple[int, int, int, tuple[int, ...]]] = {}

    def become(self, after: ClusterImage, came: frozenset[int] = frozenset()) -> None:
        """Send all brokers the notices for another image."""
        before, self.image = self.image, after
        for notice in planner.plan_notices(before, after, came):
            states = self.states[notice.broker_id]
            for state in notice.leaders:
                former = states.get((state.topic_id, state.partition))
                assert former is None or former.leader_epoch <= state.leader_epoch
                assert notice.broker_id in state.replicas
                states[state.topic_id, state.partition] = state
            assert notice.metadata is not None
            self.images[notice.broker_id] = notice.metadata.apply(
                self.images[notice.broker_id], FENCE
            )

    @rule(live=st.sets(st.sampled_from(IDS), min_size=1), restarted=st.sets(st.sampled_from(IDS)))
    def brokers_change(self, live: set[int], restarted: set[int]) -> None:
        """Any brokers join, leave or restart at the same time."""
        registered = {}
        for key in sorted(live):
            broker = self.image.broker(key)
            if broker is None or key in restarted:
                self.registrations += 1
                broker = BrokerImage(key, "host", 9092, epoch=self.registrations)
            registered[key] = broker
        change = planner.compare_brokers(self.image.brokers, registered)
        for key in change.removed:
            self.images.pop(key)
            self.states.pop(key)
        for key in change.registered:
            self.images[key], self.states[key] = ClusterImage(), {}
        is_unclean = self.unclean.__contains__
        after = planner.plan_brokers(self.image, registered, is_unclean)
        affected = change.registered | change.removed
        assert planner.plan_brokers(self.image, registered, is_unclean, (), affected) == after
        for topic in after.topics.values():
            former_partitions = self.image.topics[topic.name].partitions
            for former, item in zip(former_partitions, topic.partitions, strict=True):
                if item.leader not in (NO_LEADER, *former.isr):
                    assert not set(former.isr) & set(registered), (
                        "an in-sync replica was registered"
                    )
        for write in planner.write_states(self.image, after, 1):
            after = after.with_topics(write.topics)
        self.become(after, change.registered)

    def now(self) -> creation.Environment:
        """Return the environment of a plan."""
        return creation.Environment(image=self.image, options=OPTIONS, rng=self.rng)

    @precondition(lambda self: self.image.brokers)
    @rule(name=st.sampled_from(NAMES), partitions=st.integers(1, 3), factor=st.integers(1, 3))
    def create(self, name: str, partitions: int, factor: int) -> None:
        """Create a topic if it is valid."""
        try:
            new = creation.plan_topic(
                TopicRequest(name, partitions, factor), self.image.topics, self.now()
            )
        except ApiError:
            assert name in self.image.topics or factor > len(self.image.brokers)
            return
        self.become(self.image.with_topics([new.topic]))

    @precondition(lambda self: self.image.brokers and self.image.topics)
    @rule(data=st.data())
    def grow(self, data: st.DataObject) -> None:
        """Add a partition to a topic if possible."""
        topic = self.image.topics[data.draw(st.sampled_from(sorted(self.image.topics)))]
        request = PartitionsRequest(topic.name, len(topic.partitions) + 1)
        try:
            placement = creation.place_partitions(request, topic, self.now())
        except ApiError:
            assert len(topic.partitions[0].replicas) > len(self.image.brokers)
            return
        grown = topic.with_partitions(placement.partitions())
        assert grown.partitions[:-1] == topic.partitions
        self.become(self.image.with_topics([grown]))

    @precondition(lambda self: self.image.topics)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        """Delete a topic from the image."""
        name = data.draw(st.sampled_from(sorted(self.image.topics)))
        self.become(self.image.with_topics(deleted=[name]))

    @precondition(lambda self: self.image.topics)
    @rule(data=st.data())
    def shrink(self, data: st.DataObject) -> None:
        """Let a leader remove a follower from the ISR."""
        topic = self.image.topics[data.draw(st.sampled_from(sorted(self.image.topics)))]
        partition = data.draw(st.sampled_from(topic.partitions))
        if partition.leader == NO_LEADER:
            return
        isr = tuple(
            item for item in partition.isr if item == partition.leader or data.draw(st.booleans())
        )
        if isr != partition.isr:
            epoch = partition.partition_epoch + 1
            changed = replace(partition, isr=isr, partition_epoch=epoch)
            self.become(self.image.with_topics([topic.with_partitions([changed])]))

    @rule(name=st.sampled_from(NAMES))
    def allow_unclean(self, name: str) -> None:
        """Allow unclean elections for the topic from now on."""
        self.unclean.add(name)

    @invariant()
    def leaders_are_alive_and_in_sync(self) -> None:
        """Members of the ISR are replicas, and dead replicas are marked as offline."""
        for topic in self.image.topics.values():
            for item in topic.partitions:
                assert item.isr
                assert set(item.isr) <= set(item.replicas)
                if item.leader != NO_LEADER:
                    assert item.leader in self.image.brokers
                    assert set(item.isr) <= set(self.image.brokers)
                    assert item.leader in item.isr
                else:
                    assert not set(item.isr) & set(self.image.brokers)
                dead = [key for key in item.replicas if key not in self.image.brokers]
                assert list(item.offline_replicas) == dead

    @invariant()
    def every_change_has_an_epoch(self) -> None:
        """Epochs never decrease, and a new leader has a new leader epoch."""
        for topic in self.image.topics.values():
            for item in topic.partitions:
                key = (topic.topic_id, item.partition)
                result = (item.leader_epoch, item.partition_epoch, item.leader, item.isr)
                former = self.written.setdefault(key, result)
                assert result[0] >= former[0]
                assert result[1] >= former[1]
                if result[2] != former[2]:
                    assert result[0] > former[0]
                if result[2:] != former[2:]:
                    assert result[1] > former[1]
                self.written[key] = result

    @invariant()
    def live_brokers_have_the_controllers_image(self) -> None:
        """Images are built only from notices, and contain the state of the broker's partitions."""
        for key, seen in self.images.items():
            assert seen.topics == self.image.topics
            assert seen.brokers == self.image.brokers
            for topic in self.image.topics.values():
                for item in topic.partitions:
                    if key in item.replicas:
                        state = self.states[key][topic.topic_id, item.partition]
                        assert (state.leader, state.leader_epoch) == (
                            item.leader,
                            item.leader_epoch,
                        )


ControllerModel.TestCase.settings = settings(max_examples=50, stateful_step_count=25, deadline=None)
TestControllerModel = ControllerModel.TestCase
