"""Dropped records are counted as Kafka's dropped-records, and logged at a limited rate."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.streams import (
    ExceptionHandlers,
    JoinWindows,
    LogAndContinueExceptionHandler,
    LogAndSkipOnInvalidTimestamp,
    Materialized,
    Processor,
    Record,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamsBuilder,
    TopologyTestDriver,
)
from ottla.streams.layout.layout import Application
from ottla.streams.model.raw import TopicRecord
from ottla.streams.model.records import SessionWindow, Windowed
from ottla.streams.model.windows import TimeWindows
from ottla.streams.settings.handlers import LogAndContinueProcessingExceptionHandler
from ottla.streams.stores.builders import StoreBuilder
from ottla.streams.task.task import TaskSettings
from tests.streams.staged import STRINGS, StagedRun

_Piped = tuple[str | None, Any, int]


def _dropped(driver: TopologyTestDriver) -> dict[str, float]:
    return {each.name: metric.metric_value for each, metric in driver.metrics().items()}


def _drops(build: Callable[[StreamsBuilder], object], *piped: _Piped, **settings: Any) -> float:
    """Return the number of records that a topology drops of those in its topic `in`."""
    builder = StreamsBuilder()
    build(builder)
    with TopologyTestDriver(builder.build(), TaskSettings("app", **settings)) as driver:
        topic = driver.create_input_topic("in")
        for key, value, timestamp in piped:
            topic.pipe_input(key, value, timestamp)
        return _dropped(driver)["dropped-records-total"]


def _group(builder: StreamsBuilder) -> Any:
    return builder.stream("in").group_by_key()


def _versioned(builder: StreamsBuilder) -> None:
    supplier = Stores.persistent_versioned_key_value_store("kept", 10)
    builder.table("in", materialized=Materialized.as_(supplier))


def _fails(value: Any) -> Any:
    raise ValueError(value)


def _versioned_join(builder: StreamsBuilder) -> None:
    history = [Materialized.as_(Stores.versioned(name, "1 h")) for name in ("left", "right")]
    builder.table("in", history[0]).join(builder.table("other", history[1]), max)


def _versioned_foreign_join(left: str, right: str) -> Callable[[StreamsBuilder], None]:
    def build(builder: StreamsBuilder) -> None:
        history = [Materialized.as_(Stores.versioned(name, "1 h")) for name in ("left", "right")]
        right_table = builder.table(right, history[1])
        builder.table(left, history[0]).join(right_table, lambda v: "key", max)

    return build


def _writes(store: StoreBuilder, put: Callable[[Any, Record[str, Any]], object]) -> Any:
    """Return a topology of a processor that writes to a store of its own."""

    class Writes(Processor[str, Any, str, Any]):
        """Call `put` with the store and the record."""

        stores = (store,)

        def process(self, record: Record[str, Any]) -> None:
            put(self.context.store(store.name), record)

    return lambda builder: builder.stream("in").process(Writes)


_LATE = (("a", 1, 100), ("a", 1, 5))
# The segments of a store cover at least a minute.
_EXPIRED = (("a", 1, 1_000_000), ("a", 1, 5))
_SETTINGS = {
    "deserialization": {
        "exception_handlers": ExceptionHandlers(deserialization=LogAndContinueExceptionHandler())
    },
    "processing": {
        "exception_handlers": ExceptionHandlers(
            processing=LogAndContinueProcessingExceptionHandler()
        )
    },
}


@pytest.mark.parametrize(
    ("build", "piped", "dropped", "logged"),
    [
        (
            lambda b: _group(b).count(),
            [(None, 1, 0), ("a", None, 0)],
            2,
            "due to null key or value",
        ),
        (
            lambda b: _group(b).windowed_by(TimeWindows.of_size_with_no_grace(10)).count(),
            [(None, 1, 0)],
            1,
            "due to null key. ",
        ),
        (
            lambda b: _group(b).windowed_by(TimeWindows.of_size_with_no_grace(10)).count(),
            _LATE,
            1,
            "for expired window. topic=[in] partition=[0] offset=[1] timestamp=[5] window=[0,10] "
            "expiration=[100] streamTime=[100] node=[KSTREAM-AGGREGATE-0000000002]",
        ),
        (
            lambda b: (
                _group(b).windowed_by(TimeWindows.of_size_with_no_grace(10).advance_by(5)).count()
            ),
            [("a", 1, 100), ("a", 1, 7)],
            2,
            "for expired window",
        ),
        (
            lambda b: (
                _group(b).windowed_by(SlidingWindows.of_time_difference_with_no_grace(10)).count()
            ),
            _LATE,
            1,
            "for expired window",
        ),
        (
            lambda b: (
                _group(b).windowed_by(SessionWindows.of_inactivity_gap_with_no_grace(10)).count()
            ),
            _LATE,
            1,
            "for expired window",
        ),
        (lambda b: b.table("in"), [(None, 1, 0)], 1, "due to null key. "),
        (_versioned, _LATE, 1, "for expired put"),
        (
            lambda b: b.stream("in").join(b.table("other"), max),
            [(None, 1, 0), ("a", None, 0)],
            2,
            "due to null join key or value",
        ),
        (
            lambda b: b.stream("in").join(
                b.stream("other"), max, JoinWindows.of_time_difference_with_no_grace(10)
            ),
            [(None, 1, 0), ("a", None, 0)],
            2,
            "due to null key or value",
        ),
        (
            lambda b: b.table("in").join(b.table("other"), lambda v: None, max),
            [("a", 1, 0)],
            1,
            "due to null foreign key",
        ),
        (
            lambda b: b.stream("in").group_by(lambda v: None).count(),
            [("a", 1, 0)],
            1,
            "due to null key. topic=[in] partition=[0] offset=[0]",
        ),
        (
            lambda b: b.stream("in", timestamp=LogAndSkipOnInvalidTimestamp).to("out"),
            [("a", 1, -5)],
            1,
            "due to negative extracted timestamp. topic=[in] partition=[0] offset=[0] "
            "extractedTimestamp=[-5]",
        ),
        (_versioned_join, _LATE, 1, "due to out-of-order update of a versioned table"),
        (
            _versioned_foreign_join("in", "other"),
            _LATE,
            1,
            "due to out-of-order update of a versioned table",
        ),
        (
            _versioned_foreign_join("other", "in"),
            _LATE,
            1,
            "due to out-of-order update of a versioned table",
        ),
        (
            lambda b: b.table("in").join(b.table("other"), lambda v: v or None, max),
            [("a", 1, 0), ("a", 0, 1), ("a", None, 2)],
            1,
            "due to null foreign key",
        ),
        (
            lambda b: b.stream("in").join(
                b.stream("other"), max, JoinWindows.of_time_difference_with_no_grace(10)
            ),
            _EXPIRED,
            1,
            "for expired segment. topic=[in] partition=[0] offset=[1] "
            "store=[KSTREAM-JOINTHIS-0000000004-store]",
        ),
        (
            _writes(
                Stores.window("kept", 60_000, 10), lambda s, r: s.put(r.key, r.value, r.timestamp)
            ),
            _EXPIRED,
            1,
            "for expired segment",
        ),
        (
            _writes(
                Stores.session("kept", 60_000),
                lambda s, r: s.put(Windowed(r.key, SessionWindow(r.timestamp, r.timestamp)), 1),
            ),
            _EXPIRED,
            1,
            "for expired segment",
        ),
        (
            _writes(Stores.versioned("kept", 10), lambda s, r: s.put(r.key, r.value, r.timestamp)),
            _LATE,
            1,
            "for expired put. topic=[in] partition=[0] offset=[1] store=[kept]",
        ),
        (
            lambda b: b.stream("in").to("out", partitioner=lambda topic, k, v, count: []),
            [("a", 1, 0)],
            1,
            "as partitioner returned empty partitions. topic=[in] partition=[0] offset=[0] "
            "sinkTopic=[out]",
        ),
    ],
)
def test_a_dropped_record_is_counted_and_logged(
    build: Any,
    piped: list[_Piped],
    dropped: int,
    logged: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """All reasons for which Kafka Streams counts a dropped record are covered, with their logs."""
    assert _drops(build, *piped) == dropped
    assert f"Skipping record {logged}" in caplog.text


def test_a_change_of_a_window_that_was_closed_while_idle_is_counted_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Suppress also calls `on_late` with it."""
    late: list[Record[Any, Any]] = []
    builder = StreamsBuilder()
    windows = TimeWindows.of_size_and_grace(10_000, 5_000)
    counts = _group(builder).windowed_by(windows).count()
    counts.suppress("until_window_closes", idle_timeout="20 s", on_late=late.append)
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in")
        topic.pipe_input("a", 1, 1000)
        driver.advance_wall_clock_time("30 s")
        topic.pipe_input("a", 1, 2000)
        assert _dropped(driver)["dropped-records-total"] == len(late) == 1
    assert (
        "for expired window. topic=[in] partition=[0] offset=[1] timestamp=[2000] "
        "window=[0,10000] expiration=[26000] streamTime=[31000]"
    ) in caplog.text


