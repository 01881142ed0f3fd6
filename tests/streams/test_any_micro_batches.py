"""For any division into micro-batches, tables have the same final state as on the test driver.

Records of all topics are mixed, and several updates of a key are in one micro-batch. Responses
through a topic are delayed by any number of micro-batches. Times increase, because Spark reads the
records of all topics by time.
"""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ottla.streams import (
    FixedKeyProcessor,
    KTable,
    Materialized,
    ProcessorContext,
    PunctuationType,
    Record,
    Stores,
    StreamsBuilder,
    TableJoined,
    Topology,
    TopologyTestDriver,
)
from ottla.streams.layout.layout import Application, lay_out
from ottla.streams.model.names import changelog_name
from ottla.streams.queries.store_views import empty_view
from ottla.streams.task.task import ProducedRecord, TaskSettings, TopicRecord
from tests.process.broker_cluster import IS_CAMPAIGN
from tests.streams.recorded.topologies import SCENARIOS, Build, build, out, pair, versions
from tests.streams.staged import STRINGS, StagedRun, partition_of
from tests.streams.transcripts import NAMES

pytestmark = pytest.mark.slow

_ALL_TOPICS = ("in", "in-two", "other", "third")


@dataclass(frozen=True)
class Arrival:
    """A record ("-" is None), its delay after the previous one, and the end of a micro-batch."""

    topic: int
    after_ms: int
    key: str
    value: str
    ends: bool
    returned: int


def _text(value: str) -> bytes | None:
    return None if value == "-" else value.encode()


_ARRIVALS = st.lists(
    st.builds(
        Arrival,
        st.integers(0, 2),
        st.sampled_from((1, 1, 1, 2, 7)),
        st.sampled_from("abxx"),
        st.sampled_from(("a", "b", "x", "ax", "ay", "bx", "xy", "-", "-")),
        st.sampled_from((False, False, True)),
        st.integers(0, 4),
    ),
    max_size=30,
)


def _first(value: str) -> str | None:
    """Return the foreign key in a value, or None if it begins with x."""
    return None if value[0] == "x" else value[0]


def _summed(table: KTable[Any, Any]) -> KTable[Any, Any]:
    """Sum the lengths of all values in one group, which is deleted with its last value."""
    return table.group_by(lambda k, v: ("all", v)).aggregate(
        lambda: "0",
        lambda v, total: str(int(total) + len(v)),
        lambda v, total: None if int(total) == len(v) else str(int(total) - len(v)),
    )


def _joined(b: StreamsBuilder, **options: Any) -> KTable[Any, Any]:
    return b.table("in").join(b.table("other"), _first, pair, **options)


def _joined_left(b: StreamsBuilder) -> KTable[Any, Any]:
    return b.table("in").left_join(b.table("other"), _first, pair)


def _joined_itself(b: StreamsBuilder) -> None:
    table = b.table("in")
    out(table.join(table, _first, pair))


def _joined_right_first(b: StreamsBuilder) -> None:
    """Make the subscriptions, rather than the responses, lead to an earlier stage."""
    right = b.table("other")
    out(_summed(b.table("in").join(right, _first, pair)))


def _joined_versions(b: StreamsBuilder) -> None:
    left, right = (b.table(name, materialized=versions(name)) for name in ("in", "other"))
    out(left.join(right, _first, pair))


