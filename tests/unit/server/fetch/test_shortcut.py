"""The fast path of a fetch returns the same bytes as the handler, or does not apply."""

import asyncio
import gc
import random
import struct
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.cluster.options.option_tables import BROKER_OPTIONS
from ottla.net.limits import Limits
from ottla.replication import leading
from ottla.server.fetch.shortcut import FetchShortcut
from ottla.server.handlers import fetch
from ottla.server.transport.apis import ROWS, ApiRow
from ottla.server.transport.dispatch import Dispatcher
from ottla.wire import headers, templates
from ottla.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from ottla.wire.records.control import ControlType, EndTransactionMarker, encode_marker
from tests.handlers.logs import OTHER, LogsBroker, batch, logs_broker
from tests.unit.net.conftest import Wire

LONG = (ApiRow(fetch, ends_with_connection=True),)
VERSIONS = range(fetch.MIN_VERSION, fetch.MAX_VERSION + 1)
FIRST_VERSION_WITH_SESSIONS = 7
FIRST_VERSION_WITH_EPOCHS = 9


class Desk:
    """A dispatcher on a simulated connection; counts the requests that reach the handler."""

    def __init__(self, broker: LogsBroker, rows: Any = ROWS) -> None:
        self.broker = broker
        self.wire = Wire(lambda connection, body: None, Limits())
        self.dispatcher = Dispatcher(broker, broker.tasks, rows)
        self.wire.connection._handle = self.dispatcher.frame
        self.long_count = 0
        for version in VERSIONS:
            route = self.dispatcher.add_route(int(fetch.API), version)
            assert route is not None
            route.handle = self._counted

    def abandon(self) -> None:
        """Lose the connection, and connect again."""
        self.wire.connection.connection_lost(None)
        self.wire = Wire(lambda connection, body: None, Limits())
        self.wire.connection._handle = self.dispatcher.frame

    def _counted(self, context: Any, request: Any) -> Any:
        self.long_count += 1
        return fetch.handle(context, request)

    def fetch(self, request: FetchRequest, version: int, correlation_id: int = 7) -> bytes:
        body = headers.encode_request(request, version, correlation_id, "client")
        return self.send(body)

    def send(self, body: bytes) -> bytes:
        self.begin(body)
        (response,) = self.wire.answers()
        return bytes(response)

    def begin(self, body: bytes) -> None:
        """Send a request that may have to wait."""
        self.wire.transport.sent = b""
        self.wire.receive(struct.pack(">i", len(body)) + body)

    async def end(self) -> bytes:
        """Return the response, which may take a while."""
        async with asyncio.timeout(20):
            while not self.wire.transport.sent:
                await asyncio.sleep(0)
        (response,) = self.wire.answers()
        return bytes(response)

    def ask(self, request: FetchRequest, version: int = 12) -> FetchResponse:
        return headers.decode_response(FetchResponse, version, self.fetch(request, version))[1]


def topic_id(broker: LogsBroker, name: str) -> bytes:
    known = broker.image.topic(name)
    return known.topic_id if known else bytes(15) + b"\x09"


def request(
    broker: LogsBroker, *wanted: tuple[str, int, int], epoch: int = -1, size: int = 1 << 20,
    **fields: Any,
) -> FetchRequest:  # fmt: skip
    """Return a request for (topic, partition, offset); `epoch` is the leader's."""
    topics = [
        FetchTopic(
            topic=name,
            topic_id=topic_id(broker, name),
            partitions=[
                FetchPartition(
                    partition=partition,
                    fetch_offset=offset,
                    current_leader_epoch=epoch,
                    partition_max_bytes=size,
                )
            ],
        )
        for name, partition, offset in wanted
    ]
    defaults = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 24}
    return FetchRequest(topics=topics, **(defaults | fields))


def fill(broker: LogsBroker, name: str, *sizes: int, number: int = 0) -> None:
    for size in sizes:
        broker.write(name, b"v" * size, number=number)


def begin_transaction(broker: LogsBroker, name: str) -> int:
    """Write a record in a transaction of a new producer, and return the producer."""
    partition = broker.partition(name)
    producer = partition.log.log_end_offset + 1
    fields = {"producer_id": producer, "producer_epoch": 0, "transactional": True}
    partition.append_as_leader(batch(b"no", base_sequence=0, **fields), acks=1)
    return producer