def test_a_response_to_an_older_value_is_counted_but_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A foreign-key join drops it; Kafka logs it at level TRACE."""
    builder = StreamsBuilder()
    builder.table("in").join(builder.table("other"), lambda v: v[0], max)
    application = Application(builder.build(), TaskSettings("app", STRINGS))
    run = StagedRun(application, topics={"in": 1, "other": 1})
    run.run({("in", 0): [TopicRecord(b"k", b"a1", 1), TopicRecord(b"k", b"a2", 2)]})
    assert run.dropped == 1
    assert not caplog.messages


def test_a_session_that_expired_can_be_removed() -> None:
    """Only puts are counted, as in Kafka."""
    store = Stores.session("kept", 60_000)

    def put_and_remove_first(sessions: Any, record: Record[str, Any]) -> None:
        sessions.put(Windowed("a", SessionWindow(record.timestamp, record.timestamp)), 1)
        sessions.remove(Windowed("a", SessionWindow(5, 5)))

    assert _drops(_writes(store, put_and_remove_first), ("a", 1, 5), ("a", 1, 1_000_000)) == 0


@pytest.mark.parametrize("kind", ["processing"])
def test_a_record_that_a_handler_skips_is_counted(kind: str) -> None:
    """The handler logs it, and the counter includes it, as in Kafka."""
    assert _drops(lambda b: b.stream("in").map_values(_fails), ("a", 1, 0), **_SETTINGS[kind]) == 1


def test_an_unreadable_record_is_counted() -> None:
    """This requires a deserialization handler that continues."""
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    settings = TaskSettings("app", **_SETTINGS["deserialization"])
    with TopologyTestDriver(builder.build(), settings) as driver:
        driver.pipe("in", TopicRecord(b"{", b"{", 0))
        assert _dropped(driver)["dropped-records-total"] == 1


def test_outer_joins_and_records_in_time_drop_nothing() -> None:
    """An outer join emits a record without a key; the metrics exist with the value 0."""

    def build(builder: StreamsBuilder) -> None:
        windows = JoinWindows.of_time_difference_with_no_grace(10)
        builder.stream("in").left_join(builder.stream("other"), lambda a, b: a, windows)

    assert _drops(build, (None, 1, 0), ("a", 1, 5)) == 0


def test_the_log_is_limited_but_the_counter_is_not(caplog: pytest.LogCaptureFixture) -> None:
    """A node logs a reason once in ten seconds of wall-clock time, with the number in between."""
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count()
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in")
        for _ in range(5):
            topic.pipe_input(None, 1)
        assert len(caplog.messages) == 1
        driver.advance_wall_clock_time("10 s")
        topic.pipe_input(None, 1)
        assert len(caplog.messages) == 2
        assert caplog.messages[1].endswith(
            "offset=[5] node=[KSTREAM-AGGREGATE-0000000002] (4 more like it before)"
        )
        # Kafka's rate counts a window of 30 s as complete.
        assert _dropped(driver) == {
            "dropped-records-total": 6,
            "dropped-records-rate": pytest.approx(6 / 30),
        }
        driver.advance_wall_clock_time("2 min")
        assert _dropped(driver)["dropped-records-rate"] == 0


def test_metrics_have_kafkas_names_and_tags() -> None:
    """The metrics are the same as `driver.metrics()` in TopologyTestDriver."""
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    with TopologyTestDriver(builder.build()) as driver:
        name = next(iter(driver.metrics()))
    assert name[:3] == (
        "dropped-records-total",
        "stream-task-metrics",
        "The total number of dropped records",
    )
    assert dict(name.tags) == {"task-id": "0_0", "thread-id": "MainThread"}
