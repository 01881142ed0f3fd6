"""The fast path of a produce returns the same bytes as the handler, or does not apply."""

import asyncio
import gc
import random
import struct
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.net.limits import Limits
from ottla.server.handlers import produce
from ottla.server.produce.shortcut import ProduceShortcut
from ottla.server.transport.apis import ROWS, ApiRow
from ottla.server.transport.dispatch import Dispatcher
from ottla.wire import headers, templates
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.wire.records.records import Record, encode_batch
from tests.handlers.logs import OTHER, LogsBroker, batch, logs_broker
from tests.unit.net.conftest import Wire

LONG = (ApiRow(produce),)
VERSIONS = range(produce.MIN_VERSION, produce.MAX_VERSION + 1)


class Desk:
    """A dispatcher on a simulated connection; counts the calls of the handler."""

    def __init__(self, broker: LogsBroker, rows: Any = ROWS) -> None:
        self.broker = broker
        self.long_count = 0
        self.dispatcher = Dispatcher(broker, broker.tasks, rows)
        for version in VERSIONS:
            route = self.dispatcher.add_route(int(produce.API), version)
            assert route is not None
            route.handle = self._counted
        self.connect()

    def connect(self) -> None:
        self.wire = Wire(lambda connection, body: None, Limits())
        self.wire.connection._handle = self.dispatcher.frame

    def _counted(self, context: Any, request: Any) -> Any:
        self.long_count += 1
        return produce.handle(context, request)

    def send(self, request: ProduceRequest, version: int, correlation_id: int = 7) -> None:
        self.wire.transport.sent = b""
        body = headers.encode_request(request, version, correlation_id, "client")
        self.wire.receive(struct.pack(">i", len(body)) + body)

    def produce(self, request: ProduceRequest, version: int, correlation_id: int = 7) -> bytes:
        self.send(request, version, correlation_id)
        (response,) = self.wire.answers()
        return bytes(response)

    async def outcome(self, is_answered: bool) -> tuple[list[bytes], bool]:
        """Return the responses, after a wait if needed, and whether the connection was closed."""
        async with asyncio.timeout(20):
            while is_answered and not (self.wire.transport.sent or self.wire.transport.is_closed):
                await asyncio.sleep(0)
        result = self.wire.answers(), self.wire.transport.is_closed
        if self.wire.transport.is_closed:
            self.connect()
        return result

    def code(self, request: ProduceRequest, version: int = 9) -> int:
        _, response = headers.decode_response(
            ProduceResponse, version, self.produce(request, version)
        )
        return int(response.responses[0].partition_responses[0].error_code)


def request(
    broker: LogsBroker, records: Any, *, topic: str = "t", partition: int = 0, **fields: Any
) -> ProduceRequest:
    known = broker.image.topic(topic)
    data = TopicProduceData(
        name=topic,
        topic_id=known.topic_id if known else bytes(16),
        partition_data=[PartitionProduceData(index=partition, records=records)],
    )
    return ProduceRequest(**{"acks": 1, "timeout_ms": 500, **fields}, topic_data=[data])


@pytest.mark.parametrize("version", VERSIONS)
async def test_fast_path_and_handler_answer_alike(broker: LogsBroker, version: int) -> None:
    """The responses agree for names, sizes and partitions of any length; only the offsets differ."""
    short = Desk(broker)
    responses: dict[str, list[bytes]] = {}
    for name in ("short", "long"):
        topic = "x" * 20 + name.ljust(5, "-")
        broker.create(topic, partitions=2)
        desk = short if name == "short" else Desk(broker, LONG)
        responses[name] = []
        for number, size in enumerate((1, 100, 100, 20_000, 300_000, 1)):
            records = batch(b"v" * size, b"w")
            for partition in (0, 1):
                message = request(broker, records, topic=topic, partition=partition, acks=-1)
                responses[name].append(desk.produce(message, version, correlation_id=number))
        for partition in (0, 1):
            assert broker.partition(topic, partition).log.log_end_offset == 12
    ids = [broker.image.topic("x" * 20 + name.ljust(5, "-")) for name in ("short", "long")]
    assert ids[0] and ids[1]
    for first, second in zip(responses["short"], responses["long"], strict=True):
        as_long = first.replace(b"short", b"long-").replace(ids[0].topic_id, ids[1].topic_id)
        assert as_long == second
    # The first of a kind teaches.
    assert short.long_count == 2


