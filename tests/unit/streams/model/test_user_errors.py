"""Errors of user functions show the user's file and line, the record, the node, and the fix."""

import logging
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.streams import (
    Processor,
    PunctuationType,
    Record,
    Serdes,
    StreamsBuilder,
    Topology,
    TopologyTestDriver,
)
from ottla.streams.application.states import State, StateMachine
from ottla.streams.model.errors import DeserializationError, SerializationError, StreamsError
from ottla.streams.model.user_errors import UsersErrors, described

_HERE = Path(__file__).name


def _breaks(value: Any) -> Any:
    return 12 // value


class _Broken(Processor[Any, Any, Any, Any]):
    """A processor that fails in the given method."""

    def __init__(self, location: str) -> None:
        self._place = location

    def init(self, context: Any) -> None:
        super().init(context)
        if self._place == "init":
            _breaks(0)
        context.schedule("1 s", PunctuationType.WALL_CLOCK_TIME, _breaks_at)

    def process(self, record: Record[Any, Any]) -> None:
        """Fail if the value is 0."""
        _breaks(record.value)


def _breaks_at(now: int) -> None:
    _breaks(0)


def _mapping(builder: StreamsBuilder) -> None:
    builder.stream("in", name="read").map_values(lambda v: v).map_values(
        _breaks, named="divide"
    ).to("out")


def _grouped(builder: StreamsBuilder) -> None:
    counts = builder.stream("in", name="read").group_by_key()
    counts.aggregate(int, lambda value, total: _breaks(value), named="divide").to_stream().to("out")


def _extracting(builder: StreamsBuilder) -> None:
    source = builder.stream("in", timestamp=lambda r: _breaks(r.value), name="divide")
    source.to("out")


def _processing(builder: StreamsBuilder) -> None:
    builder.stream("in", name="read").process(lambda: _Broken("process"), named="divide")


_OF_HANDLER = "LogAndContinueProcessingExceptionHandler()"
_OF_EXTRACTOR = "No exception handler is called for errors of extractors."


@pytest.mark.parametrize(
    ("add", "advice", "other"),
    [
        (_mapping, _OF_HANDLER, _OF_EXTRACTOR),
        (_grouped, _OF_HANDLER, _OF_EXTRACTOR),
        (_extracting, _OF_EXTRACTOR, _OF_HANDLER),
        (_processing, _OF_HANDLER, _OF_EXTRACTOR),
    ],
)
def test_the_users_error_has_a_note_with_the_record(
    add: Callable[[StreamsBuilder], None], advice: str, other: str
) -> None:
    """Its type is unchanged, and the traceback contains only frames of the user and the driver."""
    builder = StreamsBuilder()
    add(builder)
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in")
        topic.pipe_input("k", 1)
        with pytest.raises(ZeroDivisionError) as caught:
            topic.pipe_input("k", 0)
    (note,) = caught.value.__notes__
    assert note.startswith(
        "Raised at the record of topic in, partition 0, offset 1, in divide. Fix the"
    )
    assert advice in note
    assert other not in note
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert (Path(frames[-1].filename).name, frames[-1].name) == (_HERE, "_breaks")
    assert {Path(frame.filename).name for frame in frames} == {_HERE, "test_driver.py"}


def test_an_error_of_a_punctuator_has_no_record() -> None:
    """The note still names the node."""
    topology = Topology()
    topology.add_source("read", "in")
    topology.add_processor("divide", lambda: _Broken("later"), "read")
    with TopologyTestDriver(topology) as driver, pytest.raises(ZeroDivisionError) as caught:
        driver.advance_wall_clock_time("1 s")
    assert caught.value.__notes__ == [
        "Raised outside of a record, in divide. Fix the function and restart the application."
    ]


def test_an_error_in_init_names_the_processor() -> None:
    """It is raised before the first record."""
    topology = Topology()
    topology.add_source("read", "in")
    topology.add_processor("divide", lambda: _Broken("init"), "read")
    with pytest.raises(ZeroDivisionError) as caught:
        TopologyTestDriver(topology)
    files = [
        Path(frame.filename).name for frame in traceback.extract_tb(caught.value.__traceback__)
    ]
    assert set(files) == {_HERE}
    assert caught.value.__notes__ == [
        "Raised outside of a record, in divide. Fix the function and restart the application."
    ]


def test_a_wrong_serde_is_reported_with_the_fix() -> None:
    """The error at the source and at the sink names the record and the option to set."""
    builder = StreamsBuilder()
    builder.stream("in", value=Serdes.long(), name="read").to("out", value=Serdes.string())
    with TopologyTestDriver(builder.build()) as driver:
        text, number = (driver.create_input_topic("in", value=serde_case) for serde_case in _BOTH)
        with pytest.raises(DeserializationError) as unread:
            text.pipe_input("k", "1")
        with pytest.raises(SerializationError) as unwritten:
            number.pipe_input("k", 1)
    (note,) = unread.value.__notes__
    assert "partition 0, offset 0, in read. Set the serdes of the source" in note
    assert "deserialization=LogAndContinueExceptionHandler()" in note
    (note,) = unwritten.value.__notes__
    assert "partition 0, offset 1, in KSTREAM-SINK-0000000001. Set the serdes of the sink" in note
    assert "production=LogAndContinueProductionExceptionHandler()" in note


def test_a_record_of_a_global_table_that_cannot_be_read_has_a_note() -> None:
    """It names the record and the source, like the error of any other topic."""
    builder = StreamsBuilder()
    builder.global_table("global", value=Serdes.long())
    builder.stream("in").to("out")
    with TopologyTestDriver(builder.build()) as driver, pytest.raises(DeserializationError) as bad:
        driver.create_input_topic("global").pipe_input("k", "text")
    (note,) = bad.value.__notes__
    assert "topic global, partition 0, offset 0, in KSTREAM-SOURCE-" in note


_BOTH: tuple[Any, Any] = (Serdes.string(), Serdes.long())


def test_a_reported_error_has_its_notes_and_the_users_frames() -> None:
    """UsersErrors wraps it in an Ottla error for terminals and logs."""
    with pytest.raises(StreamsError) as caught, UsersErrors("It failed.", StreamsError):
        _breaks(0)
    lines = str(caught.value).splitlines()
    assert lines[:2] == ["It failed.", "ZeroDivisionError: integer division or modulo by zero"]
    locations = [line.strip() for line in lines if line.lstrip().startswith("File ")]
    assert [location.partition(", in ")[2] for location in locations][-1] == "_breaks"
    assert all(_HERE in location for location in locations)
    assert "    return 12 // value" in lines
    assert described(ValueError("x")) == "ValueError: x"


def test_a_failing_state_listener_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The state has changed before the listener is called."""
    states = StateMachine()
    states.listener = lambda new, old: _breaks(0)
    with caplog.at_level(logging.ERROR):
        assert states.move(State.REBALANCING)
    assert states.state is State.REBALANCING
    (message,) = caplog.messages
    assert message.startswith(
        "The state listener failed; the application continues.\nZeroDivisionError"
    )
