"""The fast path of followers' fetches has the effects of the handler, or does not apply."""

import asyncio
import random
from typing import Any

import pytest

from ottla.cluster.image import BrokerImage
from ottla.replication import leading
from ottla.security.broker_proof import ProofToPeer
from ottla.server.transport.apis import ROWS
from ottla.wire import headers
from ottla.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from ottla.wire.records import batch as batches
from tests.handlers.logs import NODE, OTHER, LogsBroker, logs_broker
from tests.unit.server.fetch.test_shortcut import LONG, Desk, fill

THIRD = 3
PARTITIONS = 3
FOREVER_MS = 600_000


def desk_of(broker: LogsBroker, rows: Any = ROWS, peer: int = OTHER) -> Desk:
    """Return a connection of a broker that has proven its id."""
    broker.image = broker.image.with_brokers(
        [*broker.image.brokers.values(), BrokerImage(THIRD, "b3", 9094)]
    )
    desk = Desk(broker, rows)
    identify(desk, peer)
    return desk


def identify(desk: Desk, peer: int = OTHER) -> None:
    proof = ProofToPeer({1: b""}, b"")
    proof.broker_id = peer
    desk.wire.connection.identity = proof


async def turn() -> None:
    for _ in range(6):
        await asyncio.sleep(0)


def expire(broker: LogsBroker) -> None:
    """Let the time of all waiting fetches be over."""
    for partition in broker.replicas.all_partitions():
        for waiter in list(partition.waiters):
            waiter.finish()
    for session in broker.follower_sessions:
        session.finish()


