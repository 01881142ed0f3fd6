"""Produce: requests with records, their responses, and the log."""

import asyncio
import dataclasses
import errno
from typing import Any

import pytest

from ottla.base.errors import ErrorCode, ProtocolError
from ottla.cluster.names import GROUP_OFFSETS_TOPIC, INTERNAL_TOPICS
from ottla.replication import leading
from ottla.server.handlers import produce
from ottla.storage.config import LogConfig
from ottla.storage.log import validation
from ottla.storage.log.log import Log
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.wire.records.batch import parse_header, seal
from ottla.wire.records.compression import CODECS, GZIP
from ottla.wire.records.records import Record, encode_batch
from tests.handlers.logs import NODE, OTHER, LogsBroker, batch, through_codec, values
from tests.handlers.transactions import transactions_broker

VERSIONS = range(produce.MIN_VERSION, produce.MAX_VERSION + 1)


def request(
    broker: LogsBroker, records: Any, *, topic: str = "t", partition: int = 0, **fields: Any
) -> ProduceRequest:
    """Return a request for one partition, with the topic's name and id."""
    known = broker.image.topic(topic)
    return ProduceRequest(
        acks=fields.pop("acks", 1),
        timeout_ms=fields.pop("timeout_ms", 1000),
        topic_data=[
            TopicProduceData(
                name=topic,
                topic_id=known.topic_id if known else bytes(15) + b"\x09",
                partition_data=[PartitionProduceData(index=partition, records=records)],
            )
        ],
        **fields,
    )


def only(response: ProduceResponse) -> Any:
    return response.responses[0].partition_responses[0]


def stored(broker: LogsBroker, topic: str = "t") -> list[bytes | None]:
    log = broker.partition(topic).log
    fetched = log.read(log.log_start_offset, 1 << 20, max_offset=log.log_end_offset)
    assert fetched is not None
    return values(fetched.records)


@pytest.mark.parametrize("version", VERSIONS)
async def test_records_get_the_next_offsets(broker: LogsBroker, version: int) -> None:
    """Every version appends, and returns the offset and the log start."""
    broker.create("t")
    first = await broker.ask(produce, request(broker, batch(b"a", b"b")), version)
    second = await broker.ask(produce, request(broker, batch(b"c")), version)
    assert (only(first).error_code, only(first).base_offset) == (0, 0)
    assert (only(second).error_code, only(second).base_offset) == (0, 2)
    assert only(second).log_start_offset == (0 if version >= 5 else -1)
    assert stored(broker) == [b"a", b"b", b"c"]
    assert broker.partition("t").high_watermark == 3


@pytest.mark.parametrize("version", VERSIONS)
async def test_unknown_topic_is_rejected(broker: LogsBroker, version: int) -> None:
    """The error is UNKNOWN_TOPIC_OR_PARTITION by name, and UNKNOWN_TOPIC_ID by id."""
    response = await broker.ask(produce, request(broker, batch(b"a")), version)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert only(response).error_code == (unknown if version < 13 else ErrorCode.UNKNOWN_TOPIC_ID)
    assert only(response).base_offset == -1


async def test_one_partition_may_fail_and_the_next_succeed(broker: LogsBroker) -> None:
    """Each partition has its own error."""
    broker.create("t")
    both = request(broker, batch(b"a"), partition=7)
    both.topic_data += request(broker, batch(b"b")).topic_data
    response = await broker.ask(produce, both, 9)
    codes = [topic.partition_responses[0].error_code for topic in response.responses]
    assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0]
    assert stored(broker) == [b"b"]


@pytest.mark.parametrize(
    ("fields", "records", "code"),
    [
        ({"acks": 2}, batch(b"a"), ErrorCode.INVALID_REQUIRED_ACKS),
        (
            {},
            batch(b"a", transactional=True),
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ),
        ({}, None, ErrorCode.INVALID_RECORD),
        ({}, b"", ErrorCode.INVALID_RECORD),
        ({}, b"short", ErrorCode.INVALID_RECORD),
        ({}, bytes(batch(b"a")[:-1] + b"?"), ErrorCode.CORRUPT_MESSAGE),
        ({}, batch(b"a") + batch(b"b"), ErrorCode.INVALID_RECORD),
        ({}, batch(b"x" * 2_000_000), ErrorCode.MESSAGE_TOO_LARGE),
    ],
    ids=["acks", "transaction", "null", "empty", "short", "checksum", "two batches", "too large"],
)
async def test_invalid_batches_have_error_codes(
    broker: LogsBroker, fields: dict[str, Any], records: Any, code: ErrorCode
) -> None:
    """Nothing is appended, and the response has the reason."""
    broker.create("t")
    response = await broker.ask(produce, request(broker, records, **fields), 9)
    assert only(response).error_code == code
    assert only(response).error_message
    assert stored(broker) == []


