"""Values of producers and consumers."""

import pytest
from confluent_kafka import Message

from ottla.client.consumer.deserialization import plain_records
from ottla.client.errors import ClientError
from ottla.client.records import (
    ConsumerRecord,
    OffsetAndMetadata,
    RecordMetadata,
    TopicPartition,
    html_table,
    next_offsets,
    unsent,
)


def record(partition: int, offset: int) -> ConsumerRecord:
    """Return a record of topic t."""
    message = Message(
        topic="t", partition=partition, offset=offset, key=b"k", value=b"v", timestamp=(1, 5),
        headers=[("a", b"1"), ("a", b"2")],
    )  # fmt: skip
    return plain_records([message])[0]


def test_record_has_attributes() -> None:
    """Records with equal fields are equal; a header is looked up by its last value."""
    actual = record(1, 7)
    assert actual == record(1, 7)
    assert actual != record(1, 8)
    assert hash(actual) == hash(record(1, 7))
    assert (actual.header("a"), actual.header("b")) == (b"2", None)
    assert repr(actual) == (
        "ConsumerRecord(topic='t', partition=1, offset=7, key=b'k', value=b'v')"
    )
    changed = actual.with_values("k", "v")
    assert (changed.key, changed.value, changed.offset) == ("k", "v", 7)


def test_next_offsets_are_after_the_last_record() -> None:
    """Records may be in any order; offsets of the caller are kept as they are."""
    rows = [record(0, 4), record(1, 9), record(0, 3)]
    assert next_offsets(rows) == {("t", 0): (5, ""), ("t", 1): (10, "")}
    assert next_offsets(rows[0]) == {TopicPartition("t", 0): OffsetAndMetadata(5)}
    assert next_offsets({("t", 0): 3}) == {("t", 0): OffsetAndMetadata(3)}


def test_negative_offset_is_not_committed() -> None:
    """The error names the partition, as in Java."""
    with pytest.raises(ClientError, match="-7 is not an offset of t-0: offsets begin with 0"):
        next_offsets({("t", 0): -7})


def test_notebook_shows_all_headers_of_a_record() -> None:
    """Two headers may have the same name."""
    html = record(0, 1)._repr_html_()
    assert "b&#x27;1&#x27;" in html
    assert "b&#x27;2&#x27;" in html


def test_metadata_of_a_record_that_was_not_sent() -> None:
    """It has the topic, and -1 for everything else."""
    assert tuple(unsent("t", None)) == ("t", -1, -1, -1)
    assert unsent("t", 2) == RecordMetadata(unsent("t", 2)._report)


def test_html_is_escaped_and_shortened() -> None:
    """Values of records are not markup."""
    html = html_table(["a"], [(b"<script>",), ("x" * 500,)])
    assert "&lt;script&gt;" in html
    assert "x" * 199 + "…" in html