async def test_topics_and_acks_are_distinguished(broker: LogsBroker) -> None:
    """The cached meaning of one request is not used for another."""
    desk = Desk(broker)
    for name in ("t", "u", "tt", "a" * 200):
        broker.create(name, partitions=3)
    for _ in range(2):
        for name in ("t", "u", "tt", "a" * 200):
            for partition in range(3):
                for acks in (1, -1):
                    message = request(
                        broker, batch(b"v"), topic=name, partition=partition, acks=acks
                    )
                    assert desk.code(message) == 0
    for name in ("t", "u", "tt", "a" * 200):
        for partition in range(3):
            assert broker.partition(name, partition).log.log_end_offset == 4


async def test_invalid_requests_go_to_the_handler(broker: LogsBroker) -> None:
    """A damaged batch, a deleted topic or a transactional batch goes to the handler, and appends
    nothing.
    """
    desk = Desk(broker)
    broker.create("t")
    for _ in range(2):
        assert desk.code(request(broker, batch(b"v"))) == 0
    assert desk.long_count == 1
    damaged = bytearray(batch(b"v"))
    damaged[-1] ^= 1
    assert desk.code(request(broker, damaged)) == ErrorCode.CORRUPT_MESSAGE
    assert desk.code(request(broker, b"")) == ErrorCode.INVALID_RECORD
    assert desk.code(request(broker, bytes(70))) != 0
    transactional = encode_batch([Record(None, b"v")], producer_id=5, producer_epoch=0,
                                 base_sequence=0, transactional=True)  # fmt: skip
    count = desk.long_count
    desk.code(request(broker, transactional))
    assert desk.long_count == count + 1
    broker.replicas.stop_replicas(1, [("t", 0)], delete=True)
    assert desk.code(request(broker, batch(b"v"))) != 0


async def test_nothing_remains_of_deleted_partitions(broker: LogsBroker) -> None:
    """Topics that are created, written and deleted all the time leave no requests behind."""
    desk = Desk(broker)

    def known() -> int:
        return sum(type(item).__name__ == "_Known" for item in gc.get_objects())

    gc.collect()
    before = known()
    for number in range(20):
        topic = f"topic-{number}"
        broker.create(topic, partitions=2)
        for partition in (0, 1):
            message = request(broker, batch(b"v"), topic=topic, partition=partition)
            assert desk.code(message) == 0
    assert known() == before + 40
    keys = [(f"topic-{number}", partition) for number in range(20) for partition in (0, 1)]
    broker.replicas.stop_replicas(1, keys, delete=True)
    gc.collect()
    assert known() == before


