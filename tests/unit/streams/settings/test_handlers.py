"""Exception handlers for errors of deserialization, processing and production."""

import zlib
from typing import Any

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.streams import (
    Processor,
    PunctuationType,
    Record,
    Serdes,
    StreamsBuilder,
    TopologyTestDriver,
)
from ottla.streams.model.errors import DeserializationError, SerializationError
from ottla.streams.model.raw import ProducedRecord, TopicRecord
from ottla.streams.serdes import Serde
from ottla.streams.settings.handlers import (
    DefaultProductionExceptionHandler,
    ErrorHandlerContext,
    ExceptionHandlers,
    LogAndContinueExceptionHandler,
    LogAndContinueProcessingExceptionHandler,
    LogAndContinueProductionExceptionHandler,
    Response,
)
from ottla.streams.task.task import TaskSettings
from ottla.streams.topology.topology import Topology

_CONTINUE = {
    "deserialization": LogAndContinueExceptionHandler(),
    "processing": LogAndContinueProcessingExceptionHandler(),
    "production": LogAndContinueProductionExceptionHandler(),
}


def _topology() -> Topology:
    """Read numbers, divide 12 by them, and write the results."""
    builder = StreamsBuilder()
    numbers = builder.stream("in", key=Serdes.string(), value=Serdes.integer())
    numbers.map_values(lambda number: 12 // number).peek(lambda _: None).to(
        "out", key=Serdes.string(), value=Serdes.integer()
    )
    return builder.build()


def _driver(dead_letters: str | None = "dead", **handlers: Any) -> TopologyTestDriver:
    chosen = ExceptionHandlers(**handlers, dead_letter_queue_topic_name=dead_letters)
    return TopologyTestDriver(_topology(), settings=TaskSettings("app", exception_handlers=chosen))


def _pipe(driver: TopologyTestDriver, *values: bytes) -> None:
    for number, value in enumerate(values):
        driver.pipe("in", TopicRecord(b"k", value, number, [("h", b"x")]))


def _int(number: int) -> bytes:
    return number.to_bytes(4, "big", signed=True)


def _headers(record: ProducedRecord) -> dict[str, str]:
    headers = [(name, (value or b"").decode()) for name, value in record.headers]
    return {name.removeprefix("__streams.errors."): value for name, value in headers}


def test_without_handlers_an_error_ends_the_application() -> None:
    """The user's error is raised unchanged."""
    with _driver(None) as driver, pytest.raises(ZeroDivisionError):
        _pipe(driver, _int(0))
    with _driver(None) as driver, pytest.raises(DeserializationError, match="in-0 at offset 0"):
        _pipe(driver, b"xy")


def test_failed_records_are_skipped_if_the_handler_continues() -> None:
    """The records before and after them are processed."""
    with _driver(None, **_CONTINUE) as driver:
        _pipe(driver, _int(3), b"xy", _int(0), _int(4))
        assert [record.value for record in driver.produced("out")] == [_int(4), _int(3)]
        assert driver.produced_topic_names == {"out"}


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (b"xy", "builtins.ValueError", "an integer has 4 bytes, not 2"),
        (_int(0), "builtins.ZeroDivisionError", "integer division or modulo by zero"),
    ],
)
@pytest.mark.parametrize("goes_on", [True, False])
def test_a_dead_letter_is_the_source_record_with_headers_about_the_error(
    value: bytes, kind: str, message: str, goes_on: bool
) -> None:
    """It keeps bytes, time and headers, and is written even if the application then fails."""
    with _driver(**(_CONTINUE if goes_on else {})) as driver:
        try:
            _pipe(driver, value)
        except (DeserializationError, ZeroDivisionError):
            assert not goes_on
        (letter,) = driver.produced("dead")
    assert letter[:4] == ("dead", b"k", value, 0)
    headers = _headers(letter)
    assert "Traceback" in headers.pop("stacktrace")
    assert headers == {
        "h": "x",
        "exception": kind,
        "message": message,
        "topic": "in",
        "partition": "0",
        "offset": "0",
    }


def test_a_record_that_a_sink_cannot_serialize_is_skipped() -> None:
    """The dead letter is the source record, not the failed result."""
    builder = StreamsBuilder()
    builder.stream("in", value=Serdes.integer(), key=Serdes.string()).map_values(
        lambda number: number << 30
    ).to("out", key=Serdes.string(), value=Serdes.integer())
    handlers = ExceptionHandlers(
        production=_CONTINUE["production"], dead_letter_queue_topic_name="dead"
    )
    settings = TaskSettings("app", exception_handlers=handlers)
    with TopologyTestDriver(builder.build(), settings=settings) as driver:
        _pipe(driver, _int(7), _int(1))
        assert [record.value for record in driver.produced("out")] == [_int(1 << 30)]
        assert driver.produced("dead")[0].value == _int(7)
    with TopologyTestDriver(builder.build()) as driver, pytest.raises(SerializationError):
        _pipe(driver, _int(7))


