"""A store belongs to one step: a second step with a store of that name is rejected, as in Kafka."""

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


def test_a_join_rejects_two_stores_with_the_same_name() -> None:
    """Each side would read the records of the other one as its own."""
    builder = StreamsBuilder()
    one, two = builder.stream("one"), builder.stream("two")
    supplied = StreamJoined.with_(_join_store("same"), _join_store("same"))
    with pytest.raises(TopologyError, match="both stores of a join are named 'same'"):
        one.join(two, _both, _WINDOWS, supplied)


def test_a_join_rejects_a_supplied_store_with_the_name_of_its_other_store() -> None:
    """One store is supplied; the other one's name is derived from the option."""
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
    """It is derived from this side's supplied store, the stores' name, or a number."""
    builder = StreamsBuilder()
    one, two = builder.stream("one"), builder.stream("two")
    getattr(one, kind)(two, _both, _WINDOWS, options)
    assert name in builder.build().stores


class Counting(Processor[str, Any, str, int]):
    """Count records in a store."""

    def process(self, record: Record[str, Any]) -> None:
        """Count the record."""
        store = self.context.get_state_store("counts")
        store.put(record.key, (store.get(record.key) or 0) + 1)
        self.context.forward(record.with_value(store.get(record.key)))


class SharedCounting(Counting):
    """A processor class with one store for all its uses."""

    stores = (Stores.key_value("counts"),)


class CountingSupplier(ProcessorSupplier[str, Any, str, int]):
    """A supplier that returns a new store at each call."""

    def get(self) -> Counting:
        """Return a new processor."""
        return Counting()

    def stores(self) -> Iterable[StoreBuilder]:
        """Return a new store."""
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
def test_two_steps_with_stores_of_the_same_name_are_rejected(add: Any) -> None:
    """Each would read the entries of the other."""
    builder = StreamsBuilder()
    with pytest.raises(TopologyError, match=r"same|counts"):
        add(builder, builder.stream("a"))
        builder.build()


def test_steps_with_the_same_store_builder_share_a_store() -> None:
    """The same object can be added again, by a class that is used twice or explicitly."""
    builder = StreamsBuilder()
    store = SharedCounting.stores[0]
    builder.add_state_store(store).add_state_store(store)
    for topic in ("one", "two"):
        builder.stream(topic).process(SharedCounting).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        for topic in ("one", "two"):
            driver.create_input_topic(topic).pipe_input("a", 0)
        assert driver.create_output_topic("out").read_values_to_list() == [1, 2]


def test_a_builder_rejects_two_store_builders_with_the_same_name() -> None:
    """The second call raises."""
    builder = StreamsBuilder().add_state_store(Stores.key_value("same"))
    with pytest.raises(TopologyError, match="store 'same' is added already"):
        builder.add_state_store(Stores.key_value("same"))


def test_a_topology_rejects_two_store_builders_with_the_same_name() -> None:
    """Even equal ones are rejected, because two processors would share their entries."""
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
def test_two_steps_with_the_same_name_are_rejected(add: Any) -> None:
    """Even equal ones are rejected: a second sink would write each record again."""
    with pytest.raises(TopologyError, match="another operator is named 'same'"):
        add(StreamsBuilder().stream("in"))


class Nothing(ProcessorSupplier[str, Any, str, int]):
    """A supplier without stores, like Kafka's default."""

    def get(self) -> Counting:
        """Return a new processor."""
        return Counting()

    def stores(self) -> Any:
        """Return None."""


class Same(ValueTransformerWithKey[str, Any, Any]):
    """A transformer that returns the value."""

    def transform(self, key: str, value: Any) -> Any:
        """Return the value."""
        return value


class NothingForTables(ValueTransformerWithKeySupplier[str, Any, Any]):
    """A transformer's supplier without stores."""

    def get(self) -> Any:
        """Return a new transformer."""
        return Same()

    def stores(self) -> Any:
        """Return None."""


def test_a_supplier_can_return_none_instead_of_stores() -> None:
    """Null is the default of Kafka's ConnectedStoreProvider."""
    builder = StreamsBuilder().add_state_store(Stores.key_value("counts"))
    builder.stream("in").process(Nothing(), "counts").to("out")
    builder.table("table").transform_values(NothingForTables())
    assert set(builder.build().stores) == {"counts"}


class Wrong(Nothing):
    """A supplier whose store is not a store builder."""

    def stores(self) -> Any:
        """Return the name of a store."""
        return ["counts"]


def test_a_supplier_with_an_invalid_store_is_rejected() -> None:
    """The error shows the value and how to build a store."""
    builder = StreamsBuilder()
    with pytest.raises(TopologyError, match=r"such as Stores\.key_value.*not 'counts'"):
        builder.stream("in").process(Wrong())
