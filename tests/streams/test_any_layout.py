"""For any layout and any micro-batches, tables have the same final state as on the test driver.

The topics have one, two or five partitions, and the tables are read directly or from a repartition
topic. A micro-batch reads each partition of the sources and of the returned records up to an offset
of its own, as on Spark. So the response to an update of a foreign-key join arrives any number of
micro-batches later, after other updates of the row.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ottla.streams import (
    BufferConfig,
    Grouped,
    KTable,
    Repartitioned,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    Topology,
    TopologyTestDriver,
)
from ottla.streams.layout.layout import Application
from ottla.streams.task.task import TaskSettings, TopicRecord
from tests.process.broker_cluster import IS_CAMPAIGN
from tests.streams.recorded.topologies import out, pair
from tests.streams.staged import STRINGS, Batch, StagedRun, partition_of

pytestmark = pytest.mark.slow

_TOPICS = ("left", "right", "third")
_COUNTS = (1, 2, 5)


@dataclass(frozen=True)
class Layout:
    """The partitions of the topics, and the tables that are read from a repartition topic."""

    partitions: tuple[int, int, int]
    repartitioned: tuple[bool, bool, bool]
    tasks: int | None
    """The number of partitions of the repartition topics; None is the number of their input."""

    def counts(self) -> dict[str, int]:
        """Return the number of partitions of each topic."""
        return dict(zip(_TOPICS, self.partitions, strict=True))

    def table(self, builder: StreamsBuilder, number: int) -> KTable[Any, Any]:
        """Add the table of a topic."""
        if not self.repartitioned[number]:
            return builder.table(_TOPICS[number])
        options = Repartitioned.as_(f"again-{number}")
        if self.tasks is not None:
            options = options.with_number_of_partitions(self.tasks)
        return builder.stream(_TOPICS[number]).repartition(options).to_table()


@dataclass(frozen=True)
class Sent:
    """A record: the number of its topic, its key and its value (None is a tombstone)."""

    topic: int
    key: str
    value: str | None


@dataclass(frozen=True)
class Division:
    """The number of records that each reading of a partition takes, one after the other.

    Later readings take all records. With `in_time_order`, a micro-batch reads all partitions of the
    sources up to the same time, as Spark's source does.
    """

    sizes: tuple[int, ...]
    in_time_order: bool = False


_SENT = st.lists(
    st.builds(
        Sent,
        st.integers(0, 2),
        st.sampled_from("abcx"),
        st.sampled_from(("a", "a1", "a2", "b", "b1", "c", "x", "x1", None, None)),
    ),
    max_size=24,
)
_DIVISIONS = st.builds(Division, st.lists(st.integers(0, 3), max_size=60).map(tuple))
_FLAGS = st.tuples(st.booleans(), st.booleans(), st.booleans())
_ANY = st.builds(
    Layout,
    st.tuples(*[st.sampled_from(_COUNTS)] * 3),
    _FLAGS,
    st.sampled_from((None, *_COUNTS)),
)
# Tables that are joined by key have the same number of partitions.
_EQUAL = st.builds(
    lambda count, flags: Layout((count, count, count), flags, None),
    st.sampled_from(_COUNTS),
    _FLAGS,
)

Add = Callable[[StreamsBuilder, Layout], None]


def _first(value: str) -> str | None:
    """Return the foreign key in a value, or None if it begins with x."""
    return None if value[0] == "x" else value[0]


def _tables(builder: StreamsBuilder, layout: Layout, *numbers: int) -> list[KTable[Any, Any]]:
    """Add the tables in this order, which decides which topic of a cycle is on the broker."""
    return [layout.table(builder, number) for number in numbers]


def _inner(builder: StreamsBuilder, layout: Layout) -> None:
    left, right = _tables(builder, layout, 0, 1)
    out(left.join(right, _first, pair))


def _inner_right_first(builder: StreamsBuilder, layout: Layout) -> None:
    right, left = _tables(builder, layout, 1, 0)
    out(left.join(right, _first, pair))


def _outer_left(builder: StreamsBuilder, layout: Layout) -> None:
    left, right = _tables(builder, layout, 0, 1)
    out(left.left_join(right, _first, pair))


def _outer_left_right_first(builder: StreamsBuilder, layout: Layout) -> None:
    right, left = _tables(builder, layout, 1, 0)
    out(left.left_join(right, _first, pair))


def _chain(builder: StreamsBuilder, layout: Layout) -> None:
    left, right, third = _tables(builder, layout, 0, 1, 2)
    out(left.join(right, _first, pair).join(third, _first, pair))


def _left_chain(builder: StreamsBuilder, layout: Layout) -> None:
    third, left, right = _tables(builder, layout, 2, 0, 1)
    out(left.left_join(right, _first, pair).join(third, lambda v: v[-1], pair))


def _of_counts(builder: StreamsBuilder, layout: Layout) -> None:
    left, right = _tables(builder, layout, 0, 1)
    groups = right.group_by(lambda k, v: (v[0], v), Grouped.as_("groups")).count()
    out(left.join(groups, _first, pair))


def _summed(builder: StreamsBuilder, layout: Layout) -> None:
    left, right = _tables(builder, layout, 0, 1)
    joined = left.join(right, _first, pair)
    counted = joined.group_by(lambda k, v: (v[-1], v)).aggregate(
        lambda: "0",
        lambda v, total: str(int(total) + len(v)),
        lambda v, total: None if int(total) == len(v) else str(int(total) - len(v)),
    )
    out(counted)


def _by_key(builder: StreamsBuilder, layout: Layout) -> None:
    left, right, third = _tables(builder, layout, 0, 1, 2)
    out(left.join(right, pair).outer_join(third, pair))


def _by_key_and_foreign_key(builder: StreamsBuilder, layout: Layout) -> None:
    left, right, third = _tables(builder, layout, 0, 1, 2)
    out(left.left_join(third, pair).join(right, _first, pair))


def _regrouped(builder: StreamsBuilder, layout: Layout) -> None:
    left, right = _tables(builder, layout, 0, 1)
    out(left.left_join(right, pair).group_by(lambda k, v: (v[0], v)).count())


_ANY_LAYOUT: dict[str, Add] = {
    "foreign_inner": _inner,
    "foreign_inner_right_first": _inner_right_first,
    "foreign_left": _outer_left,
    "foreign_left_right_first": _outer_left_right_first,
    "foreign_chain": _chain,
    "foreign_left_chain": _left_chain,
    "foreign_of_counts": _of_counts,
    "foreign_summed": _summed,
}
_EQUAL_LAYOUT: dict[str, Add] = {
    "by_key": _by_key,
    "by_key_and_foreign_key": _by_key_and_foreign_key,
    "regrouped": _regrouped,
}


def _closed_windows(builder: StreamsBuilder, _layout: Layout) -> None:
    counted = builder.stream("left").group_by_key().windowed_by(_WINDOWS).count()
    out(counted.suppress(Suppressed.until_window_closes(BufferConfig.unbounded())))


def _closed_windows_regrouped(builder: StreamsBuilder, layout: Layout) -> None:
    groups = Grouped.as_("groups")
    counted = builder.stream("left").group_by(lambda k, v: k, groups).windowed_by(_WINDOWS).count()
    out(counted.suppress(Suppressed.until_window_closes(BufferConfig.unbounded())))


def _suppressed(builder: StreamsBuilder, layout: Layout) -> None:
    left, right = _tables(builder, layout, 0, 1)
    joined = left.left_join(right, _first, pair)
    out(joined.suppress(Suppressed.until_time_limit(_WAIT_MS, BufferConfig.unbounded())))


def _suppressed_by_key(builder: StreamsBuilder, layout: Layout) -> None:
    left, right = _tables(builder, layout, 0, 1)
    joined = left.left_join(right, pair)
    out(joined.suppress(Suppressed.until_time_limit(_WAIT_MS, BufferConfig.unbounded())))


_WINDOWS = TimeWindows.of_size_with_no_grace(4)
_WAIT_MS = 50
_BUFFERED: dict[str, Add] = {
    "closed_windows": _closed_windows,
    "closed_windows_regrouped": _closed_windows_regrouped,
    "suppressed_foreign_left": _suppressed,
    "suppressed_by_key": _suppressed_by_key,
}


def _topology(add: Add, layout: Layout) -> Topology:
    builder = StreamsBuilder()
    add(builder, layout)
    return builder.build()


def _records(sent: list[Sent], topology: Topology) -> list[tuple[str, TopicRecord]]:
    """Return the records of the topics that a topology reads; some have equal timestamps."""
    read = {topic for node in topology.nodes.values() for topic in getattr(node, "topics", ())}
    results = []
    for number, each in enumerate(sent):
        topic = _TOPICS[each.topic]
        value = None if each.value is None else each.value.encode()
        if topic in read:
            results.append((topic, TopicRecord(each.key.encode(), value, number // 2)))
    return results


class _Sources:
    """The topics on the broker, with the records that no micro-batch has read yet."""

    def __init__(self, records: list[tuple[str, TopicRecord]], counts: dict[str, int]) -> None:
        self._waiting: dict[tuple[str, int], deque[TopicRecord]] = {}
        for topic, record in records:
            key = topic, partition_of(record.key, counts[topic])
            self._waiting.setdefault(key, deque()).append(record)

    def take(self, size: Callable[[], int]) -> Batch:
        """Return the next records of each partition."""
        batch = {}
        for key, waiting in self._waiting.items():
            batch[key] = [waiting.popleft() for _ in range(min(size(), len(waiting)))]
        return {key: records for key, records in batch.items() if records}

    def take_until(self, time: int) -> Batch:
        """Return the records of each partition before a time."""
        batch: dict[tuple[str, int], list[TopicRecord]] = {}
        for key, waiting in self._waiting.items():
            while waiting and waiting[0].timestamp < time:
                batch.setdefault(key, []).append(waiting.popleft())
        return batch

    def __bool__(self) -> bool:
        return any(self._waiting.values())


def _staged(
    topology: Topology,
    records: list[tuple[str, TopicRecord]],
    layout: Layout,
    division: Division,
) -> StagedRun:
    """Run a topology in micro-batches; return the run."""
    counts = layout.counts()
    run = StagedRun(Application(topology, TaskSettings("test", STRINGS)), topics=counts)
    sources = _Sources(records, counts)
    sizes = iter(division.sizes)
    time = 0

    def size() -> int:
        return next(sizes, len(records) + 1)

    is_left = True
    while sources or is_left:
        time += size()
        batch = sources.take_until(time) if division.in_time_order else sources.take(size)
        is_left = run.run_partly(batch, size)
    return run


def _driven(topology: Topology, records: list[tuple[str, TopicRecord]]) -> TopologyTestDriver:
    """Run a topology record by record in Kafka's test driver; return the closed driver."""
    serdes = {"default_key_serde": STRINGS.key, "default_value_serde": STRINGS.value}
    with TopologyTestDriver(topology, **serdes) as driver:
        for topic, record in records:
            driver.pipe(topic, record)
        return driver


