"""A join by foreign key works with the serdes of a schema registry."""

from typing import Any

import pytest

from ottla.streams import Serdes, StreamsBuilder, TopologyTestDriver
from ottla.streams.layout.layout import Application
from ottla.streams.task.task import TaskSettings, TopicRecord
from ottla.testing.schema_registry import FakeSchemaRegistry
from tests.streams.staged import STRINGS, StagedRun

# The subjects that Kafka Streams uses for the keys and values inside of its internal topics.
_INNER = {
    "SUBSCRIPTION-REGISTRATION-0000000006-topic-pk-key",
    "SUBSCRIPTION-REGISTRATION-0000000006-topic-fk-key",
    "SUBSCRIPTION-REGISTRATION-0000000006-topic-vh-value",
    "SUBSCRIPTION-RESPONSE-0000000014-topic-value",
}


@pytest.mark.parametrize("join", ["join", "left_join"])
def test_each_serde_of_a_schema_registry_gets_kafkas_topic(join: str) -> None:
    """Primary keys, foreign keys and values have subjects of their own."""
    registry = FakeSchemaRegistry()
    text: Any = Serdes.avro("string", registry=registry)
    builder = StreamsBuilder()
    left, right = (builder.table(topic, key=text, value=text) for topic in ("left", "right"))
    joined = getattr(left, join)(right, lambda value: value[0], lambda one, two: f"{one} {two}")
    joined.to_stream().to("out", key=text, value=text)
    topology = builder.build()
    records = (("right", "a", "Ann"), ("left", "k", "a1"), ("right", "a", "Amy"))
    with TopologyTestDriver(topology) as driver:
        for topic, key, value in records:
            driver.create_input_topic(topic, text, text).pipe_input(key, value)
        results = driver.create_output_topic("out", text, text).read_key_values_to_list()
    assert results == [("k", "a1 Ann"), ("k", "a1 Amy")]
    prefix = "test-KTABLE-FK-JOIN-"
    inner = {subject for subject in registry.subjects if subject.startswith(prefix)}
    assert {subject.removeprefix(prefix) for subject in inner} >= _INNER
    run = StagedRun(
        Application(topology, TaskSettings("test", STRINGS)), topics={"left": 1, "right": 1}
    )
    for topic, key, value in records:
        write_key, write_value = (text.of(topic, is_key=is_key) for is_key in (True, False))
        record = TopicRecord(write_key.serialize(key), write_value.serialize(value), 0)
        run.run({(topic, 0): [record]})
    assert len(run.produced["out"]) == len(results)
