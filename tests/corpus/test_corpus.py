"""The corpus itself: reproducible, complete, and read alike by consumers that we did not write."""

import json

import pytest
from hypothesis import given, settings

from ottla.testing import Cluster
from ottla.testing.corpus import AwkwardRecord, corpus_topics, fixed_records
from ottla.testing.corpus.strategies import json_texts, records
from ottla.testing.corpus.topics import CODECS, Ending
from ottla.wire.records.records import Record, decode_batch, encode_batch
from tests.corpus.judges import Reading, read_with_kafka_python

pytestmark = pytest.mark.slow

TOPICS = {topic.name: topic for topic in corpus_topics()}
UNCHANGED = [
    name
    for name, topic in TOPICS.items()
    if not topic.is_compacted and "message.timestamp.type" not in topic.config
]


def test_the_fixed_set_is_the_same_for_the_same_seed() -> None:
    """About 300 records, each with a reason; another seed gives other ones."""
    chosen = fixed_records()
    assert chosen == fixed_records(44)
    assert chosen != fixed_records(45)
    assert 300 <= len(chosen) < 400
    assert all(record.reason for record in chosen)
    assert max(len(record.value or b"") for record in chosen) < 1_000_000


def test_every_codec_and_ending_is_used() -> None:
    """Batches have all five codecs, and transactions all ends."""
    batches = [batch for topic in TOPICS.values() for batch in topic.batches]
    assert {batch.codec for batch in batches} == set(CODECS)
    assert {batch.ending for batch in batches} == set(Ending)


@pytest.mark.parametrize("name", UNCHANGED)
def test_a_plain_consumer_reads_the_records_that_were_written(
    oracle: dict[str, list[Reading]], name: str
) -> None:
    """The committed records of a topic, byte for byte, with timestamps and headers."""
    topic = TOPICS[name]
    by_partition: dict[int, list[AwkwardRecord]] = {}
    for batch in topic.batches:
        if batch.ending in (Ending.NONE, Ending.COMMIT):
            by_partition.setdefault(batch.partition, []).extend(batch.records)
    expected = [
        (number, row.timestamp, row.key, row.value, row.headers)
        for number, rows in sorted(by_partition.items())
        for row in rows[topic.first_offset :]
    ]
    result = oracle[name]
    assert [(r.partition, r.timestamp, r.key, r.value, r.headers) for r in result] == expected


def test_compaction_leaves_gaps(oracle: dict[str, list[Reading]]) -> None:
    """Offsets are missing, and the newest record of each key is there."""
    offsets = [row.offset for row in oracle["corpus-compacted"]]
    assert offsets[-1] - offsets[0] + 1 > len(offsets)
    assert {row.key for row in oracle["corpus-compacted"]} == {b"k0", b"k1", b"k2", b"only"}


@pytest.mark.parametrize("name", sorted(set(TOPICS) - {"corpus-wide", "corpus-empty"}))
def test_two_judges_agree(corpus: Cluster, oracle: dict[str, list[Reading]], name: str) -> None:
    """librdkafka and kafka-python read the same records."""
    rows = oracle[name]
    if not rows:
        return
    ends = {row.partition: row.offset + 1 for row in rows}
    assert read_with_kafka_python(corpus.bootstrap, name, ends) == rows


@given(records())
@settings(max_examples=50, deadline=None)
def test_generated_records_survive_a_batch(record: AwkwardRecord) -> None:
    """The codec of the broker returns the same bytes, headers and timestamp."""
    row = Record(record.key, record.value, record.headers, record.timestamp)
    (result,) = decode_batch(encode_batch([row]), 0)
    assert (result.key, result.value, result.timestamp) == (row.key, row.value, row.timestamp)
    assert tuple(result.headers) == record.headers


@given(json_texts())
@settings(max_examples=20, deadline=None)
def test_generated_texts_are_json(text: str) -> None:
    """Only NaN and Infinity are outside of JSON."""
    constants: list[str] = []
    json.loads(text, parse_constant=constants.append)
    assert set(constants) <= {"NaN", "Infinity", "-Infinity"}
