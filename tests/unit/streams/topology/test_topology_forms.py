"""A topology of processors: stores that are filled from topics, and misplaced arguments."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.streams import (
    AutoOffsetReset,
    Consumed,
    Processor,
    Record,
    Serdes,
    Stores,
    Topology,
    TopologyError,
    TopologyTestDriver,
)


class Filling(Processor[str, str, Any, Any]):
    """A processor that puts its records into a store."""

    def process(self, record: Record[str, str]) -> None:
        """Put the record."""
        self.context.get_state_store("names").put(record.key, record.value)


class Naming(Processor[str, str, str, str]):
    """A processor that replaces values by entries of a store."""

    def process(self, record: Record[str, str]) -> None:
        """Look up the value."""
        name = self.context.get_state_store("names").get(record.value)
        self.context.forward(record.with_value(name))


def named(add: Callable[[Topology], object], *, connects: bool) -> tuple[list[str], set[str]]:
    """Return the values behind a store that is filled from a topic, and all written topics."""
    topology = Topology()
    text = Serdes.string()
    topology.add_source("Source", "in", key=text, value=text).add_processor(
        "Name", Naming, "Source"
    )
    add(topology)
    if connects:
        topology.connect_processor_and_state_stores("Name", "names")
    topology.add_sink("Sink", "out", "Name", key=text, value=text)
    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("names", text, text).pipe_input("a", "Ann")
        driver.create_input_topic("in", text, text).pipe_input("x", "a")
        written = driver.produced_topic_names
        return driver.create_output_topic("out", text, text).read_values_to_list(), written


def test_a_global_store_is_filled_from_a_topic() -> None:
    """Every processor can access it; its own serdes read the topic."""
    store = Stores.key_value("names", Serdes.string(), Serdes.string())
    actual = named(
        lambda t: t.add_global_store(store, "Names", "names", "Fill", Filling), connects=False
    )
    assert actual == (["Ann"], {"out"})


def test_a_read_only_store_is_filled_from_a_topic() -> None:
    """The topic is its changelog (KIP-813); processors must be connected to it."""
    store = Stores.key_value("names", Serdes.string(), Serdes.string())
    consumed = Consumed.with_(Serdes.string(), Serdes.string())
    actual = named(
        lambda t: t.add_read_only_state_store(store, "Names", "names", "Fill", Filling, consumed),
        connects=True,
    )
    assert actual == (["Ann"], {"out"})


@pytest.mark.parametrize(
    ("add", "sentence"),
    [
        (
            lambda t: t.add_source("Source", Serdes.string(), Serdes.string(), "in"),
            "Serdes.string must be a keyword argument: key=",
        ),
        (
            lambda t: t.add_source(AutoOffsetReset.latest(), "Source", "in"),
            "pass 'latest' as offset_reset='latest'",
        ),
        (
            lambda t: t.add_sink("Sink", "out", Serdes.string(), Serdes.string(), "Source"),
            "Serdes.string must be a keyword argument: key=",
        ),
        (lambda t: t.add_processor("P", Filling(), "Source"), "each task has one of its own"),
    ],
)
def test_an_argument_in_javas_position_is_rejected_with_its_keyword(
    add: Any, sentence: str
) -> None:
    """Otherwise it would be used as a topic or a parent."""
    with pytest.raises(TopologyError, match=sentence):
        add(Topology())