def abort(broker: LogsBroker, name: str, producer: int) -> None:
    """End the producer's transaction."""
    marker = encode_marker(
        EndTransactionMarker(ControlType.ABORT, 0),
        producer_id=producer,
        producer_epoch=0,
        timestamp=1000,
    )
    broker.partition(name).append_as_leader(marker, acks=1, from_client=False)


@pytest.mark.parametrize("version", VERSIONS)
async def test_fast_path_and_handler_answer_alike(broker: LogsBroker, version: int) -> None:
    """The responses agree for all name lengths, response sizes, offsets and leader epochs."""
    short, long = Desk(broker), Desk(broker, LONG)
    for name in ("t", "u" * 126):
        broker.create(name, partitions=2)
        for number in (0, 1):
            fill(broker, name, 1, 100, 20_000, 1, number=number)
            for isolation in (0, 1):
                for epoch in (-1, 3):
                    for offset in (0, 1, 2, 3, 1):
                        fetch_request = request(broker, (name, number, offset), epoch=epoch,
                                        isolation_level=isolation, rack_id="r")  # fmt: skip
                        assert short.fetch(fetch_request, version) == long.fetch(
                            fetch_request, version
                        )
    # The first request of a kind uses the handler: of two topics, partitions and leader epochs
    # each.
    assert short.long_count == (8 if version >= FIRST_VERSION_WITH_EPOCHS else 4)


async def test_nothing_remains_of_deleted_partitions(broker: LogsBroker) -> None:
    """Topics that are created, read by two racks and deleted leave no requests behind."""
    desk = Desk(broker)

    def known() -> int:
        return sum(type(item).__name__ == "Known" for item in gc.get_objects())

    gc.collect()
    before = known()
    for number in range(20):
        topic = f"topic-{number}"
        broker.create(topic)
        for rack in ("a", "b"):
            desk.fetch(request(broker, (topic, 0, 0), rack_id=rack), 13)
    assert known() == before + 40
    broker.replicas.stop_replicas(1, [(f"topic-{n}", 0) for n in range(20)], delete=True)
    gc.collect()
    assert known() == before


async def test_consumers_in_several_racks_take_the_fast_path_in_turn(broker: LogsBroker) -> None:
    """Requests that differ only behind the offset do not displace each other."""
    desk = Desk(broker)
    broker.create("t")
    fill(broker, "t", 1, 100)
    for offset in (0, 1, 0, 1):
        for rack in ("a", "b", "c"):
            desk.fetch(request(broker, ("t", 0, offset), rack_id=rack), 12)
    assert desk.long_count == 3


