"""Invalid bytes raise ProtocolError, quickly, and without allocating what they announce."""

import gc
import time
import tracemalloc

import pytest

from ottla.base.errors import ProtocolError
from ottla.wire import fields, primitives, schema
from ottla.wire.decoding import objects_per_item
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.produce import ProduceRequest
from tests.wire import samples

CLASSES = samples.MESSAGES + samples.STORED
BUDGET = 2_000
# Half a microsecond of CPU time is usual.
SECONDS_PER_OBJECT = 10e-6
BYTES_PER_OBJECT = 500


def refused(cls: type[schema.Message], version: int, data: bytes) -> str:
    """Decode, expect an error, return its message."""
    with pytest.raises(ProtocolError) as caught:
        schema.decode(cls, version, data)
    return str(caught.value)


def test_compact_array_of_four_billion_elements_is_rejected() -> None:
    """The eight bytes that make kio abort its process are an error here."""
    assert "31 bits" in refused(MetadataRequest, 12, bytes.fromhex("ffffffff0f000000"))
    assert "claims" in refused(MetadataRequest, 12, bytes.fromhex("ffffffff07000000"))


def test_array_longer_than_the_remaining_bytes_is_rejected() -> None:
    """A count is compared with the remaining bytes and the smallest size of an element."""
    assert "claims 2" in refused(MetadataRequest, 1, bytes.fromhex("00000002 0000"))
    assert "claims 2147483647" in refused(MetadataRequest, 1, bytes.fromhex("7fffffff") + bytes(99))


def test_negative_lengths_are_null_or_rejected() -> None:
    """Any negative length is null, as in Kafka, and rejected if null is not allowed."""
    message, _ = schema.decode(MetadataRequest, 1, bytes.fromhex("80000000"))
    assert message.topics is None
    assert "topics is null" in refused(MetadataRequest, 0, bytes.fromhex("ffffffff"))
    assert "group_id is null" in refused(HeartbeatRequest, 0, bytes.fromhex("ffff") + bytes(8))
    assert "group_id is null" in refused(HeartbeatRequest, 4, bytes(12))


def test_string_longer_than_the_message_is_rejected() -> None:
    """Neither the last field nor one in the middle may exceed the message."""
    assert "too early" in refused(HeartbeatRequest, 0, bytes.fromhex("7fff 61 00000001 0001 61"))
    assert "too early" in refused(HeartbeatRequest, 0, bytes.fromhex("0001 61 00000001 0002 61"))


def test_string_longer_than_kafka_allows_is_rejected() -> None:
    """A compact string may not be longer than one with a two-byte length."""
    size = primitives.encode_uvarint(32_768 + 1)
    assert "32768" in refused(HeartbeatRequest, 4, size + b"a" * 40_000)


def test_text_that_is_not_utf8_is_rejected() -> None:
    """Invalid UTF-8, and text that ends in the middle of a character, are rejected."""
    assert "UTF-8" in refused(HeartbeatRequest, 0, bytes.fromhex("0001 ff 00000001 0001 61"))
    assert "UTF-8" in refused(HeartbeatRequest, 0, bytes.fromhex("0001 c3"))


def test_records_longer_than_the_frame_are_rejected() -> None:
    """The record bytes are a slice, whose end is checked."""
    data = bytes.fromhex("ffff ffff 00000000 00000001 0001 61 00000001 00000000 00000009 00")
    assert "too early" in refused(ProduceRequest, 7, data)


def test_unknown_tagged_fields_are_skipped() -> None:
    """A newer peer may send tags that this version does not know (KIP-482)."""
    plain = schema.encode(ApiVersionsRequest(client_software_name="a"), 3)
    tagged = plain[:-1] + bytes.fromhex("02 05 03 616263 7f 00")
    message, end = schema.decode(ApiVersionsRequest, 3, tagged)
    assert (message.client_software_name, end) == ("a", len(tagged))


def test_unknown_tags_of_every_message_are_skipped() -> None:
    """An unknown tag at the end of any flexible message changes nothing."""
    for cls, version in samples.each_version(CLASSES):
        if version < cls.FLEXIBLE_SINCE:
            continue
        message = cls()
        data = schema.encode(message, version)
        assert data.endswith(b"\0")
        decoded = schema.decode(cls, version, data[:-1] + bytes.fromhex("01 e807 02 ffff"))
        assert decoded[0] == message


def test_too_many_tagged_fields_are_rejected() -> None:
    """A struct with more tags than any schema has is rejected."""
    plain = schema.encode(ApiVersionsRequest(), 3)
    tags = b"".join(bytes((tag, 0)) for tag in range(65))
    assert "65 tagged" in refused(ApiVersionsRequest, 3, plain[:-1] + b"\x41" + tags)
    assert "tagged" in refused(FetchRequest, 12, schema.encode(FetchRequest(), 12)[:-1] + b"\x7f")


