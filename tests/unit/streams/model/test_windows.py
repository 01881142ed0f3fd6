"""Windows reject the sizes, advances and grace periods that Kafka rejects, in each form."""

import pickle
import re
from datetime import timedelta
from typing import Any

import pytest

from ottla.streams import (
    JoinWindows,
    SessionWindow,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TimeWindow,
    TimeWindows,
    TopologyTestDriver,
    UnlimitedWindows,
)
from ottla.streams.model.durations import milliseconds


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: TimeWindows(0, 0), "size.*'0' ms"),
        (lambda: TimeWindows(-1, 1), "size.*'-1' ms"),
        (lambda: TimeWindows.of_size_with_no_grace(0), "size.*'0' ms"),
        (lambda: TimeWindows.of_size_with_no_grace(-1), "'-1'"),
        (lambda: TimeWindows(5, 0), "advance.*'0' ms"),
        (lambda: TimeWindows(5, 6), "advance.*'6' ms"),
        (lambda: TimeWindows(5, 5, -1), "grace.*'-1' ms"),
        (lambda: TimeWindows.of_size_with_no_grace(5).advance_by(0), "advance.*'0' ms"),
        (lambda: TimeWindows.of_size_with_no_grace(5).advance_by(-1), "'-1'"),
        (lambda: TimeWindows.of_size_with_no_grace(5).advance_by(6), "advance.*'6' ms"),
        (lambda: TimeWindows.of_size_and_grace(5, -1), "'-1'"),
        (lambda: SlidingWindows(-1), "time difference.*'-1' ms"),
        (lambda: SlidingWindows(5, -1), "grace.*'-1' ms"),
        (lambda: SlidingWindows.of_time_difference_with_no_grace(-1), "'-1'"),
        (lambda: SlidingWindows.of_time_difference_and_grace(5, -1), "'-1'"),
        (lambda: SessionWindows(0), "inactivity gap.*'0' ms"),
        (lambda: SessionWindows(5, -1), "grace.*'-1' ms"),
        (lambda: SessionWindows.of_inactivity_gap_with_no_grace(0), "inactivity gap.*'0' ms"),
        (lambda: SessionWindows.of_inactivity_gap_with_no_grace(-1), "'-1'"),
        (lambda: UnlimitedWindows(-1), "start.*'-1' ms"),
        (lambda: UnlimitedWindows.of().start_on(-1), "start.*'-1' ms"),
        (lambda: JoinWindows(5, 5, -1), "grace.*'-1' ms"),
        (lambda: JoinWindows(-5, 4), "before.*'-5' ms.*after.*'4' ms"),
        (lambda: JoinWindows.of_time_difference_with_no_grace(-1), "'-1'"),
        (lambda: JoinWindows.of_time_difference_and_grace(5, -1), "'-1'"),
        (lambda: JoinWindows.of_time_difference_with_no_grace(5).before(-6), "before.*'-6' ms"),
        (lambda: JoinWindows.of_time_difference_with_no_grace(5).after(-6), "after.*'-6' ms"),
    ],
)
def test_windows_reject_what_kafka_rejects(make: Any, sentence: str) -> None:
    """The error quotes the value."""
    with pytest.raises(ValueError, match=sentence):
        make()