async def test_known_request_that_the_handler_answers_is_not_learned_again(
    broker: LogsBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A template is compiled, which takes longer than a produce: once for each kind of request."""
    compiled = []
    original = templates.compile_template

    def counted(encoded: bytes, *arguments: Any, **options: Any) -> Any:
        compiled.append(encoded)
        return original(encoded, *arguments, **options)

    monkeypatch.setattr(templates, "compile_template", counted)
    monkeypatch.setattr(ProduceShortcut, "answer", lambda *_: False)
    broker.create("t")
    desk = Desk(broker)
    for _ in range(3):
        assert desk.code(request(broker, batch(b"a"))) == ErrorCode.NONE
    assert desk.long_count == 3
    assert len(compiled) == 1


async def test_duplicates_are_answered_alike(broker: LogsBroker) -> None:
    """A duplicate of an idempotent producer gets its first response again."""
    desk = Desk(broker)
    broker.create("t")
    responses = []
    for sequence in (0, 1, 1):
        records = encode_batch(
            [Record(None, b"v")], producer_id=5, producer_epoch=0, base_sequence=sequence
        )
        responses.append(desk.produce(request(broker, bytes(records)), 9))
    assert responses[1] == responses[2] != responses[0]
    assert broker.partition("t").log.log_end_offset == 2
    assert desk.long_count == 1


async def test_acks_all_waits_for_followers(broker: LogsBroker) -> None:
    """With followers in sync, the append does not complete acks=all."""
    desk = Desk(broker)
    broker.create("t")
    for _ in range(2):
        assert desk.code(request(broker, batch(b"v"), acks=-1)) == 0
    broker.create("t", replicas=(1, 2), leader_epoch=4)
    desk.send(request(broker, batch(b"v"), acks=-1), 9)
    assert desk.wire.answers() == []
    assert broker.partition("t").log.log_end_offset == 3


OURS, BOTH = (1,), (1, OTHER)
SETTINGS: tuple[dict[str, str], ...] = (
    {"max.message.bytes": "300"},
    {"max.message.bytes": "1000000"},
    {"message.timestamp.type": "LogAppendTime"},
    {"message.timestamp.type": "CreateTime"},
    {"compression.type": "gzip"},
    {"compression.type": "producer"},
    {"min.insync.replicas": "2"},
    {"min.insync.replicas": "1"},
    {"flush.on.ack": "true"},
    {"flush.on.ack": "false"},
    {"cleanup.policy": "compact"},
    {"cleanup.policy": "delete"},
)


class Conversation:
    """The same random events and requests at two brokers, one of which has no fast path."""

    def __init__(self, seed: int, one: LogsBroker, two: LogsBroker) -> None:
        self.dice = random.Random(seed)
        self.brokers = (one, two)
        self.desks = (Desk(one), Desk(two, LONG))
        self.version = self.dice.choice(VERSIONS)
        self.epoch = 3
        self.sequences: dict[str, int] = {}
        self.codes: set[int] = set()
        self.asked = 0
        for broker in self.brokers:
            for name in ("t", "u", "__consumer_offsets"):
                broker.create(name, partitions=2)

    async def step(self) -> None:
        event = self.dice.random()
        if event < 0.06:
            self.dice.choices((self.elect, self.set, self.delete), (4, 6, 1))[0]()
        elif event < 0.15:
            self.calm()
        if self.dice.random() < 0.02:
            self.version = self.dice.choice(VERSIONS)
        await self.ask()

    def elect(self) -> None:
        self.epoch += 1
        leader = self.dice.choice((1, OTHER))
        for broker in self.brokers:
            broker.create("t", partitions=2, leader=leader, leader_epoch=self.epoch, replicas=BOTH)

    def set(self) -> None:
        setting = self.dice.choice(SETTINGS)
        for broker in self.brokers:
            broker.topic_settings["t"] |= setting
            broker.replicas.update_configs("t")

    def calm(self) -> None:
        """Become the leader without followers, with default settings."""
        self.epoch += 1
        for broker in self.brokers:
            broker.topic_settings["t"] = {}
            broker.replicas.update_configs("t")
            broker.create("t", partitions=2, leader_epoch=self.epoch)

    def delete(self) -> None:
        """Delete the topic; a new one of the same name has another id."""
        self.epoch += 1
        self.sequences.clear()
        for broker in self.brokers:
            broker.replicas.stop_replicas(1, [("t", 0), ("t", 1)], delete=True)
            broker.image = broker.image.with_topics(deleted=["t"])
            broker.topic_settings.pop("t", None)
            broker.create("t", partitions=2, leader_epoch=self.epoch)

    def fail(self) -> None:
        """Make the disk fail at the next record of a partition and at all later ones."""
        for broker in self.brokers:
            broker.files.faults.fail("append", path="/t-0/")

    def records(self) -> bytes:
        """Return a batch, or damaged bytes."""
        dice = self.dice
        value = b"v" * dice.choice((1, 1, 100, 400))
        fields: dict[str, Any] = {}
        if dice.random() < 0.4:
            known = self.sequences.get("t", 0)
            sequence = max(0, known + dice.choice((0, 0, 0, -1, 1)))
            fields = {"producer_id": 5, "producer_epoch": 0, "base_sequence": sequence}
            fields["transactional"] = dice.random() < 0.1
        fields["compression"] = dice.choice((0, 0, 0, 1, 4))
        key = dice.choice((None, b"k", b"k", b"k"))
        data = bytearray(encode_batch([Record(key, value, (), 1000)], **fields))
        spoilt = dice.random()
        if spoilt < 0.03:
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        elif spoilt < 0.05:
            data = data[: dice.randrange(len(data))]
        elif spoilt < 0.07:
            data = data + data
        elif spoilt < 0.09:
            data += bytes(dice.randrange(1, 100))
        return bytes(data)

    def request(self) -> tuple[ProduceRequest, bool]:
        """Return a request, and whether it has a response."""
        dice = self.dice
        acks = dice.choice((1,) * 8 + (-1,) * 8 + (0, 2))
        topic = dice.choice(("t",) * 20 + ("u", "x", "__consumer_offsets"))
        produce_request = request(
            self.brokers[0],
            dice.choice((self.records(),) * 30 + (b"", None)),
            topic=topic,
            partition=dice.choice((0,) * 12 + (1, 2)),
            acks=acks,
            timeout_ms=0,
        )
        if dice.random() < 0.03:
            produce_request.topic_data *= 2
        return produce_request, acks != 0

    async def ask(self) -> None:
        self.asked += 1
        requested, is_answered = self.request()
        for desk in self.desks:
            desk.send(requested, self.version, self.asked)
        first, second = [await desk.outcome(is_answered) for desk in self.desks]
        assert first == second, (self.asked, requested)
        for answer in first[0]:
            _, response = headers.decode_response(ProduceResponse, self.version, answer)
            for topic in response.responses:
                self.codes |= {
                    partition_response.error_code
                    for partition_response in topic.partition_responses
                }
        known = self.brokers[0].directories.get("t", 0)
        if known is not None and 5 in known.producers.producers:
            batches = known.producers.producers[5].batches
            self.sequences["t"] = batches[-1].last_sequence + 1 if batches else 0

    def told(self) -> list[list[tuple[Any, ...]]]:
        """Return the logs and the counters of each broker."""
        return [
            [
                (partition.topic, partition.partition, partition.appended_bytes,
                 partition.appends_count, partition.high_watermark, partition.log.log_end_offset,
                 partition.rejected_bytes)
                for partition in broker.replicas.all_partitions() if not partition.is_offline
            ]
            for broker in self.brokers
        ]  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
async def test_random_conversations_are_answered_alike(seed: int) -> None:
    """Changed settings, leaders and disks, repeated and skipped batches and invalid headers do not
    matter.
    """
    async with logs_broker() as one, logs_broker() as two:
        conversation = Conversation(seed, one, two)
        for number in range(300):
            if number == 280:
                conversation.fail()
            await conversation.step()
            first, second = conversation.told()
            assert first == second
        short, long = conversation.desks
        # The fast path was used, but not for every request, and some requests failed.
        assert long.long_count == conversation.asked > short.long_count + 50
        assert len(conversation.codes) > 5


async def test_fast_path_asks_for_the_right_to_the_topic(broker: LogsBroker) -> None:
    """A request that one sender has taught is the handler's for a sender without the right."""
    broker.create("t")
    desk = Desk(broker)
    rights = {"t"}
    for version in (9, 13):
        route = desk.dispatcher.add_route(int(produce.API), version)
        assert route is not None
        assert isinstance(route.shortcut, ProduceShortcut)
        route.handle = desk._counted
        route.shortcut._may = lambda _, topic: topic in rights
        message = request(broker, batch(b"v"))
        desk.long_count = 0
        for _ in range(3):
            desk.produce(message, version)
        assert desk.long_count == 1
        rights.clear()
        desk.produce(message, version)
        assert desk.long_count == 2
        rights.add("t")