class Conversation:
    """The same random events and requests at two brokers, one of which has no fast path."""

    def __init__(
        self, seed: int, one: LogsBroker, two: LogsBroker, waits_ms: tuple[int, ...] = (0,)
    ) -> None:
        self.waits_ms = waits_ms
        self.dice = random.Random(seed)
        self.brokers = (one, two)
        self.desks = (Desk(one), Desk(two, LONG))
        self.version = self.dice.choice(VERSIONS)
        self.session, self.epoch = 0, -1
        self.number = self.answers = self.waits = 0
        self.producer = -1
        for broker in self.brokers:
            for name in ("t", "u"):
                broker.create(name, partitions=2)
                fill(broker, name, 1, 3000, 50)

    async def step(self) -> None:
        self.number += 1
        if self.dice.random() < 0.68:
            await self.ask()
        else:
            self.happen()

    def happen(self) -> None:
        """Let something else than a fetch happen."""
        events = (self.write, self.abort, self.elect, self.delete, self.limit, self.change)
        self.dice.choices(events, (15, 6, 2, 2, 2, 5))[0]()

    @property
    def is_leader(self) -> bool:
        return self.brokers[0].partition("t").is_leader

    def write(self) -> None:
        size = self.dice.choice((1, 100, 3000))
        for broker in self.brokers if self.is_leader else ():
            fill(broker, "t", size)

    def abort(self) -> None:
        """Abort the open transaction, or begin one."""
        producer, self.producer = self.producer, -1
        for broker in self.brokers if self.is_leader else ():
            if producer >= 0:
                abort(broker, "t", producer)
            else:
                self.producer = begin_transaction(broker, "t")

    def elect(self) -> None:
        leader = self.dice.choice((OTHER, 1, 1, 1)) if self.is_leader else 1
        for broker in self.brokers:
            broker.create("t", partitions=2, leader=leader, leader_epoch=4 + self.number)

    def delete(self) -> None:
        for broker in self.brokers if self.is_leader else ():
            leading.delete_records(broker.partition("t"), self.number // 100)

    def limit(self) -> None:
        value = self.dice.choice(("1024", "100000"))
        for broker in self.brokers:
            broker.options = BROKER_OPTIONS.parse({"fetch.max.bytes": value})

    def change(self) -> None:
        """Change the version, or begin or end a session."""
        if self.dice.random() < 0.3:
            self.version = self.dice.choice(VERSIONS)
        self.session, self.epoch = self.dice.choice(((0, -1), (0, 0), (0, 0), (self.session, -1)))

    def request(self) -> FetchRequest:
        dice, broker = self.dice, self.brokers[0]
        end = broker.partition("t").log.log_end_offset
        choices = (("t",), ("t",), ("t",), ("t",), ("t", "u"), ("u",), ("x",), ())
        names = ("t",) if self.epoch > 0 and dice.random() < 0.8 else dice.choice(choices)
        required = [(name, 0, max(0, dice.randint(end - 20, end + 1))) for name in names]
        return request(
            broker,
            *required,
            epoch=dice.choice((-1, -1, -1, -2, 3, broker.partition("t").leader_epoch)),
            size=dice.choice((0, 70, 2000, 1 << 20)),
            isolation_level=dice.choice((0, 0, 1, 1, 2)),
            min_bytes=dice.choice((0, 1, 500, 1 << 20)),
            max_bytes=dice.choice((0, 2000, 1 << 24)),
            session_id=self.session,
            session_epoch=self.epoch if dice.random() < 0.97 else self.epoch + 1,
            rack_id=dice.choice(("", "rack")),
            max_wait_ms=dice.choice(self.waits_ms),
            forgotten_topics_data=(
                _forgotten(broker)
                if dice.random() < 0.04 and self.version >= FIRST_VERSION_WITH_SESSIONS
                else []
            ),
        )

    async def ask(self) -> None:
        """Fetch from both; if they wait, something happens before the response."""
        requested, version = self.request(), self.version
        body = headers.encode_request(requested, version, self.number, "client")
        for desk in self.desks:
            desk.begin(body)
        waiting = {not desk.wire.transport.sent for desk in self.desks}
        assert len(waiting) == 1
        if waiting == {True}:
            self.waits += 1
            assert self.waiting() == [1, 1]
            if self.dice.random() < 0.7:
                self.happen()
            if self.dice.random() < 0.1:
                for desk in self.desks:
                    desk.abandon()
                await asyncio.sleep(0)
                assert self.waiting() == [0, 0]
                self.session, self.epoch = 0, -1
                return
        first, second = [await desk.end() for desk in self.desks]
        assert first == second
        assert self.waiting() == [0, 0]
        self.answers += 1
        response = headers.decode_response(FetchResponse, version, first)[1]
        if response.error_code or not response.session_id:
            self.session, self.epoch = 0, -1
        else:
            self.session, self.epoch = response.session_id, max(self.epoch, 0) + 1

    def waiting(self) -> list[int]:
        """Return how many fetches wait at each broker."""
        return [broker.replicas.delayed.waiting_counts["Fetch"] for broker in self.brokers]

    def told(self) -> list[list[tuple[int, ...]]]:
        """Return the sessions and the fetch counters of each broker."""
        return [
            [(len(broker.fetch_sessions),)]
            + [
                (partition.fetched_bytes, partition.fetches_count)
                for partition in broker.replicas.all_partitions()
            ]
            for broker in self.brokers
        ]


@pytest.mark.parametrize("seed", range(12))
async def test_random_conversations_are_answered_alike(seed: int) -> None:
    """Sessions, limits, new leaders, deleted records and aborted transactions do not matter."""
    async with logs_broker() as one, logs_broker() as two:
        conversation = Conversation(seed, one, two)
        for _ in range(400):
            await conversation.step()
        first, second = conversation.told()
        assert first == second
        short, long = conversation.desks
        # The fast path was used, but not for every request.
        assert long.long_count == conversation.answers > short.long_count + 20


@pytest.mark.parametrize("seed", range(12))
async def test_random_conversations_with_waiting_are_answered_alike(seed: int) -> None:
    """The same with fetches that wait for records, for the leader to change, and for nothing."""
    async with logs_broker() as one, logs_broker() as two:
        conversation = Conversation(seed, one, two, waits_ms=(0, 0, 3))
        for _ in range(400):
            await conversation.step()
        # How often a waiting fetch has read is not compared.
        first, second = [[item[0] for item in broker] for broker in conversation.told()]
        assert first == second
        short, long = conversation.desks
        assert long.long_count >= conversation.answers > short.long_count + 20
        assert conversation.waits > 10


def _forgotten(broker: LogsBroker) -> list[ForgottenTopic]:
    return [ForgottenTopic(topic="u", topic_id=topic_id(broker, "u"), partitions=[0])]


async def test_known_request_that_the_handler_answers_is_not_learned_again(
    broker: LogsBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A template is compiled, which takes longer than a fetch: once for each kind of request."""
    compiled = []
    original = templates.compile_template

    def counted(encoded: bytes, *arguments: Any, **options: Any) -> Any:
        compiled.append(encoded)
        return original(encoded, *arguments, **options)

    monkeypatch.setattr(templates, "compile_template", counted)
    broker.create("t")
    fill(broker, "t", 10)
    desk = Desk(broker)
    desk.ask(request(broker, ("t", 0, 0)))
    count = len(compiled)
    assert count > 0
    for _ in range(3):
        response = desk.ask(request(broker, ("t", 0, 99)))
        code = response.responses[0].partitions[0].error_code
        assert code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert desk.long_count == 4
    assert len(compiled) == count


async def test_a_session_that_the_consumer_does_not_know_ends_with_its_connection(
    broker: LogsBroker,
) -> None:
    """The connection is lost while the first fetch waits; a session that is known remains."""
    desk = Desk(broker)
    broker.create("t")
    for _ in range(2):
        waiting = request(broker, ("t", 0, 0), session_epoch=0, max_wait_ms=60_000)
        desk.begin(headers.encode_request(waiting, 13, 7, "client"))
        assert len(broker.fetch_sessions) == 1
        desk.abandon()
        await asyncio.sleep(0)
        assert len(broker.fetch_sessions) == 0
    desk.ask(request(broker, ("t", 0, 0), session_epoch=0), 13)
    desk.abandon()
    await asyncio.sleep(0)
    assert len(broker.fetch_sessions) == 1


async def test_session_of_one_partition_uses_the_fast_path(broker: LogsBroker) -> None:
    """The fast path advances the session epoch, and the handler continues the session."""
    desk = Desk(broker)
    broker.create("t")
    fill(broker, "t", 1, 1, 1)
    session = desk.ask(request(broker, ("t", 0, 0), session_epoch=0)).session_id
    desk.ask(request(broker, ("t", 0, 0), session_id=session, session_epoch=1))
    count = desk.long_count
    for epoch in (2, 3, 4):
        fetch_request = request(broker, ("t", 0, 1), session_id=session, session_epoch=epoch)
        response = desk.ask(fetch_request)
        assert (response.error_code, response.session_id) == (0, session)
        assert response.responses[0].partitions[0].records
    assert desk.long_count == count
    # First a fetch without changes since the last response, then one with a stale epoch.
    fetch_request = request(broker, session_id=session, session_epoch=5)
    assert desk.ask(fetch_request).responses[0].partitions[0].records
    assert desk.ask(fetch_request).error_code != 0


async def test_fast_path_asks_for_the_right_to_the_topic(broker: LogsBroker) -> None:
    """A request that one sender has taught is the handler's for a sender without the right."""
    desk = Desk(broker)
    broker.create("t")
    fill(broker, "t", 1)
    rights = {"t"}
    for version in (12, 13):
        route = desk.dispatcher.add_route(int(fetch.API), version)
        assert route is not None
        assert isinstance(route.shortcut, FetchShortcut)
        route.handle = desk._counted
        route.shortcut._may = lambda _, topic: topic in rights
        desk.long_count = 0
        for _ in range(3):
            desk.ask(request(broker, ("t", 0, 0)), version)
        assert desk.long_count == 1
        rights.clear()
        desk.ask(request(broker, ("t", 0, 0)), version)
        assert desk.long_count == 2
        rights.add("t")


async def test_session_is_updated_by_the_fast_path(broker: LogsBroker) -> None:
    """Unchanged partitions are not mentioned, and the leader epoch of the last request is kept."""
    desk = Desk(broker)
    broker.create("t")
    fill(broker, "t", 1)
    for epoch in (-1, 3):
        desk.ask(request(broker, ("t", 0, 0), epoch=epoch))
    session = desk.ask(request(broker, ("t", 0, 0), session_epoch=0)).session_id
    fill(broker, "t", 1)
    count = desk.long_count
    fields = {"session_id": session}
    assert desk.ask(request(broker, ("t", 0, 0), session_epoch=1, **fields)).responses
    assert desk.long_count == count
    assert not desk.ask(request(broker, ("t", 0, 2), session_epoch=2, **fields)).responses
    assert desk.ask(request(broker, ("t", 0, 0), session_epoch=3, epoch=3, **fields)).responses
    broker.create("t", leader_epoch=4)
    (response,) = desk.ask(request(broker, session_id=session, session_epoch=4)).responses
    assert response.partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH


async def test_fetch_below_min_bytes_waits(broker: LogsBroker) -> None:
    """Below `min_bytes` the handler delays the fetch until more records arrive."""
    desk = Desk(broker)
    broker.create("t")
    fill(broker, "t", 1)
    desk.ask(request(broker, ("t", 0, 0)))
    body = request(broker, ("t", 0, 0), min_bytes=200, max_wait_ms=10_000)
    wire = desk.wire
    wire.transport.sent = b""
    sent = headers.encode_request(body, 12, 7, "client")
    wire.receive(struct.pack(">i", len(sent)) + sent)
    assert not wire.answers()
    fill(broker, "t", 200)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(wire.answers()) == 1


async def test_changed_request_goes_to_the_handler(broker: LogsBroker) -> None:
    """Two partitions in a session, a follower or a tagged field go to the handler."""
    desk = Desk(broker)
    broker.create("t", partitions=2)
    fill(broker, "t", 1)
    fill(broker, "t", 1, number=1)
    usual = request(broker, ("t", 0, 0))
    for version in (12, 17):
        desk.fetch(usual, version)
        count = desk.long_count
        desk.fetch(usual, version)
        assert desk.long_count == count
    follower = request(broker, ("t", 0, 0), replica_id=OTHER)
    assert desk.ask(follower).error_code != 0
    follower = request(broker, ("t", 0, 0), replica_state=ReplicaState(replica_id=OTHER))
    assert desk.ask(follower, 17).error_code != 0
    named = request(broker, ("t", 0, 0))
    named.topics[0].partitions[0].replica_directory_id = bytes(15) + b"\x01"
    count = desk.long_count
    assert desk.ask(named, 17).responses[0].partitions[0].records
    assert desk.long_count == count + 1
    session = desk.ask(request(broker, ("t", 0, 0), ("t", 1, 0), session_epoch=0)).session_id
    response = desk.ask(request(broker, ("t", 0, 0), session_id=session, session_epoch=1))
    assert sum(len(topic.partitions) for topic in response.responses) == 2


async def test_truncated_request_goes_to_the_handler(broker: LogsBroker) -> None:
    """A request that is cut at any byte closes the connection."""
    desk = Desk(broker)
    broker.create("t")
    fill(broker, "t", 1)
    body = headers.encode_request(request(broker, ("t", 0, 0)), 12, 7, "client")
    expected = desk.send(body)
    assert desk.send(body) == expected
    assert desk.long_count == 1
    for end in range(len(body)):
        cut = Desk(broker)
        cut.send(body)
        cut.wire.transport.sent = b""
        cut.wire.receive(struct.pack(">i", end) + body[:end] if end else b"")
        assert cut.wire.transport.is_closed or not cut.wire.transport.sent
