"""Views of transformed tables: a reader has a transformer of its own, which lives as long as it."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.streams import KTable, StreamsBuilder, Topology, TopologyTestDriver
from ottla.streams.layout.layout import Application
from ottla.streams.task.task import TaskSettings, TopicRecord
from tests.streams.staged import STRINGS, StagedRun


class _Numbering:
    """Number the values that it transforms; list the transformers that were closed."""

    closed: list["_Numbering"]

    def init(self, context: Any) -> None:
        self.context, self.count = context, 0

    def transform(self, key: str, value: str) -> str:
        """Return the value with its number."""
        self.count += 1
        return f"{value}{self.count}"

    def close(self) -> None:
        """List this transformer."""
        self.closed.append(self)


def _topology(view: Callable[[KTable[Any, Any]], KTable[Any, Any]]) -> Topology:
    """Join a stream with the view of a transformed table."""
    builder = StreamsBuilder()
    table = view(builder.table("table").transform_values(_Numbering))
    builder.stream("in").join(table, lambda left, right: left + right).to("out")
    return builder.build()


def _read(topic: str, value: bytes, at: int) -> dict[tuple[str, int], list[TopicRecord]]:
    return {(topic, 0): [TopicRecord(b"k", value, at)]}


@pytest.mark.parametrize("view", [lambda table: table, lambda table: table.map_values(str.upper)])
def test_a_transformer_of_a_view_keeps_its_fields_between_micro_batches(view: Any) -> None:
    """The staged run has the values of the test driver, whose task never ends."""
    _Numbering.closed = []
    topology = _topology(view)
    run = StagedRun(
        Application(topology, TaskSettings("app", STRINGS)), topics={"in": 1, "table": 1}
    )
    run.run(_read("table", b"x", 0))
    for number in (1, 2, 3):
        run.run(_read("in", b"s", number))
    serdes = {"default_key_serde": STRINGS.key, "default_value_serde": STRINGS.value}
    with TopologyTestDriver(topology, **serdes) as driver:
        for topic, value in (("table", b"x"), ("in", b"s"), ("in", b"s"), ("in", b"s")):
            driver.pipe(topic, TopicRecord(b"k", value, 0))
        driven = [record.value for record in driver.produced("out")]
    staged = [record.value for record in run.produced["out"]]
    assert [value.lower() for value in staged] == [b"sx1", b"sx2", b"sx3"]
    assert staged == driven


def test_the_transformer_of_a_view_is_closed_with_its_reader() -> None:
    """So is the transformer of the table itself, which is another instance."""
    _Numbering.closed = []
    TopologyTestDriver(_topology(lambda table: table)).close()
    assert len(set(map(id, _Numbering.closed))) == 2
