"""Groups of the consumer protocol under members that come, go and vanish, topics that change, and a
log that stalls and loses.

What must hold whatever happens:

* no partition has two owners among members that are still within their session
* memory says what the log says: a coordinator that loads the log has the same groups
* left alone, every group becomes stable: complete, fair, and every member has what it shall have

Members of the classic protocol take part, so groups change their protocol back and forth.
"""

import os
from collections import Counter

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ottla.base.errors import ErrorCode
from ottla.base.rng import SeededRng
from ottla.base.tasks import Tasks
from ottla.cluster.image import ClusterImage, PartitionImage, TopicImage
from ottla.cluster.options import BROKER_OPTIONS
from ottla.coordinators.group.service import OFFSETS_TOPIC, GroupCoordinator
from ottla.coordinators.group.shard import GroupShard
from ottla.coordinators.loading import Loader
from ottla.testing.partitions import MemoryPartitions
from ottla.testing.sim.loop import SimLoop, VirtualClock
from tests.models.consumer_clients import ClassicClient, ConsumerClient

MEMBERS_MAX = 6
TOPIC_IDS = {"t": bytes(14) + b"\x01", "u": bytes(14) + b"\x02", "tt": bytes(14) + b"\x03"}


def topic_image(name, topic_id, partitions):
    images = tuple(PartitionImage(number, 0, 0, (0,), (0,)) for number in range(partitions))
    return TopicImage(name, topic_id, images)


class ConsumerGroupModel(RuleBasedStateMachine):
    """Rules are what members, topics, the log and time may do."""

    def __init__(self):
        super().__init__()
        self.loop = SimLoop(SeededRng(1))
        self.clock = VirtualClock(self.loop)
        self.rng = SeededRng(2)
        self.log = MemoryPartitions()
        self.failures = []
        self.tasks = Tasks(lambda name, error: self.failures.append((name, error)))
        self.clients = []
        self.next_id = 1
        self.epoch = 1
        # How often a topic of this name was deleted.
        self.lives = Counter()
        self.image = ClusterImage().with_topics(
            [
                topic_image(OFFSETS_TOPIC, bytes(15) + b"\x07", 1),
                topic_image("t", self._topic_id("t"), 4),
            ]
        )

    @initialize(interval_ms=st.sampled_from([0, 1000]))
    def start(self, interval_ms):
        self.options = BROKER_OPTIONS.parse(
            {"group.consumer.assignment.interval.ms": str(interval_ms)}
        )
        self._run(self._restart())

    def teardown(self):
        self._run(self._end())
        self.loop.raise_failures()
        self.loop.close()
        assert self.failures == []

    async def _end(self):
        self.log.holds_commits, self.log.refuses = False, None
        self.log.commit()
        # Long enough for the sessions of those that have vanished.
        for _ in range(40):
            self._beat(self.clients)
            for client in self.clients:
                client.revoke()
            await self.clock.sleep(5)
        self._is_settled()
        self.coordinator.close()
        await self.tasks.close()

    def _is_settled(self):
        shard = self.coordinator._runtime.find(0)
        group = shard.consumers.get("g") or shard.group("g")
        if not self.clients:
            assert group is None or not group.members
            return
        assert set(group.members) == {client.member_id for client in self.clients}
        assert group.state.value == "Stable", group
        is_classic = all(isinstance(client, ClassicClient) for client in self.clients)
        assert (shard.group("g") is not None) == is_classic
        owned = [place for client in self.clients for place in client.owned]
        assert len(owned) == len(set(owned))
        assert set(owned) == self._readable()
        assert all(client.owned == client.target for client in self.clients)
        reads = {frozenset(self._topics_of(client)) for client in self.clients}
        asked = {client.assignor for client in self.clients}
        if len(reads) == 1 and asked == {None}:
            loads = [len(client.owned) for client in self.clients]
            assert max(loads) - min(loads) <= 1

    def _topics_of(self, client):
        """The names of the topics that a client reads and that exist."""
        names = [name for name in self.image.topics if name != OFFSETS_TOPIC]
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

    def _run(self, work):
        self.loop.run(self._then_settle(work))

    async def _then_settle(self, work):
        await work
        await self.clock.sleep(0.001)

    async def _restart(self):
        if self.epoch > 1:
            self.coordinator.close()
        self.epoch += 2
        self.coordinator = GroupCoordinator(
            writer=self.log,
            clock=self.clock,
            rng=self.rng,
            tasks=self.tasks,
            options=lambda: self.options,
            image=lambda: self.image,
        )
        self.coordinator.load(0, self.epoch)

    def _beat(self, clients):
        for client in clients:
            client.beat(self.coordinator, self.clock.monotonic())

    @rule(seconds=st.sampled_from([0.01, 1, 6, 46]))
    def time_passes(self, seconds):
        self._run(self.clock.sleep(seconds))

    @rule(rounds=st.integers(1, 3), revokes=st.booleans())
    def everyone_beats(self, rounds, revokes):
        async def beat():
            for _ in range(rounds):
                self._beat(self.clients)
                await self.clock.sleep(0.01)
                for client in self.clients if revokes else ():
                    client.revoke()

        self._run(beat())

    @rule()
    def log_stalls(self):
        self.log.holds_commits = True

    @rule()
    def log_goes_on(self):
        async def go_on():
            self.log.holds_commits = False
            self.log.commit()

        self._run(go_on())

    @rule()
    def log_loses_its_tail(self):
        async def lose():
            self.log.holds_commits = False
            self.log.lose()

        self._run(lose())

    @rule(code=st.sampled_from([None, None, ErrorCode.NOT_ENOUGH_REPLICAS]))
    def log_refuses(self, code):
        self.log.refuses = code

    @rule()
    def broker_restarts(self):
        async def restart():
            # A broker that dies loses what was not committed.
            self.log.lose()
            await self._restart()

        self._run(restart())

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
        """It goes away for a while and comes back as another member."""
        static = [client for client in self.clients if client.instance]
        client = data.draw(st.sampled_from(static))
        self.clients.remove(client)
        self._run(self._leaves(client, -2))
        self._run(self._beats(self._new(instance=client.instance)))

    async def _leaves(self, client, epoch):
        client.leave(self.coordinator, epoch)

    # -- what must hold

    @invariant()
    def no_partition_has_two_owners(self):
        now = self.clock.monotonic()
        owned = [
            place
            for client in self.clients
            if now < client.heard_at + client.session_ms / 1000
            for place in client.owned
        ]
        assert len(owned) == len(set(owned))

    @invariant()
    def memory_says_what_the_log_says(self):
        if self.epoch == 1:
            return
        shard = self.coordinator._runtime.find(0)
        if isinstance(shard, ErrorCode):
            return
        loaded = GroupShard(None, self.clock, lambda: None)
        loader = Loader(self.log, self.clock, chunk_bytes=1000, is_wanted=lambda: True)
        self.loop.run(loader.load(OFFSETS_TOPIC, 0, loaded))
        assert loaded.consumers._groups == shard.consumers._groups


ConsumerGroupModel.TestCase.settings = settings(
    max_examples=int(os.environ.get("OTTLA_MODEL_EXAMPLES", "40")),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


class TestConsumerGroupModel(ConsumerGroupModel.TestCase):
    """Groups keep their promises, whatever members, topics, log and time do."""
