"""Declarations of messages, and the codec's guarantees for values, with messages of this test."""

import copy

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.wire import schema
from ottla.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
    ReplicaState,
)
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


class Inner(schema.Struct):
    """A part of `Sample`."""

    number: int = schema.int32(default=-1)
    words: list[str] = schema.array(schema.string)


class Sample(schema.Message, versions=(0, 3), flexible_since=2):
    """A message with every kind of field."""

    flag: bool = schema.boolean(default=True)
    small: int = schema.int8()
    port: int = schema.uint16(since=1, ignorable=True)
    count: int = schema.uint32(until=1)
    ratio: float = schema.float64(since=1)
    key: bytes | None = schema.octets(nullable_since=2)
    inner: Inner = schema.nested(Inner)
    maybe: Inner | None = schema.nested(Inner, since=1, nullable_since=0, default=None)
    ids: list[bytes] = schema.array(schema.uuid, since=2)
    flags: list[bool] | None = schema.array(schema.boolean, since=2, nullable_since=3)
    tagged_name: str | None = schema.string(since=2, nullable_since=0, tag=1, default=None)
    tagged_part: Inner | None = schema.nested(Inner, since=2, tag=0, default=None)
    tagged_list: list[int] = schema.array(schema.int32, since=3, tag=5)


def refusal(message: schema.Message, version: int) -> str:
    """Encode, expect UNSUPPORTED_VERSION, return its message."""
    with pytest.raises(ApiError) as caught:
        schema.encode(message, version)
    assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION
    return caught.value.message


def test_constructor_sets_defaults_and_new_containers() -> None:
    """Objects share no list and no struct."""
    one, two = Sample(), Sample()
    assert (one.flag, one.small, one.key, one.maybe, one.inner.number) == (True, 0, b"", None, -1)
    one.ids.append(bytes(16))
    one.inner.words.append("x")
    assert two.ids == []
    assert two.inner.words == []


def test_constructor_rejects_unknown_and_positional_arguments() -> None:
    """A misspelled field is an error, not a new attribute."""
    with pytest.raises(TypeError):
        Sample(smal=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Sample(True)  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Sample().smal = 1  # type: ignore[attr-defined]


def test_structs_are_compared_and_shown_by_content() -> None:
    """Equality is by value within a class; the text shows the fields that differ from the default."""
    assert Inner(number=1) == Inner(number=1) != Inner(number=2)
    assert Inner() != Sample()
    assert repr(Sample(small=3, inner=Inner(number=4))) == (
        "Sample(small=3, inner=Inner(number=4))"
    )
    assert repr(PartitionProduceData(records=memoryview(b"abc"))) == (
        "PartitionProduceData(records=<3 bytes>)"
    )
    assert copy.copy(Inner(number=7)) == Inner(number=7)


def test_every_kind_of_field_is_on_the_wire_as_declared() -> None:
    """The bytes of two versions are as declared, field by field."""
    message = Sample(small=-2, count=4_000_000_000, key=b"k", inner=Inner(number=5, words=["a"]))
    assert schema.encode(message, 0) == bytes.fromhex(
        "01 fe ee6b2800 00000001 6b 00000005 00000001 0001 61"
    )
    message = Sample(
        port=65_535,
        ratio=0.5,
        key=None,
        maybe=Inner(),
        ids=[b"0123456789abcdef"],
        flags=[True, False],
        tagged_name="n",
        tagged_part=Inner(number=9),
        tagged_list=[1],
    )
    assert schema.encode(message, 3) == bytes.fromhex(
        "01 00 ffff 3fe0000000000000 00 ffffffff 01 00 01 ffffffff 01 00"
        "02 30313233343536373839616263646566 03 01 00"
        "03 00 06 00000009 01 00 01 02 02 6e 05 05 02 00000001"
    )


@pytest.mark.parametrize("version", range(4))
def test_absent_fields_are_decoded_as_their_defaults(version: int) -> None:
    """A field that a version does not have is decoded as its default."""
    decoded, _ = schema.decode(Sample, version, schema.encode(Sample(), version))
    assert decoded == Sample()


def test_value_of_a_missing_field_is_an_error_unless_ignorable() -> None:
    """A value is never dropped silently, unless Kafka's schema allows it."""
    assert schema.encode(Sample(port=5), 0) == schema.encode(Sample(), 0)
    assert "Sample.ratio is set to 0.5, which Sample v0" in refusal(Sample(ratio=0.5), 0)
    assert "Sample.count" in refusal(Sample(count=1), 2)
    assert "Sample.maybe" in refusal(Sample(maybe=Inner()), 0)
    assert "Sample.ids" in refusal(Sample(ids=[bytes(16)]), 1)
    assert "Sample.tagged_list" in refusal(Sample(tagged_list=[1]), 2)


def test_null_in_a_field_that_is_not_nullable_is_an_error_with_its_path() -> None:
    """The message names the field and the element that is null."""
    assert "Sample.key may not be null in v1" in refusal(Sample(key=None), 1)
    assert "MetadataRequest.topics may not be null in v0" in refusal(
        MetadataRequest(topics=None), 0
    )
    partition = MetadataResponsePartition(isr_nodes=None)  # type: ignore[arg-type]
    response = MetadataResponse(topics=[MetadataResponseTopic(name="t", partitions=[partition])])
    assert "topics[0].partitions[0].isr_nodes may not be null" in refusal(response, 9)


@pytest.mark.parametrize(
    ("message", "place"),
    [
        (Sample(small=128), "Sample.small of v2 cannot hold 128"),
        (Sample(inner=Inner(words=[3])), "Sample.inner.words[0]"),  # type: ignore[list-item]
        (Sample(ids=[b"short"] * 2, ratio="x"), "Sample.ratio"),  # type: ignore[arg-type]
        (Sample(tagged_part=Inner(number=2**31)), "Sample.tagged_part.number"),
        (Sample(inner=Inner(words=["x" * 40_000])), "Sample.inner.words[0]"),
    ],
)
def test_value_of_the_wrong_type_is_an_assertion_error_with_its_path(
    message: Sample, place: str
) -> None:
    """Such a value fails as an assertion that names the field."""
    with pytest.raises(AssertionError) as caught:
        schema.encode(message, 2)
    assert place in str(caught.value)


def test_unknown_version_cannot_be_encoded() -> None:
    """A version that is not declared has no encoder."""
    assert "FindCoordinatorRequest has no version 7" in refusal(FindCoordinatorRequest(), 7)


def test_tagged_struct_is_none_while_absent_and_dropped_when_default() -> None:
    """A tagged struct is written only if it differs from its default, as in Kafka."""
    absent = schema.encode(FetchRequest(), 15)
    assert schema.encode(FetchRequest(replica_state=ReplicaState()), 15) == absent
    assert schema.decode(FetchRequest, 15, absent)[0].replica_state is None
    present = schema.encode(FetchRequest(replica_state=ReplicaState(replica_id=1)), 15)
    state = schema.decode(FetchRequest, 15, present)[0].replica_state
    assert state == ReplicaState(replica_id=1, replica_epoch=-1)


def test_decoded_records_are_a_view_of_the_frame() -> None:
    """No byte of a batch is copied; a change through the view is a change of the frame."""
    message = ProduceRequest(
        topic_data=[
            TopicProduceData(name="t", partition_data=[PartitionProduceData(records=b"batch")])
        ]
    )
    frame = bytearray(schema.encode(message, 9))
    decoded, _ = schema.decode(ProduceRequest, 9, frame)
    records = decoded.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    records[0] = ord("B")
    assert b"Batch" in frame


def fetch_response(*contents: object) -> FetchResponse:
    """Return a response with one partition for each content."""
    partitions = [
        PartitionData(partition_index=index, records=content)  # type: ignore[arg-type]
        for index, content in enumerate(contents)
    ]
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])


