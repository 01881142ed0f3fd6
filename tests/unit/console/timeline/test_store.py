"""The timeline in SQLite, on times of the tests."""

from dataclasses import replace
from pathlib import Path

from ottla.console.accounts.database import Database
from ottla.console.timeline.spans import ClusterState, Controller, Leadership, NodeSpan, Period
from ottla.console.timeline.store import GAP_MS, LIFE_MS, TimelineStore

KEY = ("orders", 0)
LED = Leadership("a1", 1, 5, (1, 2, 3), (1, 2, 3))
FAILED = replace(LED, leader=2, leader_epoch=6, isr=(2, 3))
START = ClusterState(10_000, Controller(1, 7), (1, 2, 3), {KEY: LED})
FAILOVER = ClusterState(15_000, Controller(2, 8), (2, 3), {KEY: FAILED})


def test_a_failover_ends_spans_and_begins_others() -> None:
    """The leader, the ISR, the controller and the broker have spans that meet at the sample."""
    store = TimelineStore(Database(":memory:"))
    store.add("local", START)
    changes = store.add("local", FAILOVER)
    assert changes is not None
    assert changes.stopped == (1,)
    before, after = store.partitions("local", topic="orders")
    assert (before.leader, before.start_ms, before.end_ms) == (1, 10_000, 15_000)
    assert (after.leader, after.leader_epoch, after.end_ms) == (2, 6, None)
    assert (after.missing, before.missing) == ((1,), ())
    assert store.controllers("local") == [
        NodeSpan(1, 10_000, 15_000, 7),
        NodeSpan(2, 15_000, None, 8),
    ]
    ended = [row.node_id for row in store.brokers("local") if row.end_ms is not None]
    assert ended == [1]
    assert [row.leader for row in store.changes("local", since_ms=0, limit=9)] == [2]


def test_a_quiet_cluster_adds_no_rows() -> None:
    """Equal samples only extend the period; a sample that is not newer is ignored."""
    store = TimelineStore(Database(":memory:"))
    for second in range(10, 70, 5):
        store.add("local", replace(START, at_ms=second * 1000))
    assert store.periods("local") == [Period(10_000, 65_000)]
    assert len(store.partitions("local")) == 1
    assert store.add("local", replace(FAILOVER, at_ms=65_000)) is None
    assert store.changes("local", since_ms=0, limit=9) == []


def test_a_restart_continues_from_the_file(tmp_path: Path) -> None:
    """After a gap, what differs ended at the last sample before it; the rest continues."""
    first = Database(tmp_path / "console.sqlite3")
    TimelineStore(first).add("local", START)
    first.close()
    later_ms = START.at_ms + GAP_MS + 1
    second = Database(tmp_path / "console.sqlite3")
    store = TimelineStore(second)
    changes = store.add("local", replace(FAILOVER, at_ms=later_ms, brokers=(1, 2, 3)))
    assert changes is not None
    assert (changes.started, changes.stopped) == ((), ())
    assert store.periods("local") == [Period(10_000, 10_000), Period(later_ms, later_ms)]
    before, after = store.partitions("local")
    assert (before.end_ms, after.start_ms) == (10_000, later_ms)
    second.close()


def test_old_and_surplus_spans_are_deleted_but_never_current_ones() -> None:
    """A partition that changes all the time cannot fill the disk, and a week is kept."""
    store = TimelineStore(Database(":memory:"), spans_max=10)
    quiet = {("quiet", 0): LED}
    for number in range(50):
        led = replace(LED, leader=1 + number % 2, leader_epoch=number)
        at_ms = 10_000 + 5000 * number
        store.add("local", replace(START, at_ms=at_ms, partitions={KEY: led, **quiet}))
    spans = store.partitions("local")
    assert len([row for row in spans if row.topic == "orders"]) == 11
    assert [row.start_ms for row in spans if row.topic == "quiet"] == [10_000]
    last = replace(FAILOVER, at_ms=LIFE_MS * 2, partitions={KEY: LED, **quiet})
    store.add("local", last)
    assert [row.end_ms for row in store.partitions("local")] == [None, None]
    assert len(store.periods("local")) == 1


def test_deleted_topics_end_and_clusters_are_separate() -> None:
    """A deletion ends the span; another cluster with the same names is not affected."""
    store = TimelineStore(Database(":memory:"))
    store.add("a", START)
    store.add("b", START)
    store.add("a", replace(START, at_ms=20_000, partitions={}))
    assert [row.end_ms for row in store.partitions("a")] == [20_000]
    assert [row.end_ms for row in store.partitions("b")] == [None]
    assert store.partitions("a", since_ms=20_000) == []


def test_an_epoch_that_is_learned_later_is_a_span_of_its_own() -> None:
    """An unknown epoch is None, not a number."""
    store = TimelineStore(Database(":memory:"))
    store.add("local", replace(START, controller=Controller(1, None)))
    store.add("local", replace(START, at_ms=20_000))
    assert [row.epoch for row in store.controllers("local")] == [None, 7]


def test_spans_are_selected_by_partition_and_limit() -> None:
    """The limit keeps the newest spans, which are returned oldest first."""
    store = TimelineStore(Database(":memory:"))
    both = {KEY: LED, ("orders", 1): LED}
    store.add("local", replace(START, partitions=both))
    store.add("local", replace(FAILOVER, partitions={**both, KEY: FAILED}))
    assert [row.leader for row in store.partitions("local", partition=0)] == [1, 2]
    assert [row.partition for row in store.partitions("local", partition=1)] == [1]
    assert [row.leader for row in store.partitions("local", limit=1)] == [2]