_NOT_WHOLE = "must be a whole number, not"


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: TimeWindows("5 min", "5 min"),
            f"size_ms of TimeWindows {_NOT_WHOLE} '5 min'; for other types use "
            "TimeWindows.of_size_and_grace(size, grace)",
        ),
        (lambda: TimeWindows(1.5, 1.5), f"size_ms of TimeWindows {_NOT_WHOLE} 1.5"),
        (lambda: TimeWindows(5, None), f"advance_ms of TimeWindows {_NOT_WHOLE} None"),
        (lambda: TimeWindows(5, 5, "1 s"), f"grace_period_ms of TimeWindows {_NOT_WHOLE} '1 s'"),
        (lambda: JoinWindows(1.5, 2), f"before_ms of JoinWindows {_NOT_WHOLE} 1.5"),
        (lambda: JoinWindows(5, 5, 1.5), f"grace_period_ms of JoinWindows {_NOT_WHOLE} 1.5"),
        (lambda: SessionWindows(True), f"inactivity_gap_ms of SessionWindows {_NOT_WHOLE} True"),
        (lambda: SlidingWindows("1 s"), f"time_difference_ms of SlidingWindows {_NOT_WHOLE} '1 s'"),
        (lambda: UnlimitedWindows(1.5), f"start_ms of UnlimitedWindows {_NOT_WHOLE} 1.5"),
        (
            lambda: UnlimitedWindows.of().start_on("2024"),
            "a point in time is milliseconds since 1970 as an int, or a datetime, not '2024'",
        ),
        (lambda: TimeWindow("a", "b"), f"the start of a window {_NOT_WHOLE} 'a'"),
        (lambda: SessionWindow(1, 2.5), f"the end of a window {_NOT_WHOLE} 2.5"),
    ],
)
def test_a_time_of_the_wrong_type_is_rejected(make: Any, sentence: str) -> None:
    """The error names the field and the form that takes other types."""
    with pytest.raises(TypeError, match=re.escape(sentence)):
        make()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: TimeWindow(5, 3), "ends at '3'.*starts at '5'"),
        (lambda: TimeWindow(5, 5), "ends at '5'.*starts at '5'"),
        (lambda: TimeWindow(-1, 5), "starts at '-1'"),
        (lambda: SessionWindow(5, 3), "ends at '3'.*starts at '5'"),
        (lambda: SessionWindow(-1, 3), "starts at '-1'"),
        (lambda: TimeWindow(0, 5)._replace(end=-1) and TimeWindow(0, -1), "ends at '-1'"),
    ],
)
def test_a_window_must_end_after_it_starts(make: Any, sentence: str) -> None:
    """A window starts at 0 or later; a session of one record may end when it starts."""
    with pytest.raises(ValueError, match=sentence):
        make()
    assert SessionWindow(5, 5).end == 5


@pytest.mark.parametrize("window", [TimeWindow(0, 5), SessionWindow(5, 5)])
def test_a_window_is_a_pair_of_times(window: Any) -> None:
    """It is compared, shown and pickled like a tuple."""
    start, end = window
    assert window == (start, end)
    assert repr(window) == f"{type(window).__name__}(start={start}, end={end})"
    assert pickle.loads(pickle.dumps(window)) == window
    assert type(pickle.loads(pickle.dumps(window))) is type(window)


@pytest.mark.parametrize("length", [-2, "-2 ms", timedelta(milliseconds=-2)])
def test_one_side_of_a_join_window_may_be_negative(length: Any) -> None:
    """The other record is then at least that much later, or earlier, than this one."""
    windows = JoinWindows.of_time_difference_with_no_grace(5)
    assert windows.before(length) == JoinWindows(-2, 5)
    assert windows.after(length) == JoinWindows(5, -2)
    with pytest.raises(ValueError, match="'-2"):
        milliseconds(length)


@pytest.mark.parametrize(
    ("windows", "joined"),
    [
        (JoinWindows(-2, 5), [12, 13, 14, 15]),
        (JoinWindows(5, -2), [5, 6, 7, 8]),
        (JoinWindows(-2, 2), [12]),
    ],
)
@pytest.mark.parametrize("left_first", [True, False])
def test_a_join_with_a_negative_side_joins_as_in_kafka(
    windows: JoinWindows, joined: list[int], left_first: bool
) -> None:
    """A left record at 10 joins records from 10 - before to 10 + after, in any order of arrival."""
    builder = StreamsBuilder()
    one, two = builder.stream("one"), builder.stream("two")
    one.join(two, lambda _, value: value, windows.grace(100)).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        left, right = driver.create_input_topic("one"), driver.create_input_topic("two")
        if left_first:
            left.pipe_input("a", "left", timestamp=10)
        for time in range(21):
            right.pipe_input("a", time, timestamp=time)
        if not left_first:
            left.pipe_input("a", "left", timestamp=10)
        assert driver.create_output_topic("out").read_values_to_list() == joined


def test_a_left_join_with_a_negative_side_emits_unjoined_records() -> None:
    """The record is emitted when the window and the grace period have ended."""
    builder = StreamsBuilder()
    one, two = builder.stream("one"), builder.stream("two")
    one.left_join(two, lambda _, value: value, JoinWindows(-2, 5)).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        left, right = driver.create_input_topic("one"), driver.create_input_topic("two")
        left.pipe_input("a", "left", timestamp=10)
        right.pipe_input("a", 11, timestamp=11)
        right.pipe_input("a", 15, timestamp=15)
        left.pipe_input("b", "left", timestamp=20)
        right.pipe_input("b", 26, timestamp=26)
        assert driver.create_output_topic("out").read_key_values_to_list() == [
            ("a", 15),
            ("b", None),
        ]