class Replication:
    """The same random events, and fetches of the same follower, at two leaders.

    The first has the fast path.
    """

    def __init__(self, seed: int, one: LogsBroker, two: LogsBroker) -> None:
        self.dice = random.Random(seed)
        self.brokers = (one, two)
        self.leader_epoch = 3
        for broker in self.brokers:
            broker.create("t", partitions=PARTITIONS, replicas=(NODE, OTHER, THIRD))
        self.desks = (desk_of(one), desk_of(two, LONG))
        self.ends = [0] * PARTITIONS
        self.epochs = [-1] * PARTITIONS
        self.moved = set(range(PARTITIONS))
        self.session, self.epoch = 0, 0
        self.waits = self.responses = 0

    # -- events at both leaders -------------------------------------------------------------------

    def happen(self) -> None:
        events = (self.write, self.third, self.elect, self.delete, self.limit)
        self.dice.choices(events, (14, 6, 1, 1, 1))[0]()

    def write(self) -> None:
        number = self.dice.choice((0, 0, 0, 1, 2))
        size = self.dice.choice((1, 100, 3000))
        for broker in self.brokers:
            fill(broker, "t", *[size] * self.dice.choice((1, 1, 1)), number=number)

    def third(self) -> None:
        """Another follower fetches, which may move the high watermark."""
        number = self.dice.choice((0, 0, 1))
        for broker in self.brokers:
            partition = broker.partition("t", number)
            partition.follower_fetched(THIRD, partition.log.log_end_offset, 0)

    def elect(self) -> None:
        self.leader_epoch += 1
        for broker in self.brokers:
            broker.create(
                "t",
                partitions=PARTITIONS,
                replicas=(NODE, OTHER, THIRD),
                leader_epoch=self.leader_epoch,
            )
        self.moved = set(range(PARTITIONS))

    def delete(self) -> None:
        for broker in self.brokers:
            leading.delete_records(broker.partition("t"), -1)

    def limit(self) -> None:
        """Throttle the replicas of a leader, or no longer."""
        is_throttled = self.dice.random() < 0.3
        for broker in self.brokers:
            partition = broker.partition("t")
            throttled = partition.throttled._replace(as_leader=is_throttled)
            partition.settings_changed(1, throttled)

    # -- the follower -----------------------------------------------------------------------------

    def request(self) -> FetchRequest:
        dice = self.dice
        if not self.epoch:
            self.moved = set(range(PARTITIONS))
        elif dice.random() < 0.03:
            self.moved.add(dice.randrange(PARTITIONS))
        partitions = [
            FetchPartition(
                partition=number,
                current_leader_epoch=self.leader_epoch - (dice.random() < 0.02),
                fetch_offset=self.ends[number] + 5 * (dice.random() < 0.01),
                last_fetched_epoch=self.epochs[number] + (dice.random() < 0.01),
                partition_max_bytes=dice.choice((1 << 20, 1 << 20, 100)),
                log_start_offset=0,
            )
            for number in sorted(self.moved)
        ]
        topic = FetchTopic(topic_id=self.brokers[0].partition("t").topic_id, partitions=partitions)
        forgotten = [ForgottenTopic(topic_id=topic.topic_id, partitions=[2])]
        return FetchRequest(
            replica_state=ReplicaState(replica_id=OTHER, replica_epoch=4),
            max_wait_ms=dice.choice((FOREVER_MS, FOREVER_MS, FOREVER_MS, 0)),
            min_bytes=dice.choice((1, 1, 1, 200)),
            # Enough for all partitions: their order does not decide which of them is served.
            max_bytes=1 << 24,
            session_id=self.session,
            session_epoch=self.epoch + (dice.random() < 0.01),
            topics=[topic] if partitions else [],
            forgotten_topics_data=forgotten if self.epoch and dice.random() < 0.01 else [],
        )

    async def fetch(self) -> None:
        """Fetch from both; if they wait, something happens before the response."""
        requested, version = self.request(), self.dice.choice((17, 17, 17, 15))
        self.moved = set()
        for desk in self.desks:
            desk.begin(headers.encode_request(requested, version, self.responses, "follower"))
        for _ in range(5):
            await turn()
            self.compare()
            if self.desks[0].wire.transport.sent:
                break
            self.waits += 1
            if self.dice.random() < 0.03:
                for desk in self.desks:
                    desk.abandon()
                    identify(desk)
                await turn()
                self.epoch = 0
                self.compare()
                return
            for _ in range(self.dice.choice((1, 1, 2))):
                self.happen()
        else:
            for broker in self.brokers:
                expire(broker)
            await turn()
            self.compare()
        (response,) = self.desks[0].wire.answers()
        self.receive(headers.decode_response(FetchResponse, version, response)[1])

    def receive(self, response: FetchResponse) -> None:
        self.responses += 1
        if response.error_code or not response.session_id:
            # The next request replaces the session.
            self.epoch = 0
            return
        self.session, self.epoch = response.session_id, self.epoch + 1
        for topic in response.responses:
            for data in topic.partitions:
                number = data.partition_index
                if data.records and not data.error_code:
                    records = bytes(data.records)
                    self.ends[number] = batches.end_offset(records)
                    log = self.brokers[0].partition("t", number).log
                    self.epochs[number] = log.epochs.epoch_of(self.ends[number] - 1)
                    self.moved.add(number)
                elif data.error_code or data.diverging_epoch is not None:
                    log = self.brokers[0].partition("t", number).log
                    self.ends[number] = log.log_end_offset
                    self.epochs[number] = log.epochs.latest
                    self.moved.add(number)

    def compare(self) -> None:
        """Check that both leaders have sent the same, and know the same about their followers.

        The order of the partitions in a response may differ.
        """
        first, second = [self.content(desk) for desk in self.desks]
        assert first == second
        one, two = [self.state(broker) for broker in self.brokers]
        assert one == two

    def content(self, desk: Desk) -> object:
        """Return the responses that a leader has sent."""
        responses = [
            headers.decode_response(FetchResponse, 17, answer) for answer in desk.wire.answers()
        ]
        return [
            (correlation_id, response.error_code, response.session_id, _rows(response))
            for correlation_id, response in responses
        ]

    def state(self, broker: LogsBroker) -> object:
        sessions = broker.follower_sessions
        return (
            broker.replicas.delayed.waiting_counts,
            broker.replicas.replication.sent_bytes,
            [
                (partition.high_watermark, partition.isr and partition.isr.followers)
                for partition in broker.replicas.all_partitions()
            ],
            [
                (session.id, session.epoch, key[1], fetch.offset, fetch.log_start_offset)
                for session in sessions
                for key, fetch in sorted(session.partitions.items())
            ],
            [
                (fetch.leader_epoch, fetch.last_fetched_epoch, fetch.sent_high_watermark)
                for session in sessions
                for key, fetch in sorted(session.partitions.items())
            ],
        )


def _rows(response: FetchResponse) -> list[tuple[object, ...]]:
    rows = [data for topic in response.responses for data in topic.partitions]
    return [
        (
            *(data.partition_index, data.error_code, data.high_watermark, data.log_start_offset),
            *(bytes(data.records or b""), data.diverging_epoch and data.diverging_epoch.epoch),
        )
        for data in sorted(rows, key=lambda data: data.partition_index)
    ]


@pytest.mark.parametrize("seed", range(10))
async def test_random_replication_has_the_same_effects_without_the_fast_path(seed: int) -> None:
    """Elections, deleted records, throttles, errors and lost connections do not matter."""
    async with logs_broker() as one, logs_broker() as two:
        replication = Replication(seed, one, two)
        for _ in range(250):
            await replication.fetch()
            if replication.dice.random() < 0.4:
                replication.happen()
        short, long = replication.desks
        # The fast path was used, but not for every request.
        assert 50 < short.long_count < long.long_count - 50
        assert replication.waits > 100