@pytest.mark.parametrize(("version", "is_refused"), [(6, True), (7, False)])
async def test_zstd_needs_version_7(broker: LogsBroker, version: int, is_refused: bool) -> None:
    """Consumers of older versions could not read it (KIP-110)."""
    broker.create("t")
    response = await broker.ask(produce, request(broker, batch(b"a", compression=4)), version)
    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE if is_refused else ErrorCode.NONE
    assert only(response).error_code == code


@pytest.mark.parametrize("name", sorted(INTERNAL_TOPICS))
async def test_internal_topics_cannot_be_written(broker: LogsBroker, name: str) -> None:
    """The error is INVALID_TOPIC_EXCEPTION: a foreign record would break the coordinator."""
    broker.create(name)
    response = await broker.ask(produce, request(broker, batch(b"a"), topic=name), 9)
    assert only(response).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


async def test_unknown_topic_is_reported_before_invalid_acks(broker: LogsBroker) -> None:
    """Kafka looks up the partition first."""
    response = await broker.ask(produce, request(broker, batch(b"a"), topic="no", acks=2), 9)
    assert only(response).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("records", "start"),
    [
        (batch(b"a", producer_id=7, producer_epoch=0, base_sequence=-1), 1),
        (batch(b"a") + batch(b"b"), -1),
        (bytes(batch(b"a")[:-1] + b"?"), -1),
        (batch(b"x" * 2_000_000), -1),
    ],
    ids=["sequence", "two batches", "checksum", "too large"],
)
async def test_batch_rejected_by_the_log_returns_the_log_start(
    broker: LogsBroker, records: Any, start: int
) -> None:
    """The log start is omitted for a wrong size or checksum, or if the data is no batch."""
    broker.create("t")
    broker.write("t", b"a", b"b")
    leading.delete_records(broker.partition("t"), 1)
    response = only(await broker.ask(produce, request(broker, records), 9))
    assert (response.base_offset, response.log_start_offset) == (-1, start)
    assert response.error_code != 0


async def test_topic_without_partitions_is_omitted(broker: LogsBroker) -> None:
    """The response does not have the topic."""
    request = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t")])
    assert (await broker.ask(produce, request, 9)).responses == []


async def test_acks_0_has_no_answer(broker: LogsBroker) -> None:
    """The records are appended without a response."""
    broker.create("t")
    assert await broker.ask(produce, request(broker, batch(b"a"), acks=0), 9) is None
    assert stored(broker) == [b"a"]


async def test_acks_0_that_fails_closes_the_connection(broker: LogsBroker) -> None:
    """There is no response that could have an error code."""
    with pytest.raises(ProtocolError):
        await broker.ask(produce, request(broker, batch(b"a"), acks=0), 9)


async def test_acks_all_waits_for_the_followers(broker: LogsBroker) -> None:
    """The response is sent when the last in-sync replica has fetched the records."""
    broker.create("t", replicas=(NODE, OTHER))
    future = broker.begin(produce, request(broker, batch(b"a"), acks=-1), 9)
    assert not future.done()
    broker.partition("t").follower_fetched(OTHER, 1, 0)
    response = through_codec(await future, 9)
    assert (only(response).error_code, only(response).base_offset) == (0, 0)


async def test_acks_all_times_out(broker: LogsBroker) -> None:
    """After the request's timeout the error is REQUEST_TIMED_OUT; the record stays."""
    broker.create("t", replicas=(NODE, OTHER))
    response = await broker.ask(produce, request(broker, batch(b"a"), acks=-1, timeout_ms=1), 9)
    assert only(response).error_code == ErrorCode.REQUEST_TIMED_OUT
    assert stored(broker) == [b"a"]


async def test_acks_all_fails_on_a_new_leader(broker: LogsBroker) -> None:
    """The new leader may not have the record."""
    broker.create("t", replicas=(NODE, OTHER))
    response = broker.begin(produce, request(broker, batch(b"a"), acks=-1), 9)
    broker.create("t", replicas=(NODE, OTHER), leader=OTHER, leader_epoch=4)
    assert only(await response).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_acks_all_needs_enough_replicas(broker: LogsBroker) -> None:
    """Below min.insync.replicas nothing is appended."""
    broker.create("t", replicas=(NODE, OTHER), config={"min.insync.replicas": "2"})
    partition = broker.partition("t")
    assert partition.isr is not None
    partition.isr.assign((NODE, OTHER), (NODE,))
    response = await broker.ask(produce, request(broker, batch(b"a"), acks=-1), 9)
    assert only(response).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert stored(broker) == []


