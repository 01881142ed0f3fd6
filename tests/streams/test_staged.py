"""What runs in stages over state pages, as on Spark, does what Apache Kafka Streams did, record for record."""

import pytest

from ottla.streams.runtime import ProducedRecord, TaskSettings, TopicRecord
from ottla.streams.spark.layout import Application
from tests.streams.recorded.topologies import build
from tests.streams.staged import STRINGS, StagedRun
from tests.streams.transcripts import NAMES, is_compared, line, transcript

TOPICS = {"in": 1, "in-two": 1, "other": 1, "third": 1}


def _play(staged: StagedRun, event: str, now: int) -> list[str]:
    words = event.split(" ")
    staged.produced.clear()
    if words[0] == "clock":
        staged.tick(now + int(words[1]))
    else:
        key, value = (None if each == "-" else each.encode() for each in (words[2], words[4]))
        staged.pipe(words[1], TopicRecord(key, value, int(words[3])))
    return _lines(staged.produced)


def _lines(produced: dict[str, list[ProducedRecord]]) -> list[str]:
    return [
        line(record)
        for topic in sorted(filter(is_compared, produced))
        for record in produced[topic]
    ]


@pytest.mark.parametrize("name", NAMES)
def test_micro_batches_of_one_record_write_what_kafka_writes(name: str) -> None:
    """Tasks that are built anew for each record recall all that matters, in every kind of store."""
    interval_ms = 1000 if name.endswith("_throttled") else 0
    application = Application(build(name), TaskSettings("test", STRINGS, interval_ms))
    staged = StagedRun(application, topics=TOPICS)
    # Kafka's driver begins at 0.
    staged.tick(0)
    now = 0
    for number, (event, expected) in enumerate(transcript(name)[1], 1):
        assert _play(staged, event, now) == expected, f"event {number}: {event}"
        now += int(event.split(" ")[1]) if event.startswith("clock") else 0