def _too_large(record: ProducedRecord) -> ApiError | None:
    return ApiError(ErrorCode.MESSAGE_TOO_LARGE) if record.value == _int(3) else None


def _compressed() -> Serde[str]:
    return Serdes.serde_from(
        lambda text: zlib.compress(text.encode()), lambda data: zlib.decompress(data).decode()
    )


def test_any_error_of_a_users_deserializer_reaches_the_handler() -> None:
    """Also one that is no ValueError, such as zlib.error; without a handler the error says why."""
    builder = StreamsBuilder()
    source = builder.stream("in", key=Serdes.bytes(), value=_compressed())
    source.to("out", key=Serdes.bytes(), value=Serdes.string())
    topology, handler = builder.build(), LogAndContinueExceptionHandler()
    settings = TaskSettings("app", exception_handlers=ExceptionHandlers(deserialization=handler))
    with TopologyTestDriver(topology, settings) as driver:
        _pipe(driver, b"not compressed", zlib.compress(b"a"))
        assert [record.value for record in driver.produced("out")] == [b"a"]
    reason = "cannot be read by Serdes.custom: Error -3"
    with TopologyTestDriver(topology) as driver, pytest.raises(DeserializationError, match=reason):
        _pipe(driver, b"not compressed")


class _UnwritableError(Exception):
    """An error of a user's serializer."""


def test_any_error_of_a_users_serializer_reaches_the_handler() -> None:
    """Also one of a class of the user."""

    def write(value: str) -> bytes:
        if value == "a":
            raise _UnwritableError(value)
        return value.encode()

    builder = StreamsBuilder()
    builder.stream("in").to("out", value=Serdes.serde_from(write, bytes.decode))
    handlers = ExceptionHandlers(production=LogAndContinueProductionExceptionHandler())
    settings = TaskSettings("app", exception_handlers=handlers)
    with TopologyTestDriver(builder.build(), settings) as driver:
        topic = driver.create_input_topic("in")
        topic.pipe_input("k", "a")
        topic.pipe_input("k", "b")
        assert [record.value for record in driver.produced("out")] == [b"b"]


def test_a_record_that_the_broker_rejects_is_skipped() -> None:
    """The driver simulates the broker; the dead letter is the source record."""
    with _driver(**_CONTINUE) as driver:
        driver.refuse("out", _too_large)
        _pipe(driver, _int(3), _int(4), _int(2))
        assert [record.value for record in driver.produced("out")] == [_int(4), _int(6)]
        (letter,) = driver.produced("dead")
    assert letter[:4] == ("dead", b"k", _int(4), 1)
    assert _headers(letter)["exception"] == "ottla.base.errors.ApiError"


def test_a_rejected_record_ends_the_application_by_default() -> None:
    """The processing handler, which would continue, is not called."""
    handlers = {**_CONTINUE, "production": DefaultProductionExceptionHandler()}
    with _driver(**handlers) as driver:
        driver.refuse("out", _too_large)
        with pytest.raises(ApiError, match="larger than"):
            _pipe(driver, _int(4))
        assert len(driver.produced("dead")) == 1


def test_a_handler_is_called_once_for_the_innermost_processor() -> None:
    """It receives the failed node and the record that this node received."""
    seen: list[tuple[str, Any]] = []

    class Watching:
        def handle_error(
            self, context: ErrorHandlerContext, record: Record[Any, Any] | None, error: Exception
        ) -> Response:
            seen.append((context.processor_node_id, record and record.value))
            return Response.fail()

    with _driver(None, processing=Watching()) as driver, pytest.raises(ZeroDivisionError):
        _pipe(driver, _int(0))
    assert seen == [("KSTREAM-MAPVALUES-0000000001", 0)]


def test_a_handler_is_called_for_a_failing_punctuator() -> None:
    """There is no record, and therefore no topic and no offset."""

    class Failing(Processor[Any, Any, Any, Any]):
        def init(self, context: Any) -> None:
            super().init(context)
            context.schedule(10, PunctuationType.WALL_CLOCK_TIME, lambda now: 1 // 0)

        def process(self, record: Record[Any, Any]) -> None:
            pass

    topology = Topology().add_source("s", "in").add_processor("p", Failing, "s")
    handlers = ExceptionHandlers(
        processing=_CONTINUE["processing"], dead_letter_queue_topic_name="d"
    )
    settings = TaskSettings("app", exception_handlers=handlers)
    with TopologyTestDriver(topology, settings=settings) as driver:
        driver.advance_wall_clock_time(10)
        (letter,) = driver.produced("d")
    assert (_headers(letter)["topic"], _headers(letter)["offset"]) == ("", "-1")
    with TopologyTestDriver(topology) as driver, pytest.raises(ZeroDivisionError):
        driver.advance_wall_clock_time(10)
