"""Missing arguments, and suppliers that return a single instance, are rejected, as in Kafka."""

from typing import Any

import pytest

from ottla.streams import (
    JoinWindows,
    Materialized,
    Printed,
    Processor,
    Record,
    SessionWindows,
    Stores,
    StreamsBuilder,
    TimeWindows,
    TopologyError,
    ValueTransformerWithKey,
)

_SESSIONS = SessionWindows.of_inactivity_gap_with_no_grace(5)
_HOURS = TimeWindows.of_size_with_no_grace("1 h")
_WINDOWS = JoinWindows.of_time_difference_with_no_grace(5)


def _both(one: Any, other: Any) -> Any:
    return one, other


class Silent(Processor[Any, Any, Any, Any]):
    """A processor that forwards nothing."""

    def process(self, record: Record[Any, Any]) -> None:
        """Ignore the record."""


class Same(ValueTransformerWithKey[Any, Any, Any]):
    """A transformer that returns the value."""

    def transform(self, key: Any, value: Any) -> Any:
        """Return the value."""
        return value


_SILENT, _SAME = Silent(), Same()


def _grouped(stream: Any) -> Any:
    return stream.group_by_key()


def _grouped_table(table: Any) -> Any:
    return table.group_by(lambda key, value: (key, value))


@pytest.mark.parametrize(
    "step",
    [
        lambda b, s, t: b.stream(None),
        lambda b, s, t: b.stream([None]),
        lambda b, s, t: b.stream(["a", None]),
        lambda b, s, t: b.table(None),
        lambda b, s, t: b.global_table(None),
        lambda b, s, t: b.add_state_store(None),
        lambda b, s, t: b.add_global_store(None, "topic", Silent),
        lambda b, s, t: b.add_global_store(Stores.key_value("x"), None, Silent),
        lambda b, s, t: b.add_global_store(Stores.key_value("x"), "topic", None),
        lambda b, s, t: s.filter(None),
        lambda b, s, t: s.filter_not(None),
        lambda b, s, t: s.select_key(None),
        lambda b, s, t: s.map(None),
        lambda b, s, t: s.map_values(None),
        lambda b, s, t: s.flat_map(None),
        lambda b, s, t: s.flat_map_values(None),
        lambda b, s, t: s.foreach(None),
        lambda b, s, t: s.peek(None),
        lambda b, s, t: s.merge(None),
        lambda b, s, t: s.merge(t),
        lambda b, s, t: s.to(None),
        lambda b, s, t: s.to(5),
        lambda b, s, t: s.split().branch(None),
        lambda b, s, t: s.group_by(None),
        lambda b, s, t: s.process(None),
        lambda b, s, t: s.process(Silent, None),
        lambda b, s, t: s.process(Silent, "store", None),
        lambda b, s, t: s.process(lambda: None),
        lambda b, s, t: s.process(lambda: _SILENT),
        lambda b, s, t: s.process_values(None),
        lambda b, s, t: s.process_values(Silent, None),
        lambda b, s, t: s.process_values(lambda: _SILENT),
        lambda b, s, t: s.join(None, _both, _WINDOWS),
        lambda b, s, t: s.join(s, None, _WINDOWS),
        lambda b, s, t: s.join(s, _both, None),
        lambda b, s, t: s.left_join(s, _both, None),
        lambda b, s, t: s.outer_join(s, _both, None),
        lambda b, s, t: s.join(t, None),
        lambda b, s, t: s.left_join(t, None),
        lambda b, s, t: s.join(b.global_table("g"), None, _both),
        lambda b, s, t: s.join(b.global_table("g"), lambda v: v, None),
        lambda b, s, t: s.print(Printed.to_file("")),
        lambda b, s, t: s.print(Printed.to_file(None)),
        lambda b, s, t: s.repartition(number_of_partitions=0),
        lambda b, s, t: s.repartition(number_of_partitions=-1),
        lambda b, s, t: _grouped(s).reduce(None),
        lambda b, s, t: _grouped(s).aggregate(None, _both),
        lambda b, s, t: _grouped(s).aggregate(int, None),
        lambda b, s, t: _grouped(s).windowed_by(_SESSIONS).aggregate(int, _both, None),
        lambda b, s, t: _grouped(s).windowed_by(_SESSIONS).aggregate(None, _both, _both),
        lambda b, s, t: _grouped(s).windowed_by(_SESSIONS).aggregate(int, None, _both),
        lambda b, s, t: _grouped(s).windowed_by(_SESSIONS).reduce(None),
        lambda b, s, t: _grouped(s).cogroup(_both).windowed_by(_SESSIONS).aggregate(int, None),
        lambda b, s, t: _grouped(s).windowed_by(_HOURS).aggregate(None, _both),
        lambda b, s, t: _grouped(s).windowed_by(_HOURS).aggregate(int, None),
        lambda b, s, t: _grouped(s).windowed_by(_HOURS).reduce(None),
        lambda b, s, t: _grouped(s).windowed_by(_HOURS).emit_strategy(None),
        lambda b, s, t: _grouped(s).cogroup(None),
        lambda b, s, t: _grouped(s).windowed_by(None),
        lambda b, s, t: _grouped(s).cogroup(_both).cogroup(None, _both),
        lambda b, s, t: _grouped(s).cogroup(_both).cogroup(_grouped(s), None),
        lambda b, s, t: _grouped(s).cogroup(_both).aggregate(None),
        lambda b, s, t: _grouped(s).cogroup(_both).windowed_by(None),
        lambda b, s, t: t.filter(None),
        lambda b, s, t: t.filter_not(None),
        lambda b, s, t: t.map_values(None),
        lambda b, s, t: t.group_by(None),
        lambda b, s, t: t.suppress(None),
        lambda b, s, t: t.join(None, _both),
        lambda b, s, t: t.join(t, None),
        lambda b, s, t: t.left_join(t, None),
        lambda b, s, t: t.outer_join(t, None),
        lambda b, s, t: t.outer_join(None, _both),
        lambda b, s, t: t.join(t, lambda v: v, None),
        lambda b, s, t: t.join(t, None, _both),
        lambda b, s, t: t.left_join(t, None, _both),
        lambda b, s, t: t.join(t, extractor=None, joiner=_both),
        lambda b, s, t: t.transform_values(None),
        lambda b, s, t: t.transform_values(Same, None),
        lambda b, s, t: t.transform_values(lambda: _SAME),
        lambda b, s, t: t.transform_values(lambda: None),
        lambda b, s, t: t.transform_values(_SAME),
        lambda b, s, t: _grouped_table(t).reduce(None, _both),
        lambda b, s, t: _grouped_table(t).reduce(_both, None),
        lambda b, s, t: _grouped_table(t).aggregate(None, _both, _both),
        lambda b, s, t: _grouped_table(t).aggregate(int, None, _both),
        lambda b, s, t: _grouped_table(t).aggregate(int, _both, None),
        lambda b, s, t: Materialized.as_(None),
        lambda b, s, t: Stores.key_value_store_builder(None),
    ],
)
def test_a_missing_argument_is_rejected_by_its_step(step: Any) -> None:
    """The error explains the argument and is raised before any record."""
    builder = StreamsBuilder()
    stream, table = builder.stream("in"), builder.table("table")
    with pytest.raises((TopologyError, TypeError, ValueError)) as raised:
        step(builder, stream, table)
    sentence = str(raised.value)
    assert "object is not" not in sentence, sentence
    assert "has no attribute" not in sentence, sentence


@pytest.mark.parametrize("step", ["process", "process_values"])
def test_a_supplier_that_returns_the_same_processor_twice_is_rejected(step: str) -> None:
    """Two tasks would share its state."""
    stream = StreamsBuilder().stream("in")
    with pytest.raises(TopologyError, match=r"returns the same Silent at each call.*a new one"):
        getattr(stream, step)(lambda: _SILENT)


@pytest.mark.parametrize("value", [None, 5, "text"])
def test_a_supplier_that_returns_no_processor_is_rejected(value: Any) -> None:
    """The error shows the returned value."""
    stream = StreamsBuilder().stream("in")
    with pytest.raises(TopologyError, match=f"returns {value!r}, not a processor"):
        stream.process(lambda: value)
