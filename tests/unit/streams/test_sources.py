"""Streams of the same topics share a source; overlapping sources are rejected, as in Kafka."""

import re
from typing import Any

import pytest

from ottla.streams import (
    Consumed,
    Processor,
    Stores,
    StreamsBuilder,
    Topology,
    TopologyError,
    TopologyTestDriver,
)


class Silent(Processor[Any, Any, Any, Any]):
    """A processor that forwards nothing."""


def test_streams_of_the_same_topics_in_another_order_share_a_source() -> None:
    """The topics of a source are a set."""
    builder = StreamsBuilder()
    builder.stream(["a", "b"]).to("one")
    builder.stream(["b", "a"]).to("two")
    with TopologyTestDriver(builder.build()) as driver:
        for topic in ("a", "b"):
            driver.create_input_topic(topic).pipe_input(topic)
        for topic in ("one", "two"):
            assert driver.create_output_topic(topic).read_values_to_list() == ["a", "b"]


def test_a_topic_can_be_repeated_in_one_stream() -> None:
    """The topic is read once."""
    builder = StreamsBuilder()
    builder.stream(["a", "b", "a"]).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("a").pipe_input(1)
        assert driver.create_output_topic("out").read_values_to_list() == [1]


@pytest.mark.parametrize("topics", ["in", ["a", "b"], re.compile("in.*")])
@pytest.mark.parametrize(
    ("one", "other"), [("earliest", "latest"), ("earliest", None), (None, "latest")]
)
def test_two_reset_policies_for_one_topic_are_rejected(
    topics: Any, one: str | None, other: str | None
) -> None:
    """This applies also if only one of the streams has a policy, because it would affect both."""
    builder = StreamsBuilder()
    builder.stream(topics, offset_reset=one)
    builder.stream(topics, offset_reset=other)
    output = [repr(node) if node else "none" for node in (one, other)]
    with pytest.raises(TopologyError, match=f"offset_reset {output[0]}.*{output[1]}"):
        builder.build()


@pytest.mark.parametrize("reset", ["earliest", "latest", None])
def test_the_same_reset_policy_for_two_streams_is_accepted(reset: str | None) -> None:
    """The streams have the same topic, or the same pattern."""
    builder = StreamsBuilder()
    for topics in ("in", re.compile("other.*")):
        for _ in range(2):
            builder.stream(topics, Consumed(offset_reset=reset))
    policies = [
        getattr(source, "offset_reset", "none") for source in builder.build().nodes.values()
    ]
    assert policies == [reset, reset]


@pytest.mark.parametrize("first", ["topic", "pattern"])
@pytest.mark.parametrize("other", ["stream", "table", "global", "repartition"])
def test_a_pattern_that_matches_a_topic_of_another_source_is_rejected(
    first: str, other: str
) -> None:
    """The records would go to only one of the sources."""
    builder = StreamsBuilder()
    pattern = re.compile("in.*")

    def read_topic() -> None:
        if other == "stream":
            builder.stream("inner")
        elif other == "table":
            builder.table("inner")
        elif other == "global":
            builder.global_table("inner")
        else:
            builder.stream("x").repartition(name="inner")

    if first == "topic":
        read_topic()
    builder.stream(pattern)
    if first == "pattern":
        read_topic()
    if (first, other) == ("topic", "global"):
        builder.build()
        return
    with pytest.raises(TopologyError, match=r"'in\.\*'.*'inner"):
        builder.build()


@pytest.mark.parametrize("first", ["topic", "pattern"])
def test_a_topology_rejects_a_pattern_that_matches_a_topic(first: str) -> None:
    """The second of the two sources raises."""
    topology = Topology()
    sources: list[Any] = [("Topic", "inner"), ("Pattern", re.compile("in.*"))]
    if first == "pattern":
        sources.reverse()
    topology.add_source(*sources[0])
    with pytest.raises(TopologyError, match=r"'in\.\*'.*'inner'"):
        topology.add_source(*sources[1])


@pytest.mark.parametrize(
    ("add", "sentence"),
    [
        (lambda t: t.add_source("Source", "in"), "'Source'"),
        (lambda t: t.add_source("Other", "in"), "in is read by source Source"),
        (lambda t: t.add_source("Other", "a", "a"), "'a' is named twice"),
        (lambda t: t.add_source("Other"), "reads no topic"),
        (lambda t: t.add_source("Other", "a", offset_reset="first"), "'first'"),
        (lambda t: t.add_source(None, "a"), "None"),
        (lambda t: t.add_source("Other", None), "None"),
        (lambda t: t.add_processor("Source", Silent, "Source"), "'Source'"),
        (lambda t: t.add_processor("Other", Silent), "has no parent"),
        (lambda t: t.add_processor("Other", Silent, "nobody"), "nobody"),
        (lambda t: t.add_processor("Other", Silent, "Other"), "Other"),
        (lambda t: t.add_processor("Other", Silent, None), "None"),
        (lambda t: t.add_processor("Other", Silent, "Sink"), "Sink"),
        (lambda t: t.add_processor("Other", None, "Source"), "None"),
        (lambda t: t.add_processor(None, Silent, "Source"), "None"),
        (lambda t: t.add_sink("Sink", "out", "Source"), "'Sink'"),
        (lambda t: t.add_sink("Other", "out"), "has no parent"),
        (lambda t: t.add_sink("Other", "out", "Other"), "Other"),
        (lambda t: t.add_sink("Other", "out", "Sink"), "Sink"),
        (lambda t: t.add_sink("Other", None, "Source"), "None"),
        (lambda t: t.add_sink(None, "out", "Source"), "None"),
        (lambda t: t.connect_processor_and_state_stores("Process"), "one or more stores"),
        (lambda t: t.connect_processor_and_state_stores("Process", None), "None"),
        (lambda t: t.connect_processor_and_state_stores(None, "store"), "None"),
        (lambda t: t.connect_processor_and_state_stores("Sink", "store"), "Sink"),
        (lambda t: t.connect_processor_and_state_stores("Source", "store"), "Source"),
        (lambda t: t.connect_processor_and_state_stores("nobody", "store"), "nobody"),
        (lambda t: t.add_state_store(None), "None"),
        (lambda t: t.add_state_store(_store("x"), "nobody"), "nobody"),
        (lambda t: t.add_global_store(_store("x"), "G", "g", "G", Silent), "'G'"),
        (lambda t: t.add_global_store(_store("store"), "G", "g", "H", Silent), "'store'"),
        (lambda t: t.add_global_store(_store("x"), "G", "in", "H", Silent), "in is read"),
        (lambda t: t.add_global_store(_store("x"), "Source", "g", "H", Silent), "'Source'"),
        (lambda t: t.add_global_store(_store("x"), "G", "g", "Source", Silent), "'Source'"),
        (lambda t: t.add_global_store(_store("x"), "G", "g", "H", None), "None"),
        (lambda t: t.add_global_store(None, "G", "g", "H", Silent), "None"),
    ],
)
def test_a_topology_rejects_what_kafkas_rejects(add: Any, sentence: str) -> None:
    """The call raises and leaves the topology unchanged."""
    topology = Topology().add_source("Source", "in").add_processor("Process", Silent, "Source")
    topology.add_sink("Sink", "out", "Process").add_state_store(_store("store"), "Process")
    before = str(topology.describe()), set(topology.stores), set(topology.global_stores)
    with pytest.raises((TopologyError, TypeError), match=sentence):
        add(topology)
    assert (str(topology.describe()), set(topology.stores), set(topology.global_stores)) == before


def _store(name: str) -> Any:
    return Stores.key_value(name)