def test_tagged_field_with_a_wrong_size_is_rejected() -> None:
    """The size of a known tag must be its content's size."""
    plain = schema.encode(FetchRequest(), 12)
    right = plain[:-1] + bytes.fromhex("01 00 02 02 61")
    message, _ = schema.decode(FetchRequest, 12, right)
    assert message.cluster_id == "a"
    wrong = plain[:-1] + bytes.fromhex("01 00 03 02 61 61")
    assert "announced with 3" in refused(FetchRequest, 12, wrong)


def test_bytes_after_the_message_are_ignored() -> None:
    """librdkafka sends three stray bytes after a Metadata request."""
    for cls, version in samples.each_version(CLASSES):
        data = schema.encode(cls(), version)
        assert schema.decode(cls, version, data + b"\0\0\0")[1] == len(data)


def test_any_byte_but_zero_is_true() -> None:
    """Booleans are decoded as in Kafka."""
    data = schema.encode(MetadataRequest(topics=[]), 4)
    message, _ = schema.decode(MetadataRequest, 4, data[:-1] + b"\x02")
    assert message.allow_auto_topic_creation is True


def test_unknown_version_is_rejected() -> None:
    """There is no decoder for a version that is not declared."""
    assert "no version 99" in refused(MetadataRequest, 99, b"")
    assert "no version -1" in refused(MetadataRequest, -1, b"")


def test_object_budget_bounds_small_elements() -> None:
    """A megabyte of one-byte elements is rejected before any is created."""
    count = 1_000_000
    data = primitives.encode_uvarint(count + 1) + b"\1" * count
    assert "objects left" in refused(ListGroupsRequest, 4, data)


def test_object_budget_is_for_the_whole_message() -> None:
    """Many small arrays count together."""
    partitions = (100_000).to_bytes(4, "big") + bytes(400_000)
    data = bytes.fromhex("ffffffff 00000000 00000000 7fffffff 00 00000000 00000000")
    topics = bytes.fromhex("00000000 00000003") + (bytes.fromhex("0001 61") + partitions) * 3
    assert "objects left" in refused(FetchRequest, 7, data + topics)


@pytest.mark.parametrize("cls", CLASSES, ids=samples.version_id)
def test_every_truncation_is_rejected(cls: type[schema.Message]) -> None:
    """No message is decoded from fewer bytes than it has."""
    sampler = samples.Sampler(21, items=(1, 2))
    for version in samples.versions(cls):
        data = schema.encode(sampler.message(cls, version), version)
        for size in range(len(data)):
            assert refused(cls, version, data[:size])


def arrays(cls: type[schema.Struct], version: int) -> list[list[fields.Field]]:
    """Yield every array of a message, as the path of fields to it."""
    paths = []
    for field in cls.FIELDS:
        if not field.is_in(version):
            continue
        item = field.type
        if isinstance(item, fields.Array):
            paths.append([field])
            item = item.item
        if isinstance(item, fields.Nested):
            paths += [[field, *path] for path in arrays(item.struct, version)]
    return paths


def overloaded(
    cls: type[schema.Struct], version: int, path: list[fields.Field], count: int
) -> schema.Struct:
    """Return a struct whose array at `path` has as many elements as the budget allows."""
    field, *rest = path
    item = field.type.item if isinstance(field.type, fields.Array) else field.type
    value: object
    if rest:
        assert isinstance(item, fields.Nested)
        value = overloaded(item.struct, version, rest, count)
        value = [value] if isinstance(field.type, fields.Array) else value
    elif isinstance(item, fields.Nested):
        value = [item.struct()] * (count // objects_per_item(item))
    else:
        value = [item.default] * count
    return cls(**{field.name: value})


@pytest.mark.slow
@pytest.mark.parametrize("cls", CLASSES, ids=samples.version_id)
def test_whole_budget_costs_bounded_time_and_memory(cls: type[schema.Message]) -> None:
    """A message with the whole budget in one array costs little for each object of it."""
    version = cls.MAX_VERSION
    decode = schema.decoder(cls, version)
    for path in arrays(cls, version):
        message = overloaded(cls, version, path, BUDGET - 100)
        assert isinstance(message, schema.Message)
        data = schema.encode(message, version)
        # A garbage collection would visit all objects of the tests.
        gc.disable()
        start = time.thread_time()
        decode(data, 0, BUDGET)
        seconds = time.thread_time() - start
        gc.enable()
        assert seconds < BUDGET * SECONDS_PER_OBJECT
        tracemalloc.start()
        try:
            decode(data, 0, BUDGET)
            peak_bytes = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak_bytes < BUDGET * BYTES_PER_OBJECT, [field.name for field in path]
