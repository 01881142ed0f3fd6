"""The idle timeout: windows of an idle stream close by the wall clock if it is set."""

from typing import Any

import pytest

from ottla.streams import (
    EmitStrategy,
    Record,
    Serdes,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TimeWindows,
    Topology,
    TopologyTestDriver,
)

_STRING, _LONG = Serdes.string(), Serdes.long()
Written = list[tuple[str, int, int]]


def _suppressed(late: list[Record[Any, Any]], idle: str | None = "30 s") -> Topology:
    builder = StreamsBuilder()
    stream = builder.stream("in", key=_STRING, value=_STRING)
    windows = stream.group_by_key().windowed_by(TimeWindows.of_size_and_grace("10 s", "5 s"))
    final = windows.count().suppress(
        "until_window_closes", idle_timeout=idle, on_late=late.append if idle else None
    )
    final.to_stream(lambda key, _: f"{key.key}@{key.window.start}").to(
        "out", key=_STRING, value=_LONG
    )
    return builder.build()


def _pipe(driver: TopologyTestDriver, timestamp: int, key: str = "a") -> None:
    driver.create_input_topic("in", _STRING, _STRING).pipe_input(key, "x", timestamp)


def _written(driver: TopologyTestDriver) -> list[Any]:
    return driver.create_output_topic("out", _STRING, _LONG).read_key_values_to_list()


def test_a_window_closes_without_a_next_record() -> None:
    """After the idle timeout, and not before, stream time advances with the wall clock."""
    with TopologyTestDriver(_suppressed([])) as driver:
        _pipe(driver, 1000)
        driver.advance_wall_clock_time("29 s")
        assert not _written(driver)
        driver.advance_wall_clock_time("1 s")
        assert _written(driver) == [("a@0", 1)]
        driver.advance_wall_clock_time("1 h")
        assert not _written(driver)


def test_an_active_stream_closes_windows_by_stream_time() -> None:
    """Each record restarts the timeout; the window stays open for its grace period."""
    with TopologyTestDriver(_suppressed([])) as driver:
        _pipe(driver, 1000)
        for second in (20, 40, 60):
            driver.advance_wall_clock_time("20 s")
            _pipe(driver, 1000 + second)
        assert not _written(driver)
        _pipe(driver, 15_000)
        assert _written(driver) == [("a@0", 4)]


def test_a_record_for_a_window_closed_by_the_timeout_is_late() -> None:
    """Each window has one result; `on_late` receives the late record."""
    late: list[Record[Any, Any]] = []
    with TopologyTestDriver(_suppressed(late)) as driver:
        _pipe(driver, 1000)
        driver.advance_wall_clock_time("30 s")
        _pipe(driver, 2000)
        _pipe(driver, 32_000)
        driver.advance_wall_clock_time("30 s")
        assert _written(driver) == [("a@0", 1), ("a@30000", 1)]
    assert [(record.key.key, record.timestamp) for record in late] == [("a", 2000)]


def test_without_a_timeout_a_window_waits_for_the_next_record() -> None:
    """The behaviour without the option is Kafka's."""
    with TopologyTestDriver(_suppressed([], None)) as driver:
        _pipe(driver, 1000)
        driver.advance_wall_clock_time("10 h")
        assert not _written(driver)


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        (TimeWindows.of_size_with_no_grace("10 s"), ["[a@0/10000]"]),
        (SlidingWindows.of_time_difference_with_no_grace("10 s"), ["[a@1000/11000]"]),
        (SessionWindows.of_inactivity_gap_with_no_grace("10 s"), ["[a@11000/11000]"]),
    ],
)
def test_windows_with_emit_on_close_close_by_the_timeout(windows: Any, expected: list[str]) -> None:
    """Tumbling, sliding and session windows close, and a later record is late."""
    late: list[Any] = []
    builder = StreamsBuilder()
    stream = builder.stream("in", key=_STRING, value=_STRING)
    windowed: Any = stream.group_by_key().windowed_by(windows)
    closing = windowed.emit_strategy(EmitStrategy.on_window_close()).idle_timeout("30 s")
    counts = closing.on_late(late.append).count()
    counts.to_stream(lambda key, _: str(key)).to("out", key=_STRING, value=_LONG)
    start = 1000 if isinstance(windows, TimeWindows) else 11_000
    with TopologyTestDriver(builder.build()) as driver:
        _pipe(driver, start)
        driver.advance_wall_clock_time("29 s")
        assert not _written(driver)
        driver.advance_wall_clock_time("1 s")
        assert [key for key, _ in _written(driver)] == expected
        _pipe(driver, start)
        assert len(late) == 1
        assert not _written(driver)
