"""The times of a task survive in the metadata of its committed offsets."""

import base64

from hypothesis import example, given
from hypothesis import strategies as st

from ottla.streams.model.committed_times import decode, encode

_INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(_INT64, st.dictionaries(st.text("abc._é", min_size=1, max_size=9), _INT64))
def test_metadata_is_read_as_it_was_written(time: int, times: dict[str, int]) -> None:
    """Also with the NUL character that librdkafka adds."""
    expected = {"t": time} | times
    assert decode(encode(time, times)) == expected
    assert decode(encode(time, times) + "\0") == expected


def test_the_form_is_that_of_kafka_streams() -> None:
    """Version 2: the partition time, the number of entries, and each name with its number."""
    data = base64.b64decode(encode(5, {"ab": 7}))
    assert data == b"\2" + (5).to_bytes(8) + (1).to_bytes(4) + (2).to_bytes(4) + b"ab" + (
        7
    ).to_bytes(8)


def test_other_metadata_has_no_times() -> None:
    """Metadata of other clients, and of version 1 of Kafka Streams, which has only a time."""
    version_1 = base64.b64encode(b"\1" + (5).to_bytes(8)).decode()
    assert [decode(text) for text in ("", "note", version_1)] == [{}, {}, {}]


@given(st.binary(max_size=40))
@example((3).to_bytes(4) + b"\0\0\0\1\xff" + bytes(8))
@example((1 << 30).to_bytes(4) + (-12).to_bytes(4, signed=True))
def test_damaged_metadata_has_no_times_or_some(rest: bytes) -> None:
    """Any client may commit it: it is read in a moment, without an error."""
    times = decode(base64.b64encode(b"\2" + bytes(8) + rest).decode())
    assert len(times) <= 1 + len(rest) // 12