_FOREIGN: dict[str, Build] = {
    "foreign_inner": lambda b: out(_joined(b)),
    "foreign_left": lambda b: out(_joined_left(b)),
    "foreign_inner_stored": lambda b: out(_joined(b, materialized="joined")),
    "foreign_inner_summed": lambda b: out(_summed(_joined(b))),
    "foreign_left_summed": lambda b: out(_summed(_joined_left(b))),
    "foreign_inner_filtered": lambda b: out(
        b.table("in")
        .filter(lambda v: v != "ay")
        .join(b.table("other").filter(lambda v: v != "ax"), _first, pair)
        .map_values(lambda v: f"{v}!")
    ),
    "foreign_inner_of_counts": lambda b: out(
        b.table("in").join(b.table("other").group_by(lambda k, v: (v[0], v)).count(), _first, pair)
    ),
    "foreign_inner_chain": lambda b: out(_joined(b).join(b.table("third"), _first, pair)),
    "foreign_inner_joined_by_key": lambda b: out(_joined(b).outer_join(b.table("third"), pair)),
    "foreign_inner_of_itself": _joined_itself,
    "foreign_inner_right_first": _joined_right_first,
    "foreign_inner_versioned": _joined_versions,
}
_KEYED: dict[str, Build] = {
    "table_joins_summed": lambda b: out(
        _summed(
            b.table("in")
            .join(b.table("other"), pair)
            .left_join(b.table("third"), pair)
            .filter(lambda v: not v.startswith("ax"))
        )
    ),
    "table_outer_join_summed": lambda b: out(
        _summed(b.table("in").outer_join(b.table("other").map_values(lambda v: v[0]), pair))
    ),
    "table_group_aggregate_summed": lambda b: out(
        _summed(b.table("in").group_by(lambda k, v: (v[0], v)).count().map_values(str))
    ),
    "stream_joined_with_grouped_table": lambda b: (
        b.stream("in")
        .left_join(b.table("other").group_by(lambda k, v: (v[0], v)).count(), pair)
        .to("out")
    ),
}
_OWN = _FOREIGN | _KEYED
_RECORDED = [each for each in NAMES if each in SCENARIOS]


def _topology(name: str) -> Topology:
    if name not in _OWN:
        return build(name)
    builder = StreamsBuilder()
    _OWN[name](builder)
    return builder.build()


def _sources(topology: Topology) -> list[str]:
    """Return the topics on the broker that a topology reads."""
    nodes = topology.nodes.values()
    names = [topic for node in nodes for topic in getattr(node, "topics", ())]
    return [name for name in names if name in _ALL_TOPICS] or ["in", "in-two"]


def _staged(
    name: str,
    arrivals: list[Arrival],
    partitions: int,
    *,
    keeps_changelogs: bool = False,
    cache_bytes: int = 0,
) -> dict[str, list[ProducedRecord]]:
    """Run the stages; return the written records."""
    topology = _topology(name)
    sources = _sources(topology)
    topics = dict.fromkeys(_ALL_TOPICS, partitions)
    tasks = TaskSettings("test", STRINGS, statestore_cache_max_bytes=cache_bytes)
    run = StagedRun(Application(topology, tasks, keeps_changelogs), topics=topics)
    batch: dict[tuple[str, int], list[TopicRecord]] = {}
    now = 0
    for arrival in arrivals:
        now += arrival.after_ms
        topic, key = sources[arrival.topic % len(sources)], _text(arrival.key)
        topic_partition = topic, partition_of(key, partitions)
        batch.setdefault(topic_partition, []).append(TopicRecord(key, _text(arrival.value), now))
        if arrival.ends:
            run.run_once(batch, arrival.returned)
            batch = {}
    run.run(batch)
    return run.produced


def _driven(name: str, arrivals: list[Arrival]) -> dict[str, list[ProducedRecord]]:
    """Run the test driver; return the written records."""
    topology = _topology(name)
    sources = _sources(topology)
    serdes = {"default_key_serde": STRINGS.key, "default_value_serde": STRINGS.value}
    with TopologyTestDriver(topology, **serdes) as driver:
        now = 0
        for arrival in arrivals:
            now += arrival.after_ms
            record = TopicRecord(_text(arrival.key), _text(arrival.value), now)
            driver.pipe(sources[arrival.topic % len(sources)], record)
        return {topic: driver.produced(topic) for topic in driver.produced_topic_names}


def _ends(records: list[ProducedRecord]) -> dict[bytes | None, bytes]:
    """Return the final state of a table with these records."""
    last = {record.key: record.value for record in records}
    return {key: value for key, value in last.items() if value is not None}


