"""Log lines: events with fields, as text and as JSON."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from ottla.base import logs


@pytest.fixture
def untouched() -> Iterator[None]:
    """The process's loggers are as they were before."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in ("ottla.a", "ottla.a.b", "ottla.net.connection"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def said(log_format: str, template: str, *arguments: object, name: str = "ottla.a") -> str:
    """Return what one call writes."""
    stream = io.StringIO()
    logs.configure(stream, level=logging.INFO, levels={}, log_format=log_format)
    logging.getLogger(name).info(template, *arguments)
    return stream.getvalue()


pytestmark = pytest.mark.usefixtures("untouched")


def test_a_line_of_text_has_event_and_fields() -> None:
    """Time, level, logger, what happened, and what varies."""
    line = said(logs.TEXT, "topic created topic=%s partitions=%d", "orders", 3)
    assert line.endswith(" INFO ottla.a topic created topic=orders partitions=3\n")
    assert line.count("\n") == 1


def test_json_has_the_fields_by_name_and_type() -> None:
    """Numbers stay numbers; what is put together of several parts is text."""
    line = said(logs.JSON, "elected leader=%d partition=%s-%d isr=%s", 1, "t", 0, [1, 2])
    found = json.loads(line)
    assert found.pop("time").endswith("Z")
    assert found == {
        "level": "INFO", "logger": "ottla.a", "event": "elected", "leader": 1,
        "partition": "t-0", "isr": "[1, 2]",
    }  # fmt: skip


@pytest.mark.parametrize("log_format", [logs.TEXT, logs.JSON])
def test_what_clients_choose_stays_inside_its_value(log_format: str) -> None:
    """A line break or a quote in a name makes no second line and no other field."""
    line = said(log_format, "group changed group=%s how=%s", "a\nERROR b=c", 'x="y" z')
    assert line.count("\n") == 1
    assert "\nERROR" not in line
    if log_format == logs.TEXT:
        assert line.endswith(' group changed group="a\\nERROR b=c" how="x=\\"y\\" z"\n')


def test_lines_of_other_libraries_are_told_as_they_are() -> None:
    """On one line, without fields."""
    line = said(logs.TEXT, "Task was destroyed\nbut is pending: %r", "x", name="asyncio")
    assert line.endswith("INFO asyncio Task was destroyed\\nbut is pending: 'x'\n")
    found = json.loads(said(logs.JSON, "slow %s", "x", name="asyncio"))
    assert found["event"] == "slow x"


def test_a_field_cannot_take_the_place_of_the_time() -> None:
    """Names that the line itself needs get a mark."""
    found = json.loads(said(logs.JSON, "late time=%s level=%s", "then", "deep"))
    assert (found["level"], found["time_"], found["level_"]) == ("INFO", "then", "deep")


@pytest.mark.parametrize("log_format", [logs.TEXT, logs.JSON])
def test_a_bug_keeps_its_traceback(log_format: str) -> None:
    """Behind the line, or as a field."""
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


def test_single_loggers_may_say_more_or_less() -> None:
    """And what is below them follows."""
    stream = io.StringIO()
    logs.configure(stream, level=logging.WARNING, levels={"ottla.a": logging.DEBUG})
    logging.getLogger("ottla.a.b").debug("seen")
    logging.getLogger("ottla.c").info("not seen")
    assert stream.getvalue().count("\n") == 1


def test_peers_cannot_fill_the_log() -> None:
    """Twenty lines of a kind in ten seconds; the next says how many were left out."""
    stream = io.StringIO()
    logs.configure(stream, level=logging.INFO, levels={})
    logger = logging.getLogger("ottla.net.connection")
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


def test_decisions_are_never_left_out() -> None:
    """A thousand topics are a thousand lines."""
    stream = io.StringIO()
    logs.configure(stream, level=logging.INFO, levels={})
    for number in range(1000):
        logging.getLogger("ottla.a").info("topic created topic=%s", number)
    assert stream.getvalue().count("\n") == 1000


def test_a_line_that_is_not_written_costs_nothing_to_say() -> None:
    """Templates are read only where a line is really written."""

    class Costly:
        def __str__(self) -> str:
            raise AssertionError("rendered")

    assert said(logs.TEXT, "x y=%s", 1)
    logging.getLogger("ottla.a").debug("seen what=%s", Costly())
