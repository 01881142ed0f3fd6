"""Topics that are joined by key need equal partition counts; else building the topology fails."""

from typing import Any

import pytest

from ottla.streams import JoinWindows, StreamsBuilder, TopologyError, TopologyTestDriver
from ottla.streams.task.task import TaskSettings

_WINDOWS = JoinWindows.of_time_difference_with_no_grace(5)


def _joiner(one: Any, other: Any) -> Any:
    return one, other


def test_repartition_topics_of_different_sizes_are_not_joined() -> None:
    """The error names the topics and the fix."""
    builder = StreamsBuilder()
    streams = [
        builder.stream(topic).repartition(name=topic, number_of_partitions=count)
        for topic, count in (("a", 3), ("b", 4))
    ]
    streams[0].join(streams[1], _joiner, _WINDOWS).to("out")
    with pytest.raises(
        TopologyError,
        match=r"a-repartition has 3, b-repartition has 4.*repartition\(number_of_partitions=4\)",
    ):
        builder.build()


@pytest.mark.parametrize("kind", ["stream", "table", "tables", "cogroup"])
def test_topics_of_different_sizes_are_not_joined(kind: str) -> None:
    """This applies to streams, tables and cogroups."""
    builder = StreamsBuilder()
    if kind == "stream":
        builder.stream("a").join(builder.stream("b"), _joiner, _WINDOWS).to("out")
    elif kind == "table":
        builder.stream("a").join(builder.table("b"), _joiner).to("out")
    elif kind == "tables":
        builder.table("a").map_values(str).join(builder.table("b"), _joiner).to_stream().to("out")
    else:
        group = builder.stream("a").group_by_key().cogroup(lambda value, total: total + value)
        group.cogroup(builder.stream("b").group_by_key(), _joiner).aggregate(str)
    topology = builder.build()
    topology.check_copartitioning({"a": 2, "b": 2})
    topology.check_copartitioning({"a": 2})
    with pytest.raises(TopologyError, match="a has 2, b has 3"):
        topology.check_copartitioning({"a": 2, "b": 3})
    with pytest.raises(TopologyError, match="a has 2, b has 3"):
        TopologyTestDriver(topology, settings=TaskSettings("x", partitions_of={"a": 2, "b": 3}))


def test_topics_that_are_not_joined_by_key_may_differ() -> None:
    """Examples are global tables, foreign keys, merged streams and streams with a new key."""
    builder = StreamsBuilder()
    stream = builder.stream("a")
    stream.join(builder.global_table("b"), lambda value: value, _joiner).to("out")
    stream.merge(builder.stream("c")).to("merged")
    stream.select_key(str).join(builder.table("d"), _joiner).to("joined")
    builder.table("e").join(builder.table("f"), lambda value: value, _joiner)
    topology = builder.build()
    topology.check_copartitioning({topic: number for number, topic in enumerate("abcdef", 1)})