@pytest.mark.parametrize("acks", [1, -1])
async def test_flush_on_ack_waits_for_the_disk(broker: LogsBroker, acks: int) -> None:
    """With flush.on.ack an acknowledged record survives a power loss."""
    broker.create("t", config={"flush.on.ack": "true"})
    response = broker.begin(produce, request(broker, batch(b"a"), acks=acks), 9)
    assert not response.done()
    assert broker.partition("t").high_watermark == 0
    assert only(await response).error_code == 0
    assert broker.partition("t").log.recovery_point == 1
    assert broker.partition("t").high_watermark == 1


@pytest.mark.parametrize("version", [9, 10])
async def test_new_leader_is_returned_from_version_10(broker: LogsBroker, version: int) -> None:
    """The error NOT_LEADER_OR_FOLLOWER has the new leader and its address (KIP-951)."""
    broker.create("t", replicas=(NODE, OTHER), leader=OTHER, leader_epoch=5)
    response = await broker.ask(produce, request(broker, batch(b"a")), version)
    assert only(response).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    if version >= 10:
        leader = only(response).current_leader
        assert (leader.leader_id, leader.leader_epoch) == (OTHER, 5)
        assert [(node.node_id, node.port) for node in response.node_endpoints] == [(OTHER, 9093)]
    else:
        assert response.node_endpoints == []


async def test_records_of_a_compacted_topic_need_keys(broker: LogsBroker) -> None:
    """The response lists each record without a key (KIP-467)."""
    broker.create("t", config={"cleanup.policy": "compact"})
    response = await broker.ask(produce, request(broker, batch(b"a", b"b")), 8)
    assert only(response).error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in only(response).record_errors] == [0, 1]


async def test_a_broken_disk_takes_its_partitions_offline(broker: LogsBroker) -> None:
    """This request and all later ones of that directory fail with KAFKA_STORAGE_ERROR."""
    broker.create("t")
    broker.create(GROUP_OFFSETS_TOPIC)
    broker.files.faults.fail("append", error=errno.EIO)
    for topic in ("t", "t", GROUP_OFFSETS_TOPIC):
        response = await broker.ask(produce, request(broker, batch(b"a"), topic=topic), 9)
        assert only(response).error_code == ErrorCode.KAFKA_STORAGE_ERROR


async def test_many_waiting_requests_are_all_answered(broker: LogsBroker) -> None:
    """A fetch of a follower completes exactly the requests that it covers."""
    broker.create("t", replicas=(NODE, OTHER))
    waiting = [
        broker.begin(produce, request(broker, batch(b"a"), acks=-1, timeout_ms=60_000), 9)
        for _ in range(5)
    ]
    broker.partition("t").follower_fetched(OTHER, 3, 0)
    await asyncio.gather(*waiting[:3])
    assert [response.done() for response in waiting] == [True, True, True, False, False]
    broker.partition("t").follower_fetched(OTHER, 5, 0)
    responses = await asyncio.gather(*waiting)
    assert [only(response).base_offset for response in responses] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("version", "code"),
    [(10, ErrorCode.INVALID_TXN_STATE), (11, ErrorCode.TRANSACTION_ABORTABLE)],
)
async def test_partition_must_be_part_of_the_transaction(version: int, code: ErrorCode) -> None:
    """A batch before, outside or after the transaction is rejected (KIP-890)."""
    async with transactions_broker() as running:
        producer = await running.producer()
        assert await running.send(producer, b"a", version=version) == code
        await running.add(producer, 0)
        assert await running.send(producer, b"a", number=1, version=version) == code
        assert await running.send(producer, b"a", version=version) == 0
        assert await running.end(producer) == 0
        assert await running.send(producer, b"b", sequence=1, version=version) == code
        assert (await running.read(1)).high_watermark == 0


async def test_batch_of_another_producer_is_rejected() -> None:
    """Another transactional id and a fenced producer are rejected."""
    async with transactions_broker() as running:
        producer = await running.producer()
        await running.add(producer, 0)
        unknown = await running.send(producer, b"a", transactional_id="nobody")
        assert unknown == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        await running.init()
        assert await running.send(producer, b"a") == ErrorCode.INVALID_PRODUCER_EPOCH


