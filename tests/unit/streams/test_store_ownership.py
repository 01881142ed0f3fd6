"""A store belongs to one step: a second step with a store of the same name is rejected, as in Kafka."""

from collections.abc import Iterable
from typing import Any

import pytest

from ottla.streams import (
    Joined,
    JoinWindows,
    Materialized,
    Processor,
    ProcessorSupplier,
    Record,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    Topology,
    TopologyError,
    TopologyTestDriver,
    ValueTransformerWithKey,
    ValueTransformerWithKeySupplier,
)
from ottla.streams.stores.builders import StoreBuilder

_WINDOWS = JoinWindows.of_time_difference_with_no_grace(5)


def _both(one: Any, other: Any) -> Any:
    return one, other


def _join_store(name: str) -> StoreBuilder:
    return Stores.in_memory_window_store(name, 10, 10, True)


def test_a_join_rejects_two_stores_of_one_name() -> None:
    """Each side would read the records of the other one as its own."""
    builder = StreamsBuilder()
    one, two = builder.stream("one"), builder.stream("two")
    supplied = StreamJoined.with_(_join_store("same"), _join_store("same"))
    with pytest.raises(TopologyError, match="both stores of a join are named 'same'"):
        one.join(two, _both, _WINDOWS, supplied)


def test_a_join_rejects_a_supplied_store_that_is_named_as_its_other_store() -> None:
    """One is supplied, the other one has the name of the option."""
    builder = StreamsBuilder()
    one, two = builder.stream("one"), builder.stream("two")
    supplied = StreamJoined.as_("kept").with_this_store_supplier(
        _join_store("kept-other-join-store")
    )
    with pytest.raises(TopologyError, match="both stores of a join are named"):
        one.join(two, _both, _WINDOWS, supplied)


@pytest.mark.parametrize(
    ("options", "kind", "name"),
    [
        (StreamJoined.as_("kept"), "left_join", "kept-left-shared-join-store"),
        (StreamJoined.as_("kept"), "outer_join", "kept-outer-shared-join-store"),
        (
            StreamJoined.with_(_join_store("this"), _join_store("other")),
            "left_join",
            "this-left-shared-join-store",
        ),
        (
            StreamJoined.as_("kept").with_this_store_supplier(_join_store("this")),
            "outer_join",
            "this-outer-shared-join-store",
        ),
        (
            StreamJoined.as_("kept").with_other_store_supplier(_join_store("other")),
            "left_join",
            "kept-left-shared-join-store",
        ),
        (
            StreamJoined().with_other_store_supplier(_join_store("other")),
            "outer_join",
            "KSTREAM-OUTERSHARED-0000000004-store",
        ),
    ],
)
def test_the_shared_store_of_an_outer_join_has_kafkas_name(
    options: StreamJoined, kind: str, name: str
) -> None:
    """The supplied store of this side comes first, then the name of the stores, then a number."""
    builder = StreamsBuilder()
    one, two = builder.stream("one"), builder.stream("two")
    getattr(one, kind)(two, _both, _WINDOWS, options)
    assert name in builder.build().stores


class Counting(Processor[str, Any, str, int]):
    """Counts records in a store."""

    def process(self, record: Record[str, Any]) -> None:
        """Count."""
        store = self.context.get_state_store("counts")
        store.put(record.key, (store.get(record.key) or 0) + 1)
        self.context.forward(record.with_value(store.get(record.key)))


class SharedCounting(Counting):
    """Brings one store along, the same for all its uses."""

    stores = (Stores.key_value("counts"),)


class CountingSupplier(ProcessorSupplier[str, Any, str, int]):
    """Brings a new store along each time."""

    def get(self) -> Counting:
        """Make one."""
        return Counting()

    def stores(self) -> Iterable[StoreBuilder]:
        """Describe the store."""
        return [Stores.key_value("counts")]


def _counted(stream: Any, name: str) -> Any:
    return stream.group_by_key().count(Materialized.as_(name))


