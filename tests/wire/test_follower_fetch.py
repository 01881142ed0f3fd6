"""Packing of fetches of one partition between brokers: the codec's bytes, or for the codec."""

import random
from typing import Any, cast

import pytest

from ottla.wire import follower_fetch, headers, schema
from ottla.wire.follower_fetch import FIRST_VERSION, LAST_VERSION, FollowerMove
from ottla.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)

VERSIONS = range(FIRST_VERSION, LAST_VERSION + 1)
DICE = random.Random(1)


def number(bits: int) -> int:
    return DICE.choice((0, 1, DICE.getrandbits(bits - 1), (1 << bits - 1) - 1))


def request() -> FetchRequest:
    partition = FetchPartition(
        partition=number(32),
        current_leader_epoch=number(32),
        fetch_offset=number(64),
        last_fetched_epoch=DICE.choice((-1, number(32))),
        log_start_offset=number(64),
        partition_max_bytes=number(32),
    )
    return FetchRequest(
        replica_state=ReplicaState(replica_id=number(32), replica_epoch=number(64)),
        max_wait_ms=number(32),
        min_bytes=number(32),
        max_bytes=number(32),
        session_id=number(32),
        session_epoch=number(32),
        topics=[FetchTopic(topic_id=DICE.randbytes(16), partitions=[partition])],
    )


def position_of(message: FetchRequest) -> FollowerMove:
    topic, partition = message.topics[0], message.topics[0].partitions[0]
    state = message.replica_state
    assert state is not None
    return FollowerMove(
        max_wait_ms=message.max_wait_ms,
        min_bytes=message.min_bytes,
        max_bytes=message.max_bytes,
        session_id=message.session_id,
        session_epoch=message.session_epoch,
        topic_id=topic.topic_id,
        partition=partition.partition,
        leader_epoch=partition.current_leader_epoch,
        offset=partition.fetch_offset,
        last_fetched_epoch=partition.last_fetched_epoch,
        log_start_offset=partition.log_start_offset,
        partition_max_bytes=partition.partition_max_bytes,
        replica=state.replica_id,
        broker_epoch=state.replica_epoch,
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_requests_have_the_bytes_of_the_codec(version: int) -> None:
    """Both directions agree with encoder and decoder for numbers of every size."""
    encode = schema.encoder(FetchRequest, version)
    for _ in range(100):
        message = request()
        body, position = encode(message), position_of(message)
        assert follower_fetch.request_body(position) == body
        assert follower_fetch.read_request(memoryview(b"head" + body), 4) == position


def _changed(**fields: Any) -> FetchRequest:
    message = request()
    for name, value in fields.items():
        setattr(message, name, value)
    return message


def test_requests_of_other_forms_are_for_the_codec() -> None:
    """Several partitions or topics, a rack, forgotten topics, a consumer, an isolation level."""
    one = request().topics[0]
    named = request()
    named.topics[0].partitions[0].replica_directory_id = bytes(15) + b"\1"
    others = [
        _changed(topics=[]),
        _changed(topics=[one, one]),
        _changed(topics=[FetchTopic(topic_id=one.topic_id, partitions=one.partitions * 2)]),
        _changed(rack_id="r"),
        _changed(forgotten_topics_data=[ForgottenTopic(topic_id=one.topic_id, partitions=[1])]),
        _changed(replica_state=None),
        _changed(isolation_level=1),
        _changed(cluster_id="c"),
        named,
    ]
    encode = schema.encoder(FetchRequest, LAST_VERSION)
    for message in others:
        assert follower_fetch.read_request(memoryview(encode(message)), 0) is None
    body = encode(request())
    for end in range(len(body)):
        assert follower_fetch.read_request(memoryview(body[:end]), 0) is None


def response(records: bytes | None, **fields: Any) -> FetchResponse:
    data = PartitionData(
        partition_index=number(32),
        high_watermark=number(64),
        log_start_offset=number(64),
        records=records,
    )
    data.last_stable_offset = data.high_watermark
    for name, value in fields.items():
        setattr(data, name, value)
    topic = FetchableTopicResponse(topic_id=DICE.randbytes(16), partitions=[data])
    return FetchResponse(session_id=number(32), responses=[topic])


def encoded(message: FetchResponse, version: int = LAST_VERSION, correlation_id: int = 7) -> bytes:
    return b"".join(headers.encode_response_parts(correlation_id, message, version))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("size", [1, 126, 127, 128, 16_382, 16_383, 300_000])
def test_responses_have_the_bytes_of_the_codec(version: int, size: int) -> None:
    """Both directions agree with encoder and decoder for sizes around those of varints."""
    message = response(DICE.randbytes(size))
    correlation_id = number(32)
    topic, data = message.responses[0], message.responses[0].partitions[0]
    whole = encoded(message, version, correlation_id)
    assert isinstance(data.records, bytes)
    parts = follower_fetch.response_parts(
        correlation_id,
        message.session_id,
        topic.topic_id,
        data.partition_index,
        (data.high_watermark, data.log_start_offset),
        data.records,
    )
    assert b"".join(cast("tuple[bytes, ...]", parts)) == whole
    found = follower_fetch.read_response(memoryview(whole))
    assert found is not None
    assert found[0] == correlation_id
    assert tuple(found[1]) == (
        message.session_id,
        topic.topic_id,
        data.partition_index,
        data.high_watermark,
        data.last_stable_offset,
        data.log_start_offset,
        data.records,
    )


def test_responses_of_other_forms_are_for_the_codec() -> None:
    """No records, errors, a log that diverges, several partitions, and damaged bytes."""
    several = response(b"abc")
    several.responses[0].partitions *= 2
    failed = response(b"abc")
    failed.error_code = 5
    throttled = response(b"abc")
    throttled.throttle_time_ms = 5
    others = [
        response(b""),
        response(None),
        response(b"abc", error_code=3),
        response(b"abc", diverging_epoch=EpochEndOffset(epoch=1, end_offset=2)),
        response(b"abc", preferred_read_replica=2),
        response(b"abc", aborted_transactions=None),
        FetchResponse(session_id=4),
        several,
        failed,
        throttled,
    ]
    for message in others:
        assert follower_fetch.read_response(memoryview(encoded(message))) is None
    whole = encoded(response(b"abc"))
    for end in range(len(whole)):
        assert follower_fetch.read_response(memoryview(whole[:end])) is None
    assert follower_fetch.read_response(memoryview(whole + b"\0")) is None
