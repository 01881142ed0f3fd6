"""Names of operators, stores and topics obey Kafka's rules; the step with the name raises."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.streams import (
    Consumed,
    Grouped,
    Joined,
    JoinWindows,
    Materialized,
    Named,
    Printed,
    Processor,
    Produced,
    Repartitioned,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TableJoined,
    Topology,
    TopologyError,
)

ILLEGAL = ["", ".", "..", "~foo bar~", "a b/c", "name\n", "häuser", "x" * 250]


class Silent(Processor[Any, Any, Any, Any]):
    """A processor that forwards nothing."""


def _both(one: Any, other: Any) -> Any:
    return one, other


_WINDOWS = JoinWindows.of_time_difference_with_no_grace(5)

STEPS: dict[str, Callable[[Any, Any, str], object]] = {
    "filter": lambda b, s, name: s.filter(bool, named=name),
    "source": lambda b, s, name: b.stream("other", name=name),
    "consumed": lambda b, s, name: b.stream("other", Consumed.as_(name)),
    "table": lambda b, s, name: b.table("other", name=name),
    "table store": lambda b, s, name: b.table("other", materialized=name),
    "global table store": lambda b, s, name: b.global_table("other", materialized=name),
    "process": lambda b, s, name: s.process(Silent, named=name),
    "process values": lambda b, s, name: s.process_values(Silent, named=name),
    "sink": lambda b, s, name: s.to("out", Produced.as_(name)),
    "print": lambda b, s, name: s.print(Printed.to_sys_out().with_name(name)),
    "split": lambda b, s, name: s.split(name),
    "repartition": lambda b, s, name: s.repartition(Repartitioned.as_(name)),
    "grouped": lambda b, s, name: s.group_by(lambda v: v, Grouped.as_(name)),
    "grouped by key": lambda b, s, name: s.select_key(str).group_by_key(Grouped.as_(name)).count(),
    "store": lambda b, s, name: s.group_by_key().count(name),
    "aggregation": lambda b, s, name: s.group_by_key().count(named=name),
    "join": lambda b, s, name: s.join(
        b.stream("other"), _both, _WINDOWS, StreamJoined().with_name(name)
    ),
    "join stores": lambda b, s, name: s.join(
        b.stream("other"), _both, _WINDOWS, StreamJoined.as_(name)
    ),
    "table join": lambda b, s, name: s.join(b.table("other"), _both, Joined.as_(name)),
    "foreign-key join": lambda b, s, name: s.to_table().join(
        b.table("other"), lambda v: v, _both, TableJoined.as_(name)
    ),
    "suppress": lambda b, s, name: s.to_table().suppress(
        Suppressed.until_time_limit(5, Suppressed.BufferConfig.unbounded()).with_name(name)
    ),
    "state store": lambda b, s, name: b.add_state_store(Stores.key_value(name)),
    "source topic": lambda b, s, name: b.stream(name),
    "source topics": lambda b, s, name: b.stream(["other", name]),
    "table topic": lambda b, s, name: b.table(name),
    "global table topic": lambda b, s, name: b.global_table(name),
    "sink topic": lambda b, s, name: s.to(name),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", ILLEGAL)
def test_an_invalid_name_is_rejected_by_its_step(step: str, name: str) -> None:
    """Valid are up to 249 letters, digits, '.', '_' and '-', except '.' and '..'."""
    builder = StreamsBuilder()
    stream = builder.stream("in")
    output = repr(name if len(name) < 50 else name[:40])[:-1]
    with pytest.raises(TopologyError) as raised:
        STEPS[step](builder, stream, name)
    assert output in str(raised.value)
    assert "249" in str(raised.value)


@pytest.mark.parametrize("step", STEPS)
def test_a_valid_name_is_accepted(step: str) -> None:
    """The name has all kinds of valid characters."""
    builder = StreamsBuilder()
    STEPS[step](builder, builder.stream("in"), "Aa0._-z")
    builder.build()


@pytest.mark.parametrize("make", [Named, Named.as_, Materialized.as_, Named("a").with_name])
def test_an_option_rejects_an_invalid_name(make: Any) -> None:
    """The constructor raises, like Kafka's `Named.as` and `Materialized.as`."""
    with pytest.raises(TopologyError, match="'a b/c'"):
        make("a b/c")


def test_a_name_that_is_too_long_with_its_suffix_is_rejected() -> None:
    """The suffix counts towards the length."""
    builder = StreamsBuilder()
    with pytest.raises(TopologyError, match="-this-windowed"):
        builder.stream("in").join(
            builder.stream("other"), _both, _WINDOWS, StreamJoined().with_name("x" * 245)
        )


@pytest.mark.parametrize(
    "add",
    [
        lambda t: t.add_source("Other", "a b/c"),
        lambda t: t.add_sink("Sink", "a b/c", "Source"),
        lambda t: t.add_state_store(Stores.key_value("a b/c")),
    ],
)
def test_a_topology_rejects_topics_and_stores_with_invalid_names(add: Any) -> None:
    """Its nodes can have any name, as in Kafka."""
    topology = Topology().add_source("the source", "in").add_processor("a b", Silent, "the source")
    topology.add_source("Source", "other")
    with pytest.raises(TopologyError, match="'a b/c'"):
        add(topology)