def _final_states(
    expected: dict[str, list[ProducedRecord]], actual: dict[str, list[ProducedRecord]]
) -> tuple[dict[str, dict[bytes | None, bytes]], ...]:
    """Return the final state of each result and each store in both runs."""
    topics = [
        topic
        for topic in expected.keys() | actual.keys()
        # Subscriptions contain partitions, of which the driver has only one.
        if topic.startswith("out") or (topic.endswith("-changelog") and "SUBSCRIPTION" not in topic)
    ]
    return tuple(
        {topic: _ends(records.get(topic, [])) for topic in topics} for records in (expected, actual)
    )


def _examples(count: int, in_campaign: int) -> settings:
    """Return hypothesis's settings for a number of examples in `make test` and in `make campaign`."""
    return settings(
        max_examples=in_campaign if IS_CAMPAIGN else count,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


# Stateless steps write records of several topics in any order; global tables are filled first.
_UNORDERED = ("merge", "pattern", "stream_global_join", "stream_global_left_join")


@pytest.mark.parametrize("name", _FOREIGN)
@_examples(30, 60)
@given(_ARRIVALS, st.sampled_from((1, 3)))
def test_foreign_key_joins_have_the_drivers_final_state(
    name: str, arrivals: list[Arrival], partitions: int
) -> None:
    """The result, its store and its sum are equal with one partition and with three."""
    driven, staged = _driven(name, arrivals), _staged(name, arrivals, partitions)
    expected, actual = _final_states(driven, staged)
    assert actual == expected


@pytest.mark.parametrize("name", _KEYED)
@_examples(12, 20)
@given(_ARRIVALS, st.sampled_from((1, 3)))
def test_tables_have_the_drivers_final_state(
    name: str, arrivals: list[Arrival], partitions: int
) -> None:
    """Joins by key, groups and their sums are equal with one partition and with three."""
    driven, staged = _driven(name, arrivals), _staged(name, arrivals, partitions)
    expected, actual = _final_states(driven, staged)
    assert actual == expected


# With a cache, a stream is joined with the groups of the last micro-batch, and a group that had an
# entry only between two commits has no count, rather than the count 0.
_OF_GROUPS = (
    "stream_joined_with_grouped_table",
    "table_group_aggregate_summed",
    "foreign_inner_of_counts",
)
_CACHED = [each for each in _OWN if each not in _OF_GROUPS]


@pytest.mark.parametrize("name", _CACHED)
@_examples(12, 20)
@given(_ARRIVALS, st.sampled_from((1, 3)), st.sampled_from((1, 300, 1 << 20)))
def test_a_record_cache_does_not_change_the_final_state(
    name: str, arrivals: list[Arrival], partitions: int, cache_bytes: int
) -> None:
    """Joins do not read changes that another table's cache has not forwarded yet."""
    driven, staged = (
        _driven(name, arrivals),
        _staged(name, arrivals, partitions, cache_bytes=cache_bytes),
    )
    expected, actual = _final_states(driven, staged)
    assert actual == expected


@pytest.mark.parametrize("name", [each for each in _RECORDED if each not in _UNORDERED])
@_examples(5, 8)
@given(_ARRIVALS)
def test_every_operator_has_the_drivers_final_state(name: str, arrivals: list[Arrival]) -> None:
    """Each store and each topic has the same last value by key as with single records."""
    expected, actual = _final_states(_driven(name, arrivals), _staged(name, arrivals, 1))
    assert actual == expected


def _versions(
    topology: Topology, produced: dict[str, list[ProducedRecord]]
) -> dict[str, dict[tuple[bytes | None, int], bytes | None]]:
    """Return the last value of each key and timestamp in the changelogs of versioned stores."""
    changelogs = {
        changelog_name("test", name): name
        for name, store in topology.stores.items()
        if store.kind == "versioned"
    }
    return {
        name: {(record.key, record.timestamp): record.value for record in produced.get(topic, [])}
        for topic, name in changelogs.items()
    }


@pytest.mark.parametrize("name", [each for each in (*_OWN, *_RECORDED) if each not in _UNORDERED])
@_examples(5, 8)
@given(_ARRIVALS, st.sampled_from((1, 3)))
def test_changelogs_on_the_broker_have_the_final_state_of_those_with_every_change(
    name: str, arrivals: list[Arrival], partitions: int
) -> None:
    """Only some changes of a micro-batch are written, but every version of a versioned store."""
    every = _staged(name, arrivals, partitions)
    latest = _staged(name, arrivals, partitions, keeps_changelogs=True)
    expected, actual = _final_states(every, latest)
    assert actual == expected
    topology = _topology(name)
    assert _versions(topology, latest) == _versions(topology, every)
    assert all(len(records) <= len(every[topic]) for topic, records in latest.items())


# A cache passes on only the last update of a key. Results of these that count updates, or keep a
# group of an intermediate value, depend on the others, as in Kafka. `foreign_key_named` is the
# recorded one whose cached result decides which instruction its subscription store keeps.
_SHOW_EACH_UPDATE = (
    "count_of_counts",
    "foreign_key_named",
    "session_regrouped",
    "suppress_bytes",
    "suppress_records",
    "suppress_time",
    "table_group_aggregate",
    "table_group_count",
    "table_group_reduce",
    "table_join_chain",
    "transform_values_stored",
    "window_regrouped",
)
_CACHED_RECORDED = [name for name in _RECORDED if name not in (*_UNORDERED, *_SHOW_EACH_UPDATE)]


@pytest.mark.parametrize("name", _CACHED_RECORDED)
@_examples(4, 6)
@given(_ARRIVALS, st.sampled_from((1, 3)), st.sampled_from((300, 1 << 20)))
def test_caches_do_not_change_the_final_state(
    name: str, arrivals: list[Arrival], partitions: int, cache_bytes: int
) -> None:
    """Updates of a micro-batch are merged, and some are evicted from a small cache."""
    uncached = _staged(name, arrivals, partitions)
    cached = _staged(name, arrivals, partitions, cache_bytes=cache_bytes)
    expected, actual = _final_states(uncached, cached)
    assert actual == expected


def test_a_store_view_of_a_micro_batch_has_every_version() -> None:
    """An older version that arrives later does not replace the newest one."""
    builder = StreamsBuilder()
    builder.table("in", materialized=Materialized.as_(Stores.versioned("kept", "1 h")))
    topology = builder.build()
    run = StagedRun(
        Application(topology, TaskSettings("test", STRINGS), keeps_changelogs=True),
        topics={"in": 1},
    )
    run.run({("in", 0): [TopicRecord(b"k", b"new", 100), TopicRecord(b"k", b"old", 50)]})
    view: Any = empty_view(topology.stores["kept"], STRINGS, 1)
    records = run.produced["test-kept-changelog"]
    view.apply([(0, record.key, record.value, record.timestamp) for record in records])
    assert (view.get("k").value, view.get("k", 60).value) == ("new", "old")


def _in_one_batch(*records: tuple[int, str, str]) -> list[Arrival]:
    """Return a right row, a left row that joins it, and further records in one micro-batch."""
    first = Arrival(1, 1, "a", "Ann", True, 0), Arrival(0, 1, "k", "a", True, 9)
    return [*first, *(Arrival(topic, 1, key, value, False, 0) for topic, key, value in records)]


@pytest.mark.parametrize(
    "arrivals",
    [
        _in_one_batch((0, "k", "b1"), (0, "k", "b2")),
        _in_one_batch((0, "k", "-"), (0, "k", "b1")),
        _in_one_batch((0, "k", "-"), (0, "k", "b1"), (0, "k", "b2")),
        _in_one_batch((0, "k", "x1"), (0, "k", "x2")),
        _in_one_batch((0, "k", "x1"), (0, "k", "-")),
        _in_one_batch((1, "a", "-"), (0, "k", "a2")),
        _in_one_batch((0, "k", "-"), (0, "k", "a"), (0, "k", "-"), (1, "a", "-"), (0, "k", "a")),
    ],
    ids=[
        "two updates to a missing key",
        "deleted and written again",
        "deleted and written twice",
        "two updates without a foreign key",
        "no foreign key, then deleted",
        "the right row deleted before an update",
        "the same value again",
    ],
)
@pytest.mark.parametrize("partitions", [1, 3])
def test_inner_foreign_key_join_deletes_results_of_older_updates(
    arrivals: list[Arrival], partitions: int
) -> None:
    """No stale row remains if its tombstone is dropped because of a newer value."""
    produced = _staged("foreign_inner_summed", arrivals, partitions)
    assert _ends(produced["out"]) == {}
    name = "foreign_inner"
    driven, staged = _driven(name, arrivals), _staged(name, arrivals, partitions)
    expected, actual = _final_states(driven, staged)
    assert actual == expected


def test_the_partitioner_of_an_inner_foreign_key_join_gets_only_foreign_keys() -> None:
    """A subscription that retracts a result in flight has no foreign key, and needs no partitioner."""
    builder = StreamsBuilder()
    chooses = TableJoined(other_partitioner=lambda topic, key, value, count: ord(key[0]) % count)
    out(_joined(builder, joined=chooses))
    application = Application(builder.build(), TaskSettings("test", STRINGS))
    run = StagedRun(application, topics=dict.fromkeys(_ALL_TOPICS, 3))
    left = "in", partition_of(b"k", 3)
    run.run({("other", ord("a") % 3): [TopicRecord(b"a", b"Ann", 1)]})
    run.run({left: [TopicRecord(b"k", b"a1", 2)]})
    assert _ends(run.produced["out"]) == {b"k": b"a1+Ann"}
    run.run({left: [TopicRecord(b"k", b"x1", 3), TopicRecord(b"k", b"x2", 4)]})
    assert _ends(run.produced["out"]) == {}


class _EveryMinute(FixedKeyProcessor[str, str, str]):
    """Forward the records of each minute of wall-clock time."""

    def init(self, context: ProcessorContext[str, str]) -> None:
        """Schedule the punctuator."""
        super().init(context)
        self._waiting: list[Record[str, str]] = []
        context.schedule(60_000, PunctuationType.WALL_CLOCK_TIME, self._forward)

    def process(self, record: Record[str, str]) -> None:
        """Keep the record until the next minute."""
        self._waiting.append(record)

    def _forward(self, _now: int) -> None:
        for record in self._waiting:
            self.context.forward(record)
        self._waiting.clear()


def _joined_of_punctuator() -> Topology:
    builder = StreamsBuilder()
    orders = builder.stream("in").process_values(_EveryMinute).to_table()
    out(orders.join(builder.table("other"), _first, pair))
    return builder.build()


def _rows(topic: str, partitions: int, rows: dict[str, str], now: int) -> dict[Any, Any]:
    batch: dict[tuple[str, int], list[TopicRecord]] = {}
    for key, value in rows.items():
        topic_partition = topic, partition_of(key.encode(), partitions)
        batch.setdefault(topic_partition, []).append(TopicRecord(key.encode(), value.encode(), now))
    return batch


_ROWS = {f"k{number}": f"a{number}" for number in range(12)}


def test_foreign_key_join_of_records_that_a_punctuator_forwards() -> None:
    """Responses reach the subscribing task, although its records have no source partition."""
    application = Application(_joined_of_punctuator(), TaskSettings("test", STRINGS))
    run = StagedRun(application, topics=dict.fromkeys(_ALL_TOPICS, 3))
    run.run(_rows("other", 3, {"a": "Ann"}, 0))
    run.tick(0)
    run.run(_rows("in", 3, _ROWS, 1))
    run.tick(60_000)
    assert len(_ends(run.produced["out"])) == len(_ROWS)


def test_foreign_key_join_after_the_left_topic_gained_partitions() -> None:
    """Its records go to the task of their key, and so do the responses."""
    application = Application(_topology("foreign_inner"), TaskSettings("test", STRINGS))
    claimed = [
        kind.partitions
        for kind in lay_out([application], dict.fromkeys(_ALL_TOPICS, 2)).sub_topologies
    ]
    topics = dict.fromkeys(_ALL_TOPICS, 2) | {"in": 5}
    run = StagedRun(application, topics=topics, claimed=claimed)
    run.run(_rows("other", 2, {"a": "Ann"}, 0))
    run.run(_rows("in", 5, _ROWS, 1))
    assert len(_ends(run.produced["out"])) == len(_ROWS)