def _table(records: Any) -> dict[bytes | None, bytes]:
    """Return the final state of a table with these records."""
    last = {record.key: record.value for record in records}
    return {key: value for key, value in last.items() if value is not None}


def _final_tables(
    add: Add, sent: list[Sent], layout: Layout, division: Division
) -> tuple[dict[bytes | None, bytes], dict[bytes | None, bytes]]:
    """Return the final state of the result in the stages, and in the driver."""
    topology = _topology(add, layout)
    records = _records(sent, topology)
    driver = _driven(topology, records)
    run = _staged(topology, records, layout, division)
    expected = driver.produced("out") if "out" in driver.produced_topic_names else []
    return _table(run.produced.get("out", [])), _table(expected)


def _examples(count: int, in_campaign: int) -> settings:
    return settings(
        max_examples=in_campaign if IS_CAMPAIGN else count,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


# A row is joined; then two updates refer to an entry that does not exist.
_WITHDRAWN = [
    Sent(0, "a", "b"),
    Sent(1, "b", "a1"),
    Sent(0, "a", "c"),
    Sent(0, "a", "c1"),
]
_ONE = Layout((1, 1, 1), (False, False, False), None)


@pytest.mark.parametrize("name", _ANY_LAYOUT)
@_examples(25, 400)
@given(_SENT, _ANY, _DIVISIONS)
@example(_WITHDRAWN, _ONE, Division((1, 1, 1, 2, 2, 1)))
@example(_WITHDRAWN, _ONE, Division((1, 1, 1, 2, 0, 1, 1)))
@example(_WITHDRAWN, Layout((5, 2, 1), (True, True, True), None), Division((1, 1, 1, 2, 1)))
def test_joins_by_foreign_key_have_the_drivers_final_state(
    name: str, sent: list[Sent], layout: Layout, division: Division
) -> None:
    """Inner, left and chained joins, wherever responses return among later updates."""
    staged, driven = _final_tables(_ANY_LAYOUT[name], sent, layout, division)
    assert staged == driven


@pytest.mark.parametrize("name", _EQUAL_LAYOUT)
@_examples(15, 300)
@given(_SENT, _EQUAL, _DIVISIONS)
def test_joins_by_key_have_the_drivers_final_state(
    name: str, sent: list[Sent], layout: Layout, division: Division
) -> None:
    """Joins by key, their chains and groups, with and without repartition topics."""
    staged, driven = _final_tables(_EQUAL_LAYOUT[name], sent, layout, division)
    assert staged == driven


# Later records of so many keys that each task has one: they end the waiting for earlier ones.
_LAST_KEYS = tuple(f"last-{number}" for number in range(40))


@pytest.mark.parametrize("name", _BUFFERED)
@_examples(8, 200)
@given(_SENT, _EQUAL, _DIVISIONS)
def test_suppressed_tables_have_the_drivers_final_state(
    name: str, sent: list[Sent], layout: Layout, division: Division
) -> None:
    """Each task emits a change when its own stream time has passed, in a later micro-batch."""
    topology = _topology(_BUFFERED[name], layout)
    records = _records(sent, topology)
    records += [("left", TopicRecord(key.encode(), b"x", 1000)) for key in _LAST_KEYS]
    driver = _driven(topology, records)
    division = replace(division, in_time_order=True)
    run = _staged(topology, records, layout, division)
    expected = _without_last(_table(driver.produced("out")))
    assert _without_last(_table(run.produced.get("out", []))) == expected


def _without_last(table: dict[bytes | None, bytes]) -> dict[bytes | None, bytes]:
    return {key: value for key, value in table.items() if b"last-" not in (key or b"")}
