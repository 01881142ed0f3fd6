"""Log lines: events with fields, as text and as JSON."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from ottla.base import logs
from ottla.base.loading import load_module


@pytest.fixture
def untouched() -> Iterator[None]:
    """Restore the levels and handlers of the process's loggers after the test."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in ("ottla.a", "ottla.a.b", "ottla.net.connection"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def said(log_format: str, template: str, *arguments: object, name: str = "ottla.a") -> str:
    """Return the output of one call."""
    stream = io.StringIO()
    logs.configure(stream, level=logging.INFO, levels={}, log_format=log_format)
    logging.getLogger(name).info(template, *arguments)
    return stream.getvalue()


pytestmark = pytest.mark.usefixtures("untouched")


def test_a_line_of_text_has_event_and_fields() -> None:
    """A line has time, level, logger, event, and fields."""
    line = said(logs.TEXT, "topic created topic=%s partitions=%d", "orders", 3)
    assert line.endswith(" INFO ottla.a topic created topic=orders partitions=3\n")
    assert line.count("\n") == 1


def test_json_has_the_fields_by_name_and_type() -> None:
    """Numbers stay numbers, and a value of several parts is text."""
    line = said(logs.JSON, "elected leader=%d partition=%s-%d isr=%s", 1, "t", 0, [1, 2])
    fields = json.loads(line)
    assert fields.pop("time").endswith("Z")
    assert fields == {
        "level": "INFO", "logger": "ottla.a", "event": "elected", "leader": 1,
        "partition": "t-0", "isr": "[1, 2]",
    }  # fmt: skip


@pytest.mark.parametrize("log_format", [logs.TEXT, logs.JSON])
def test_values_of_clients_are_escaped(log_format: str) -> None:
    """A line break or a quote in a name begins neither a line nor a field."""
    line = said(log_format, "group changed group=%s how=%s", "a\nERROR b=c", 'x="y" z')
    assert line.count("\n") == 1
    assert "\nERROR" not in line
    if log_format == logs.TEXT:
        assert line.endswith(' group changed group="a\\nERROR b=c" how="x=\\"y\\" z"\n')


@pytest.mark.parametrize("log_format", [logs.TEXT, logs.JSON])
@pytest.mark.parametrize("letter", ["\x7f", "\x85", "\x9b", "\u2028", "\u202e"])
def test_no_control_character_is_written(log_format: str, letter: str) -> None:
    """Some programs take them for the end of a line, and terminals for commands."""
    for text in (f"a{letter}b", f"a {letter}b"):
        assert letter not in said(log_format, "group changed group=%s", text)
    assert letter not in said(log_format, f"other {letter} library", name="asyncio")


def test_messages_of_other_libraries_are_unchanged() -> None:
    """The message is on one line, without fields."""
    line = said(logs.TEXT, "Task was destroyed\nbut is pending: %r", "x", name="asyncio")
    assert line.endswith("INFO asyncio Task was destroyed\\nbut is pending: 'x'\n")
    fields = json.loads(said(logs.JSON, "slow %s", "x", name="asyncio"))
    assert fields["event"] == "slow x"


def test_field_cannot_replace_the_time() -> None:
    """Fields with reserved names get a mark."""
    fields = json.loads(said(logs.JSON, "late time=%s level=%s", "then", "deep"))
    assert (fields["level"], fields["time_"], fields["level_"]) == ("INFO", "then", "deep")


@pytest.mark.parametrize("log_format", [logs.TEXT, logs.JSON])
def test_exception_has_its_traceback(log_format: str) -> None:
    """The traceback follows the line, or is a field in JSON."""
    stream = io.StringIO()
    logs.configure(stream, level=logging.INFO, levels={}, log_format=log_format)
    try:
        raise ValueError("why")
    except ValueError as error:
        logging.getLogger("ottla.a").error("task failed task=%s", "x", exc_info=error)
    text = stream.getvalue()
    assert "ValueError: why" in text
    if log_format == logs.JSON:
        assert "Traceback" in json.loads(text)["traceback"]


def test_single_loggers_have_their_own_levels() -> None:
    """A level also applies to the loggers below it."""
    stream = io.StringIO()
    logs.configure(stream, level=logging.WARNING, levels={"ottla.a": logging.DEBUG})
    logging.getLogger("ottla.a.b").debug("seen")
    logging.getLogger("ottla.c").info("not seen")
    assert stream.getvalue().count("\n") == 1


@pytest.mark.parametrize(
    "name",
    [
        "ottla.net.connection",
        "ottla.server.authentication.refusals",
    ],
)
def test_repeated_lines_are_limited(name: str) -> None:
    """Twenty lines of a kind are written in ten seconds; the next one has the number of dropped
    lines.
    """
    # The module makes the logger known.
    load_module(name)
    stream = io.StringIO()
    logs.configure(stream, level=logging.INFO, levels={})
    logger = logging.getLogger(name)
    (handler,) = logging.getLogger().handlers

    def close(at: float) -> None:
        record = logger.makeRecord(
            logger.name, logging.INFO, "", 0, "connection closed peer=%s", (at,), None
        )
        record.created = 1000.0 + at
        handler.handle(record)

    for number in range(500):
        close(number / 100)
    assert stream.getvalue().count("\n") == logs.REPEATS_MAX
    close(11.0)
    last = stream.getvalue().splitlines()[-1]
    assert last.endswith("connection closed peer=11.0 more_unsaid=480")
    close(12.0)
    assert "more_unsaid" not in stream.getvalue().splitlines()[-1]


def test_lines_of_ottlas_own_decisions_are_never_dropped() -> None:
    """A thousand topics produce a thousand lines."""
    stream = io.StringIO()
    logs.configure(stream, level=logging.INFO, levels={})
    for number in range(1000):
        logging.getLogger("ottla.a").info("topic created topic=%s", number)
    assert stream.getvalue().count("\n") == 1000


def test_line_below_the_level_is_not_formatted() -> None:
    """A template is parsed only if its line is written."""

    class Costly:
        def __str__(self) -> str:
            raise AssertionError("rendered")

    assert said(logs.TEXT, "x y=%s", 1)
    logging.getLogger("ottla.a").debug("seen what=%s", Costly())