async def test_verification_waits_for_the_coordinator() -> None:
    """Clients get a retriable error that does not make them refresh their metadata."""
    async with transactions_broker() as running:
        producer = await running.producer()
        await running.add(producer, 0)
        running.transactions.close()
        assert await running.send(producer, b"a") == ErrorCode.NOT_ENOUGH_REPLICAS


async def test_verification_can_be_disabled() -> None:
    """With transaction.partition.verification.enable=false batches are written as before KIP-890."""
    async with transactions_broker(transaction_partition_verification_enable="false") as running:
        producer = await running.producer()
        assert await running.send(producer, b"a") == 0


COMPACTED = {"cleanup.policy": "compact"}


def heavy(keyed: bool = True) -> bytes:
    """Return a valid batch of more records than are validated on the event loop."""
    key = b"k" if keyed else None
    return bytes(encode_batch([Record(key, b"v", (), 1_767_225_600_000)] * 3000, compression=4))


@pytest.mark.parametrize("acks", [-1, 0, 1])
async def test_heavy_batch_is_validated_off_the_loop(broker: LogsBroker, acks: int) -> None:
    """The response comes later, and the client's next request waits for it, also with acks=0."""
    broker.create("t", config=COMPACTED)
    context = broker.context(produce, 9)
    waiting = produce.handle(context, request(broker, bytearray(heavy()), acks=acks))
    assert asyncio.isfuture(waiting)
    assert context.keeps_order
    assert broker.partition("t").log.log_end_offset == 0
    assert [size for size, _ in broker.held] == [len(heavy())]
    response = await waiting
    assert broker.partition("t").log.log_end_offset == 3000
    if acks:
        actual = only(through_codec(response, 9))
        assert (actual.error_code, actual.base_offset, actual.log_start_offset) == (0, 0, 0)
    else:
        assert response is None


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
async def test_record_of_20_mb_that_is_small_when_it_is_compressed(
    broker: LogsBroker, codec: str
) -> None:
    """A compacted topic accepts it, as other topics do: only the compressed size is limited."""
    record = Record(b"k", bytes(20_000_000), (), 1)
    data = encode_batch([record], compression=CODECS[codec])
    assert len(data) < 1_048_588
    for topic, config in (("t", COMPACTED), ("plain", {})):
        broker.create(topic, config=config)
        response = await broker.ask(produce, request(broker, bytearray(data), topic=topic), 9)
        assert only(response).error_code == ErrorCode.NONE
        assert broker.partition(topic).log.log_end_offset == 1


async def test_error_of_a_batch_validated_off_the_loop_is_complete(broker: LogsBroker) -> None:
    """The response has code, message and invalid records, next to a valid partition."""
    broker.create("t", partitions=2, config=COMPACTED)
    unkeyed = request(broker, bytearray(heavy(keyed=False)))
    sound = bytearray(encode_batch([Record(b"k", b"v", (), 1_767_225_600_000)]))
    unkeyed.topic_data[0].partition_data.append(PartitionProduceData(index=1, records=sound))
    response = await broker.ask(produce, unkeyed, 9)
    bad, good = response.responses[0].partition_responses
    assert bad.error_code == ErrorCode.INVALID_RECORD
    assert (bad.base_offset, len(bad.record_errors)) == (-1, 3000)
    assert (good.error_code, good.base_offset) == (0, 0)
    assert broker.partition("t", 0).log.log_end_offset == 0


async def test_rejected_heavy_batch_with_acks_0_closes_the_connection(broker: LogsBroker) -> None:
    """Kafka closes the connection; the valid batch of the same request is written before."""
    broker.create("t", partitions=2, config=COMPACTED)
    unkeyed = request(broker, bytearray(heavy(keyed=False)), acks=0)
    sound = bytearray(heavy())
    unkeyed.topic_data[0].partition_data.append(PartitionProduceData(index=1, records=sound))
    with pytest.raises(ProtocolError):
        await broker.ask(produce, unkeyed, 9)
    assert broker.partition("t", 0).log.log_end_offset == 0
    assert broker.partition("t", 1).log.log_end_offset == 3000


async def test_heavy_batches_are_validated_one_at_a_time_and_in_order(broker: LogsBroker) -> None:
    """The decompressed contents of several batches are never in memory together."""
    broker.create("t", config=COMPACTED)
    running = [
        asyncio.ensure_future(broker.ask(produce, request(broker, bytearray(heavy())), 9))
        for _ in range(3)
    ]
    offsets = [only(response).base_offset for response in await asyncio.gather(*running)]
    assert offsets == [0, 3000, 6000]


