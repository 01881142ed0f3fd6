"""A cluster under a random controller's life: whatever happens, nobody is told anything impossible.

Brokers come, go and restart, ISRs shrink, topics are made, grown and deleted. After every step each
live broker's own image, made of nothing but the notices it was sent, is the controller's; leaders are
alive and in sync; leader epochs and partition epochs only grow, and grow with every change.
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
    """The planner against brokers that believe only what they are told."""

    def __init__(self) -> None:
        super().__init__()
        self.image = ClusterImage(controller_id=1, controller_epoch=1)
        self.rng = SeededRng(3)
        self.registrations = 0
        self.unclean: set[str] = set()
        self.told: dict[int, ClusterImage] = {}
        self.states: dict[int, dict[tuple[bytes, int], PartitionState]] = {}
        # What was written last of each partition: (leader epoch, partition epoch, leader, isr).
        self.written: dict[tuple[bytes, int], tuple[int, int, int, tuple[int, ...]]] = {}

    def become(self, after: ClusterImage, came: frozenset[int] = frozenset()) -> None:
        """Tell everybody of the way to another image."""
        before, self.image = self.image, after
        for notice in planner.plan_notices(before, after, came):
            states = self.states[notice.broker_id]
            for state in notice.leaders:
                former = states.get((state.topic_id, state.partition))
                assert former is None or former.leader_epoch <= state.leader_epoch
                assert notice.broker_id in state.replicas
                states[state.topic_id, state.partition] = state
            assert notice.metadata is not None
            self.told[notice.broker_id] = notice.metadata.apply(self.told[notice.broker_id], FENCE)

    @rule(live=st.sets(st.sampled_from(IDS), min_size=1), restarted=st.sets(st.sampled_from(IDS)))
    def brokers_change(self, live: set[int], restarted: set[int]) -> None:
        """Any brokers come, go or restart at the same moment."""
        registered = {}
        for key in sorted(live):
            broker = self.image.broker(key)
            if broker is None or key in restarted:
                self.registrations += 1
                broker = BrokerImage(key, "host", 9092, epoch=self.registrations)
            registered[key] = broker
        change = planner.compare_brokers(self.image.brokers, registered)
        for key in change.gone:
            self.told.pop(key)
            self.states.pop(key)
        for key in change.came:
            self.told[key], self.states[key] = ClusterImage(), {}
        after = planner.plan_brokers(self.image, registered, self.unclean.__contains__)
        for write in planner.write_states(self.image, after, 1):
            after = after.with_topics(write.topics)
        self.become(after, change.came)

    def now(self) -> creation.Environment:
        """Return what plans depend on."""
        return creation.Environment(image=self.image, options=OPTIONS, rng=self.rng)

    @precondition(lambda self: self.image.brokers)
    @rule(name=st.sampled_from(NAMES), partitions=st.integers(1, 3), factor=st.integers(1, 3))
    def create(self, name: str, partitions: int, factor: int) -> None:
        """A topic is made, if it can be."""
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
        """A topic gets another partition, if it can."""
        topic = self.image.topics[data.draw(st.sampled_from(sorted(self.image.topics)))]
        request = PartitionsRequest(topic.name, len(topic.partitions) + 1)
        try:
            grown = creation.plan_partitions(request, topic, self.now())
        except ApiError:
            assert len(topic.partitions[0].replicas) > len(self.image.brokers)
            return
        assert grown.partitions[:-1] == topic.partitions
        self.become(self.image.with_topics([grown]))

    @precondition(lambda self: self.image.topics)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        """A topic leaves the image."""
        name = data.draw(st.sampled_from(sorted(self.image.topics)))
        self.become(self.image.with_topics(deleted=[name]))

    @precondition(lambda self: self.image.topics)
    @rule(data=st.data())
    def shrink(self, data: st.DataObject) -> None:
        """A leader drops a follower from the ISR."""
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
        """From now on the topic prefers to live."""
        self.unclean.add(name)

    @invariant()
    def leaders_are_alive_and_in_sync(self) -> None:
        """And who is in sync is a replica; dead replicas are known as offline."""
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
        """Neither epoch ever goes back; another leader means another leader epoch."""
        for topic in self.image.topics.values():
            for item in topic.partitions:
                key = (topic.topic_id, item.partition)
                found = (item.leader_epoch, item.partition_epoch, item.leader, item.isr)
                former = self.written.setdefault(key, found)
                assert found[0] >= former[0]
                assert found[1] >= former[1]
                if found[2] != former[2]:
                    assert found[0] > former[0]
                if found[2:] != former[2:]:
                    assert found[1] > former[1]
                self.written[key] = found

    @invariant()
    def every_live_broker_knows_what_the_controller_knows(self) -> None:
        """From notices alone; and each knows the state of its own partitions."""
        for key, told in self.told.items():
            assert told.topics == self.image.topics
            assert told.brokers == self.image.brokers
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