@pytest.mark.parametrize("version", [4, 11, 12, 18])
def test_encoded_records_are_the_given_buffers(version: int) -> None:
    """Batches are returned unchanged, as one buffer or several, between small buffers."""
    one, two, three = bytearray(b"one"), memoryview(b"two"), b"three"
    response = fetch_response(one, [two, three], None, b"", [])
    parts = schema.encode_parts(response, version)
    assert [part for part in parts if part is one] == [one]
    assert [part for part in parts if part is two] == [two]
    assert [part for part in parts if part is three] == [three]
    assert len(parts) == 6
    decoded, _ = schema.decode(FetchResponse, version, b"".join(parts))
    records = [partition.records for partition in decoded.responses[0].partitions]
    assert records == [b"one", b"twothree", None, b"", b""]


def test_nested_tagged_struct_after_records_is_decoded() -> None:
    """Tags after record bytes are decoded."""
    response = fetch_response(b"batch")
    leader = LeaderIdAndEpoch(leader_id=3, leader_epoch=4)
    response.responses[0].partitions[0].current_leader = leader
    decoded, _ = schema.decode(FetchResponse, 16, schema.encode(response, 16))
    assert decoded.responses[0].partitions[0].current_leader == leader


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 126, 127, 128, 5_000])
@pytest.mark.parametrize("version", [1, 12])
def test_arrays_and_strings_of_every_length_class_round_trip(version: int, count: int) -> None:
    """Lengths around the limits of one varint byte and of the prepared packings are kept."""
    partition = MetadataResponsePartition(replica_nodes=list(range(count)))
    topic = MetadataResponseTopic(name="é" * count, partitions=[partition])
    response = MetadataResponse(topics=[topic] * count if count < 200 else [topic])
    data = schema.encode(response, version)
    assert schema.decode(MetadataResponse, version, data) == (response, len(data))


def test_cache_of_packings_is_bounded() -> None:
    """The cache of packings is bounded, and clearing it changes nothing."""
    for count in range(1_100):
        request = FindCoordinatorRequest(key="k" * count)
        data = schema.encode(request, 3)
        assert schema.decode(FindCoordinatorRequest, 3, data)[0] == request


def test_code_asks_a_message_for_the_first_version_of_a_field() -> None:
    """A message returns the first version that has a field, or in which the field may be null."""
    assert schema.first_version(Sample, "ids") == 2
    assert schema.first_version(Sample, "flag") == 0
    assert schema.first_version_with_null(Sample, "flags") == 3
    assert schema.first_version_with_null(Sample, "ids") == schema.NEVER


def test_describe_lists_fields_with_their_path() -> None:
    """Documentation is generated from the codec's declarations."""
    rows = {row.path: row for row in schema.describe(Sample)}
    assert rows["inner.words"].type == "[]string"
    assert rows["port"] == schema.FieldRow(
        path="port",
        type="uint16",
        since=1,
        until=schema.NEVER,
        nullable_since=schema.NEVER,
        tag=None,
        default=0,
        ignorable=True,
    )
    assert rows["tagged_list"].tag == 5
    assert rows["tagged_list"].default == []


def test_source_shows_the_compiled_python() -> None:
    """The generated code can be read, in tracebacks too."""
    assert "def decode(" in schema.source(Sample, 2)
    assert "def encode(" in schema.source(Sample, 2, "encode")
