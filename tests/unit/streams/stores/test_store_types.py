"""Where the local engine keeps a store: its options, its supplier, or the application decide."""

import pytest

from ottla.streams import (
    JoinWindows,
    Materialized,
    Serdes,
    Stores,
    StoreType,
    StreamJoined,
    StreamsBuilder,
)
from ottla.streams.stores.builders import StoreBuilder

_TEXTS = Serdes.string(), Serdes.string()


@pytest.mark.parametrize(
    ("options", "in_memory"),
    [
        (Materialized.as_("counts"), None),
        (Materialized.as_("counts").with_store_type(StoreType.IN_MEMORY), True),
        (Materialized.as_("counts").with_store_type("in_memory"), True),
        (Materialized.as_("counts").with_store_type(StoreType.ROCKS_DB), False),
        (Materialized.as_(Stores.in_memory_key_value_store("counts")), True),
        (Materialized.as_(Stores.persistent_key_value_store("counts")), False),
    ],
)
def test_a_table_has_the_type_of_its_options(
    options: Materialized[str, int], in_memory: bool | None
) -> None:
    """Without a type the option default_dsl_store of the application decides."""
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count(materialized=options)
    assert builder.build().stores["counts"].in_memory is in_memory


def _joined(options: StreamJoined) -> list[StoreBuilder]:
    builder = StreamsBuilder()
    windows = JoinWindows.of_time_difference_with_no_grace(10)
    left, right = builder.stream("left"), builder.stream("right")
    left.outer_join(right, lambda a, b: f"{a}{b}", windows, options).to("out")
    return list(builder.build().stores.values())


def test_the_stores_of_a_join_have_one_type() -> None:
    """The store of records that wait for an outer join has it, too."""
    stores = _joined(StreamJoined.with_(*_TEXTS, None).with_dsl_store_suppliers("in_memory"))
    assert [store.in_memory for store in stores] == [True, True, True]


def test_supplied_stores_of_a_join_keep_their_type() -> None:
    """Each supplier has its own."""
    supplied = (
        Stores.in_memory_window_store("a", 20, 20, True),
        Stores.persistent_window_store("b", 20, 20, True),
    )
    types = {store.name: store.in_memory for store in _joined(StreamJoined.with_(*supplied))}
    assert (types["a"], types["b"]) == (True, False)
