"""Records are packed into envelopes for the task of their key, and unpacked unchanged."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from ottla.streams import StreamsBuilder
from ottla.streams.layout.layout import Application, Layout, lay_out
from ottla.streams.spark.layout.envelopes import SINK, Envelope, Outbox, Slots, topic_records
from ottla.streams.task.task import ProducedRecord, TaskSettings
from ottla.wire.records.murmur2 import murmur2

_BYTES = st.one_of(st.none(), st.binary(max_size=5))
_HEADERS = st.lists(st.tuples(st.text(max_size=3), _BYTES), max_size=2).map(tuple)
_RECORDS = st.lists(
    st.builds(
        ProducedRecord,
        st.sampled_from(("out", "app-counts-repartition", "other")),
        _BYTES,
        _BYTES,
        st.integers(0, 1 << 50),
        _HEADERS,
        st.one_of(st.none(), st.integers(0, 2)),
    ),
    max_size=20,
)


def _layout() -> Layout:
    builder = StreamsBuilder()
    builder.stream("words").group_by(lambda value: value).count("counts")
    return lay_out([Application(builder.build(), TaskSettings("app"))], {"words": 3})


def _opened(envelopes: Sequence[Envelope], topic: str) -> list[ProducedRecord]:
    """Return the records of a topic in their original order."""
    rows = [
        (
            topic_record.offset,
            ProducedRecord(
                topic,
                *topic_record[:4],
                None if topic_record.partition < 0 else topic_record.partition,
            ),
        )
        for envelope in envelopes
        if envelope.topic == topic
        for topic_record in topic_records(envelope.records)
    ]
    return [record for _, record in sorted(rows, key=lambda entry: entry[0])]


@given(_RECORDS, st.integers(0, 2))
def test_records_are_unpacked_unchanged(records: list[ProducedRecord], origin: int) -> None:
    """Keys, values, headers and times are equal; shuffled records have Kafka's partition."""
    layout = _layout()
    slots = Slots(layout.task_count, 2)
    envelopes = list(Outbox(layout, slots, 0).envelopes(origin, records))
    for topic in ("out", "other"):
        assert _opened(envelopes, topic) == [each for each in records if each.topic == topic]
    shuffled = [each for each in records if each.topic == "app-counts-repartition"]
    expected = [each._replace(partition=_partition(each, origin)) for each in shuffled]
    assert _opened(envelopes, "app-counts-repartition") == expected
    for envelope in envelopes:
        (partition,) = (
            {record.partition for record in topic_records(envelope.records)}
            if (envelope.task != SINK)
            else (None,)
        )
        assert envelope.task == (
            SINK if partition is None else layout.sub_topologies[1].first_task + partition
        )
        assert slots.task(envelope.slot) == (None if envelope.task == SINK else envelope.task)


def _partition(record: ProducedRecord, origin: int) -> int:
    if record.partition is not None:
        return record.partition
    return origin if record.key is None else (murmur2(record.key) & 0x7FFFFFFF) % 3