async def test_heavy_batch_is_not_written_by_a_former_leader(
    broker: LogsBroker,
) -> None:
    """The leader may change during the validation."""
    broker.create("t", config=COMPACTED)
    waiting = broker.begin(produce, request(broker, bytearray(heavy())), 9)
    broker.create("t", leader=OTHER, leader_epoch=4, replicas=(NODE, OTHER))
    assert only(await waiting).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def change_while_judged(
    monkeypatch: pytest.MonkeyPatch, log: Log, *changes: dict[str, Any]
) -> list[str]:
    """Change the log's configuration during each validation; return the codecs that were used."""
    following = [dataclasses.replace(log.config, **fields) for fields in changes]
    judged: list[str] = []
    vet = validation.vet

    def change_then_vet(data: Any, config: LogConfig, *rest: Any) -> Any:
        judged.append(config.compression_type)
        if following:
            log.update_config(following.pop(0))
        return vet(data, config, *rest)

    monkeypatch.setattr(validation, "vet", change_then_vet)
    return judged


async def test_equal_configuration_during_the_validation_changes_nothing(
    broker: LogsBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The options that change during the validation do not affect records."""
    broker.create("t", config=COMPACTED)
    log = broker.partition("t").log
    judged = change_while_judged(monkeypatch, log, {"retention_ms": 5})
    actual = only(await broker.begin(produce, request(broker, bytearray(heavy())), 9))
    assert (actual.error_code, actual.base_offset, log.log_end_offset) == (0, 0, 3000)
    assert judged == ["producer"]


@pytest.mark.parametrize("former", ["CreateTime", "LogAppendTime"])
async def test_heavy_batch_is_validated_again_after_a_configuration_change(
    broker: LogsBroker, former: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The topic's codec and timestamp type change twice during it; the last configuration applies."""
    latter = {"CreateTime": "LogAppendTime", "LogAppendTime": "CreateTime"}[former]
    broker.create("t", config={**COMPACTED, "message.timestamp.type": former})
    log = broker.partition("t").log
    last = {"compression_type": "gzip", "message_timestamp_type": latter}
    judged = change_while_judged(monkeypatch, log, {"compression_type": "lz4"}, last)
    actual = only(await broker.begin(produce, request(broker, bytearray(heavy())), 9))
    assert actual.error_code == 0
    assert judged == ["producer", "lz4", "gzip"]
    written = log.read(0, 1 << 20, max_offset=3000)
    assert written is not None
    header = parse_header(written.records)
    assert (header.compression, header.records_count) == (GZIP, 3000)
    assert header.has_log_append_time == (latter == "LogAppendTime")


async def test_validation_of_a_heavy_batch_is_not_repeated_forever(
    broker: LogsBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the configuration changes during each validation, the client gets a retriable error."""
    broker.create("t", config=COMPACTED)
    log = broker.partition("t").log
    sizes = [{"max_message_bytes": 1_000_000 + number} for number in range(9)]
    judged = change_while_judged(monkeypatch, log, *sizes)
    response = await broker.begin(produce, request(broker, bytearray(heavy())), 9)
    assert only(response).error_code == ErrorCode.REQUEST_TIMED_OUT
    assert len(judged) == 5
    assert log.log_end_offset == 0


async def test_heavy_batch_is_rejected_by_a_new_configuration(
    broker: LogsBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """During the validation max.message.bytes becomes smaller than the batch."""
    broker.create("t", config=COMPACTED)
    log = broker.partition("t").log
    change_while_judged(monkeypatch, log, {"max_message_bytes": 100})
    response = await broker.begin(produce, request(broker, bytearray(heavy())), 9)
    assert only(response).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert log.log_end_offset == 0


async def test_header_name_can_be_any_bytes(broker: LogsBroker) -> None:
    """Only the length is checked, as in Kafka, even in a topic whose records are read."""
    broker.create("t", config=COMPACTED)
    record = Record(b"k", b"v", (("name", b"1"),), 1_767_225_600_000)
    sent = encode_batch([record]).replace(b"name", b"\xff\x80ne")
    seal(sent, 0, len(sent))
    assert only(await broker.ask(produce, request(broker, sent), 9)).error_code == 0
    result = broker.partition("t").log.read(0, 1 << 20, max_offset=1)
    assert result is not None
    assert b"\xff\x80ne" in bytes(result.records)
