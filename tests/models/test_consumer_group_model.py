"""Consumer groups with random members, topic changes, and a log that stalls and loses records.

The invariants are:

* no partition has two owners among members that are still within their session
* memory equals the log: a coordinator that loads the log has the same groups
* without further changes, every group becomes stable: complete, balanced, and at its target

Members of the classic protocol take part, so groups change their protocol in both directions.
"""

from collections import Counter

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from ottla.cluster.image import ClusterImage, PartitionImage, TopicImage
from ottla.cluster.names import GROUP_OFFSETS_TOPIC
from ottla.cluster.options.option_tables import BROKER_OPTIONS
from tests.models.consumer_clients import ClassicClient, ConsumerClient
from tests.models.group_world import SETTINGS, GroupWorld

MEMBERS_MAX = 6
TOPIC_IDS = {"t": bytes(14) + b"\x01", "u": bytes(14) + b"\x02", "tt": bytes(14) + b"\x03"}


def topic_image(name, topic_id, partitions):
    images = tuple(PartitionImage(number, 0, 0, (0,), (0,)) for number in range(partitions))
    return TopicImage(name, topic_id, images)


class ConsumerGroupModel(GroupWorld):
    """The rules are actions of members and changes of topics."""

    def __init__(self):
        super().__init__()
        self.next_id = 1
        # How often a topic of this name was deleted.
        self.lives = Counter()
        self.image = ClusterImage().with_topics(
            [
                topic_image(GROUP_OFFSETS_TOPIC, bytes(15) + b"\x07", 1),
                topic_image("t", self._topic_id("t"), 4),
            ]
        )

    @initialize(interval_ms=st.sampled_from([0, 1000]))
    def start(self, interval_ms):
        self.options = BROKER_OPTIONS.parse(
            {"group.consumer.assignment.interval.ms": str(interval_ms)}
        )
        self._run(self._restart())

    async def _calm_down(self):
        # Long enough for the sessions of those that have vanished.
        for _ in range(40):
            self._beat(self.clients)
            for client in self.clients:
                client.revoke()
            await self.clock.sleep(5)
        self._is_settled()

    def _is_settled(self):
        shard = self.coordinator.runtime.find(0)
        group = shard.consumers.get("g") or shard.group("g")
        if not self.clients:
            assert group is None or not group.members
            return
        assert set(group.members) == {client.member_id for client in self.clients}
        assert group.state.value == "Stable", group
        is_classic = all(isinstance(client, ClassicClient) for client in self.clients)
        assert (shard.group("g") is not None) == is_classic
        owned = [topic_partition for client in self.clients for topic_partition in client.owned]
        assert len(owned) == len(set(owned))
        assert set(owned) == self._readable()
        assert all(client.owned == client.target for client in self.clients)
        reads = {frozenset(self._topics_of(client)) for client in self.clients}
        assignors = {client.assignor for client in self.clients}
        if len(reads) == 1 and assignors == {None}:
            loads = [len(client.owned) for client in self.clients]
            assert max(loads) - min(loads) <= 1

    def _topics_of(self, client):
        """The names of the existing topics to which a client is subscribed."""
        names = [name for name in self.image.topics if name != GROUP_OFFSETS_TOPIC]
        if client.regex == "t.*":
            return [name for name in names if name.startswith("t")]
        return [name for name in names if name in (client.topics or ())]

    def _readable(self):
        return {
            (self.image.topics[name].topic_id, partition)
            for client in self.clients
            for name in self._topics_of(client)
            for partition in range(len(self.image.topics[name].partitions))
        }

    # -- the world

    def _beat(self, clients):
        for client in clients:
            client.beat(self.coordinator, self.clock.monotonic())

    @rule(rounds=st.integers(1, 3), revokes=st.booleans())
    def everyone_beats(self, rounds, revokes):
        async def beat():
            for _ in range(rounds):
                self._beat(self.clients)
                await self.clock.sleep(0.01)
                for client in self.clients if revokes else ():
                    client.revoke()

        self._run(beat())

    # -- topics

    @rule(name=st.sampled_from(sorted(TOPIC_IDS)), more=st.integers(1, 3))
    def topic_grows(self, name, more):
        old = self.image.topic(name)
        count = more if old is None else len(old.partitions) + more
        topic_id = self._topic_id(name) if old is None else old.topic_id
        self.image = self.image.with_topics([topic_image(name, topic_id, count)])

    def _topic_id(self, name):
        return TOPIC_IDS[name] + bytes([self.lives[name]])

    @rule(name=st.sampled_from(sorted(TOPIC_IDS)))
    def topic_is_deleted(self, name):
        self.image = self.image.with_topics((), [name])
        # Another one of that name is another topic.
        self.lives[name] += 1

    # -- members

    def _new(self, **fields):
        client = ConsumerClient(f"m{self.next_id}", **fields)
        self.next_id += 1
        self.clients.append(client)
        return client

    @precondition(lambda self: len(self.clients) < MEMBERS_MAX)
    @rule(
        topics=st.sampled_from([["t"], ["t"], ["t", "u"], ["u"], []]),
        assignor=st.sampled_from([None, None, "range"]),
    )
    def member_comes(self, topics, assignor):
        client = self._new(topics=topics, assignor=assignor)
        self._run(self._beats(client))

    @precondition(lambda self: len(self.clients) < MEMBERS_MAX)
    @rule(topics=st.sampled_from([["t"], ["t", "u"]]))
    def classic_member_comes(self, topics):
        client = ClassicClient(lambda: self.image, topics)
        self.clients.append(client)
        self._run(self._beats(client))

    @precondition(lambda self: len(self.clients) < MEMBERS_MAX)
    @rule()
    def member_with_regex_comes(self):
        self._run(self._beats(self._new(topics=None, regex="t.*")))

    @precondition(lambda self: len(self.clients) < MEMBERS_MAX)
    @rule(instance=st.sampled_from("xy"))
    def static_member_comes(self, instance):
        if all(client.instance != instance for client in self.clients):
            self._run(self._beats(self._new(instance=instance)))

    async def _beats(self, client):
        self._beat([client])

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), revokes=st.booleans())
    def member_beats(self, data, revokes):
        client = data.draw(st.sampled_from(self.clients))
        if revokes:
            client.revoke()
        self._run(self._beats(client))

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), topics=st.sampled_from([["t"], ["t", "u"], ["u"]]))
    def member_reads_others(self, data, topics):
        client = data.draw(st.sampled_from(self.clients))
        if client.regex is None:
            client.topics, client.is_unsure, client.must_join = topics, True, True
            self._run(self._beats(client))

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def member_vanishes(self, data):
        self.clients.remove(data.draw(st.sampled_from(self.clients)))

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def member_leaves(self, data):
        client = data.draw(st.sampled_from(self.clients))
        self.clients.remove(client)
        self._run(self._leaves(client, -1))

    @precondition(lambda self: any(client.instance for client in self.clients))
    @rule(data=st.data())
    def static_member_moves(self, data):
        """A static member leaves temporarily and returns with another member id."""
        static = [client for client in self.clients if client.instance]
        client = data.draw(st.sampled_from(static))
        self.clients.remove(client)
        self._run(self._leaves(client, -2))
        self._run(self._beats(self._new(instance=client.instance)))

    async def _leaves(self, client, epoch):
        client.leave(self.coordinator, epoch)

    # -- invariants

    @invariant()
    def no_partition_has_two_owners(self):
        now = self.clock.monotonic()
        owned = [
            topic_partition
            for client in self.clients
            if now < client.heard_at + client.session_ms / 1000
            for topic_partition in client.owned
        ]
        assert len(owned) == len(set(owned))

    @invariant()
    def memory_equals_the_log(self):
        shard = self._shard()
        if shard is not None:
            assert self._loaded().consumers._groups == shard.consumers._groups


ConsumerGroupModel.TestCase.settings = SETTINGS


class TestConsumerGroupModel(ConsumerGroupModel.TestCase):
    """Run the model with random members, topics, faults of the log, and times."""