@pytest.mark.parametrize(
    "add",
    [
        lambda b, s: [_counted(s, "same"), _counted(b.stream("b"), "same")],
        lambda b, s: [b.table("b", materialized="same"), b.table("c", materialized="same")],
        lambda b, s: [_counted(s, "same"), b.table("c", materialized="same")],
        lambda b, s: [b.add_state_store(Stores.key_value("same")), _counted(s, "same")],
        lambda b, s: [b.global_table("b", materialized="same"), _counted(s, "same")],
        lambda b, s: [s.process(CountingSupplier()), b.stream("b").process(CountingSupplier())],
        lambda b, s: [
            s.join(b.stream(topic), _both, _WINDOWS, StreamJoined.as_("same")) for topic in "bc"
        ],
        lambda b, s: [
            s.left_join(
                b.stream(topic),
                _both,
                _WINDOWS,
                StreamJoined.with_(_join_store("same"), _join_store(topic)),
            )
            for topic in "bc"
        ],
        lambda b, s: [
            b.table(topic).suppress(
                Suppressed.until_time_limit(5, Suppressed.BufferConfig.unbounded()).with_name(
                    "same"
                )
            )
            for topic in "bc"
        ],
        lambda b, s: [
            s.join(
                b.table(topic, Materialized.as_(Stores.versioned(topic, 10))),
                _both,
                Joined(name="same", grace=5),
            )
            for topic in "bc"
        ],
    ],
)
def test_two_steps_with_a_store_of_one_name_are_rejected(add: Any) -> None:
    """Both would read what the other one wrote."""
    builder = StreamsBuilder()
    with pytest.raises(TopologyError, match=r"same|counts"):
        add(builder, builder.stream("a"))
        builder.build()


def test_steps_that_share_one_description_share_a_store() -> None:
    """The same object may be added again: by a class that is used twice, and by hand."""
    builder = StreamsBuilder()
    store = SharedCounting.stores[0]
    builder.add_state_store(store).add_state_store(store)
    for topic in ("one", "two"):
        builder.stream(topic).process(SharedCounting).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        for topic in ("one", "two"):
            driver.create_input_topic(topic).pipe_input("a", 0)
        assert driver.create_output_topic("out").read_values_to_list() == [1, 2]


def test_a_builder_rejects_two_descriptions_of_one_name() -> None:
    """Where the second one is added."""
    builder = StreamsBuilder().add_state_store(Stores.key_value("same"))
    with pytest.raises(TopologyError, match="store 'same' is added already"):
        builder.add_state_store(Stores.key_value("same"))


def test_a_topology_rejects_two_descriptions_of_one_name() -> None:
    """Even if they are equal: two processors would share their entries."""
    topology = Topology().add_source("Source", "in")
    for name in ("One", "Two"):
        topology.add_processor(name, Counting, "Source")
    topology.add_state_store(Stores.key_value("counts"), "One")
    with pytest.raises(TopologyError, match=r"store 'counts' is added already.*to share one"):
        topology.add_state_store(Stores.key_value("counts"), "Two")


@pytest.mark.parametrize(
    "add",
    [
        lambda s: [s.filter(bool, named="same") for _ in range(2)],
        lambda s: [s.to("out", named="same") for _ in range(2)],
        lambda s: [s.process(Counting, named="same") for _ in range(2)],
    ],
)
def test_two_steps_of_one_name_are_rejected(add: Any) -> None:
    """Even if they are equal: a second sink writes each record a second time."""
    with pytest.raises(TopologyError, match="another operator is named 'same'"):
        add(StreamsBuilder().stream("in"))


class Nothing(ProcessorSupplier[str, Any, str, int]):
    """Says that it brings nothing along as Kafka's default does."""

    def get(self) -> Counting:
        """Make one."""
        return Counting()

    def stores(self) -> Any:
        """Return None."""


class Same(ValueTransformerWithKey[str, Any, Any]):
    """Changes nothing."""

    def transform(self, key: str, value: Any) -> Any:
        """Return it."""
        return value


class NothingForTables(ValueTransformerWithKeySupplier[str, Any, Any]):
    """The same, for tables."""

    def get(self) -> Any:
        """Make one."""
        return Same()

    def stores(self) -> Any:
        """Return None."""


def test_a_supplier_whose_stores_are_none_has_none() -> None:
    """As Kafka's ConnectedStoreProvider, whose default is null."""
    builder = StreamsBuilder().add_state_store(Stores.key_value("counts"))
    builder.stream("in").process(Nothing(), "counts").to("out")
    builder.table("table").transform_values(NothingForTables())
    assert set(builder.build().stores) == {"counts"}


class Wrong(Nothing):
    """Brings along what is no store."""

    def stores(self) -> Any:
        """Return a name."""
        return ["counts"]


def test_a_supplier_that_brings_what_is_no_store_is_rejected() -> None:
    """With what it brought, and how a store is described."""
    builder = StreamsBuilder()
    with pytest.raises(TopologyError, match=r"such as Stores\.key_value.*not 'counts'"):
        builder.stream("in").process(Wrong())
