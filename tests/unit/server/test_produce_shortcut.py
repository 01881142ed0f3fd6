"""The short way of a produce says what the long way says, byte for byte, or does nothing."""

import struct
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.net.limits import Limits
from ottla.server.apis import ROWS, Row
from ottla.server.dispatch import Dispatcher
from ottla.server.handlers import produce
from ottla.wire import headers
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.wire.records.records import Record, encode_batch
from tests.handlers.logs import LogsBroker, batch
from tests.unit.net.conftest import Wire

LONG = (Row(produce),)
VERSIONS = range(produce.MIN_VERSION, produce.MAX_VERSION + 1)


class Desk:
    """A dispatcher behind a hand-driven connection; counts the calls of the handler."""

    def __init__(
        self, broker: LogsBroker, monkeypatch: pytest.MonkeyPatch, rows: Any = ROWS
    ) -> None:
        self.broker = broker
        self.long_count = 0
        handle = produce.handle

        def counted(context: Any, request: Any) -> Any:
            self.long_count += 1
            return handle(context, request)

        with monkeypatch.context() as patch:
            patch.setattr(produce, "handle", counted)
            self.wire = Wire(lambda connection, body: None, Limits())
            self.dispatcher = Dispatcher(broker, broker.tasks, rows)
            for version in VERSIONS:
                self.dispatcher._add_route(int(produce.API), version)
        self.wire.connection._handle = self.dispatcher.frame

    def produce(self, request: ProduceRequest, version: int, correlation_id: int = 7) -> bytes:
        body = headers.encode_request(request, version, correlation_id, "client")
        self.wire.receive(struct.pack(">i", len(body)) + body)
        (answer,) = self.wire.answers()[-1:]
        return bytes(answer)

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
async def test_both_ways_answer_alike(
    broker: LogsBroker, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """For names, sizes and partitions of any length; only the offsets differ."""
    short = Desk(broker, monkeypatch)
    answers: dict[str, list[bytes]] = {}
    for name in ("short", "long"):
        topic = "x" * 20 + name.ljust(5, "-")
        broker.create(topic, partitions=2)
        desk = short if name == "short" else Desk(broker, monkeypatch, LONG)
        answers[name] = []
        for number, size in enumerate((1, 100, 100, 20_000, 300_000, 1)):
            records = batch(b"v" * size, b"w")
            for partition in (0, 1):
                message = request(broker, records, topic=topic, partition=partition, acks=-1)
                answers[name].append(desk.produce(message, version, correlation_id=number))
        for partition in (0, 1):
            assert broker.partition(topic, partition).log.log_end_offset == 12
    ids = [broker.image.topic("x" * 20 + name.ljust(5, "-")) for name in ("short", "long")]
    assert ids[0] and ids[1]
    for first, second in zip(answers["short"], answers["long"], strict=True):
        as_long = first.replace(b"short", b"long-").replace(ids[0].topic_id, ids[1].topic_id)
        assert as_long == second
    # The first of a kind teaches; versions before 9 have another layout.
    assert short.long_count == (2 if version >= 9 else 12)


async def test_topics_and_acks_are_told_apart(
    broker: LogsBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was learned of one request is not mistaken for another."""
    desk = Desk(broker, monkeypatch)
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


async def test_what_is_wrong_is_told_by_the_long_way(
    broker: LogsBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A damaged batch, a topic that is gone, a batch of a transaction: nothing is appended."""
    desk = Desk(broker, monkeypatch)
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


async def test_duplicates_are_answered_alike(
    broker: LogsBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that an idempotent producer repeats gets its first answer again."""
    desk = Desk(broker, monkeypatch)
    broker.create("t")
    answers = []
    for sequence in (0, 1, 1):
        records = encode_batch(
            [Record(None, b"v")], producer_id=5, producer_epoch=0, base_sequence=sequence
        )
        answers.append(desk.produce(request(broker, bytes(records)), 9))
    assert answers[1] == answers[2] != answers[0]
    assert broker.partition("t").log.log_end_offset == 2
    assert desk.long_count == 1


async def test_an_answer_that_has_to_wait_waits(
    broker: LogsBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With followers in sync, acks=all is not answered by the append."""
    desk = Desk(broker, monkeypatch)
    broker.create("t")
    for _ in range(2):
        assert desk.code(request(broker, batch(b"v"), acks=-1)) == 0
    broker.create("t", replicas=(1, 2), leader_epoch=4)
    body = headers.encode_request(request(broker, batch(b"v"), acks=-1), 9, 8, "client")
    desk.wire.receive(struct.pack(">i", len(body)) + body)
    assert len(desk.wire.answers()) == 2
    assert broker.partition("t").log.log_end_offset == 3
