"""The file of the audit log on a simulated disk, and the logger."""

import errno
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ottla.base import logs
from ottla.base.errors import ConfigError
from ottla.server.audit.log import LoggerSink
from ottla.server.audit.record import AuditEvent, AuditRecord, Origin
from ottla.server.audit.sinks import WAITING_BYTES_MAX, FileSink
from ottla.testing.sim.files import SimFileSystem
from ottla.testing.sim.world import Machine, World

FILE = "/log/audit.log"


def record(number: int, name: str = "ann") -> AuditRecord:
    """Return a record that differs from others by its number."""
    return AuditRecord(
        time_ms=0,
        broker_id=number,
        event=AuditEvent.CHANGE,
        origin=Origin(f"User:{name}", "10.0.0.1"),
    )


def sink_on(machine: Machine, max_bytes: int = 1 << 20, backups: int = 2) -> FileSink:
    """Return a file sink on a machine."""
    return FileSink(
        FILE, max_bytes=max_bytes, backups=backups, files=machine.files, clock=machine.clock
    )


def run(scenario: Callable[[Machine], Awaitable[Any]]) -> None:
    """Run a scenario in a process of a machine."""
    with World(1) as world:
        machine = world.machine("broker")

        async def whole() -> None:
            await machine.start(lambda: scenario(machine))  # type: ignore[arg-type,return-value]

        world.run(whole())


def numbers(files: SimFileSystem, path: str = FILE) -> list[int]:
    """Return the numbers of the records in a file."""
    content = files.read(path)
    assert not content or content.endswith(b"\n")
    return [json.loads(line)["broker"] for line in content.splitlines()]


def test_lines_are_written_in_their_order() -> None:
    """Those that come while a thread writes are written next, and `close` writes the rest."""

    async def scenario(machine: Machine) -> None:
        sink = sink_on(machine)
        await sink.open()
        for number in range(5):
            sink.write(record(number))
            await machine.clock.sleep(0)
        await machine.clock.sleep(1)
        assert numbers(machine.files) == list(range(5))
        sink.write(record(5))
        await sink.close()
        await sink.close()
        assert numbers(machine.files) == list(range(6))

    run(scenario)


def test_file_is_renamed_at_its_size_and_the_oldest_is_removed() -> None:
    """A line is in one file as a whole."""

    async def scenario(machine: Machine) -> None:
        size = len(record(0).line()) + 1
        sink = sink_on(machine, max_bytes=3 * size)
        await sink.open()
        for number in range(8):
            sink.write(record(number))
            await machine.clock.sleep(1)
        await sink.close()
        assert numbers(machine.files) == [6, 7]
        assert numbers(machine.files, f"{FILE}.1") == [3, 4, 5]
        assert numbers(machine.files, f"{FILE}.2") == [0, 1, 2]
        for number in range(8, 11):
            sink.write(record(number))
        await sink.close()
        assert numbers(machine.files, f"{FILE}.2") == [3, 4, 5]
        assert not machine.files.exists(f"{FILE}.3")

    run(scenario)


def test_full_disk_is_reported_and_nothing_is_lost(caplog: pytest.LogCaptureFixture) -> None:
    """The lines wait for space; a part of a line that was written before is removed."""

    async def scenario(machine: Machine) -> None:
        sink = sink_on(machine)
        await sink.open()
        sink.write(record(0))
        await machine.clock.sleep(1)
        machine.files.faults.fail("append", nth=1, error=errno.ENOSPC, times=5)
        for number in range(1, 4):
            sink.write(record(number))
        await machine.clock.sleep(2)
        assert numbers(machine.files) == [0]
        await machine.clock.sleep(10)
        assert numbers(machine.files) == [0, 1, 2, 3]
        assert sink.lost_count == 0
        await sink.close()

    run(scenario)
    lines = [row.getMessage() for row in caplog.records if row.name.endswith("audit.sinks")]
    assert [line.partition(" path")[0] for line in lines] == [
        "audit log not written",
        "audit log written again",
    ]
    assert "waiting=3 lost=0" in lines[0]


def test_lines_that_do_not_fit_into_memory_are_counted() -> None:
    """A disk that stays full does not fill the memory, and `close` does not wait for it."""

    async def scenario(machine: Machine) -> None:
        sink = sink_on(machine)
        await sink.open()
        machine.files.faults.fail("append", nth=1, error=errno.ENOSPC, times=-1)
        size = len(record(10_000, "x" * 500).line()) + 1
        count = WAITING_BYTES_MAX // size + 10
        for number in range(10_000, 10_000 + count):
            sink.write(record(number, "x" * 500))
        assert sink.lost_count == 10
        await machine.clock.sleep(3)
        await sink.close()
        assert sink.lost_count == count

    run(scenario)


def test_torn_line_of_a_crash_does_not_join_the_next_one() -> None:
    """The first line after it begins on a line of its own."""

    async def scenario(machine: Machine) -> None:
        machine.files.make_directories("/log")
        machine.files.open(FILE, create=True).append(b'{"broker": 7')
        sink = sink_on(machine)
        await sink.open()
        sink.write(record(8))
        await sink.close()
        assert machine.files.read(FILE).splitlines()[0] == b'{"broker": 7'
        assert json.loads(machine.files.read(FILE).splitlines()[1])["broker"] == 8

    run(scenario)


def test_file_of_another_broker_is_refused() -> None:
    """Two brokers that rename the same file would lose lines."""

    async def scenario(machine: Machine) -> None:
        first = sink_on(machine)
        await first.open()
        with pytest.raises(ConfigError, match="each broker needs a file of its own"):
            await sink_on(machine).open()
        await first.close()
        second = sink_on(machine)
        await second.open()
        await second.close()

    run(scenario)


def test_folder_that_cannot_be_written_stops_the_start() -> None:
    """The operator wants a file, so the broker does not run without one."""

    async def scenario(machine: Machine) -> None:
        machine.files.open("/log", create=True).close()
        with pytest.raises(
            ConfigError, match=r"audit\.log\.file=/log/audit\.log cannot be written"
        ):
            await sink_on(machine).open()

    run(scenario)


@pytest.mark.parametrize("log_format", [logs.TEXT, logs.JSON])
def test_logger_has_one_line_that_is_json(
    log_format: str, caplog: pytest.LogCaptureFixture
) -> None:
    """In a log of text the message is the object; in a log of JSON its fields are fields of the
    line.
    """
    with caplog.at_level(logging.INFO, logs.AUDIT):
        LoggerSink().write(record(3, "eve\n\x85\u2028\x9b2J"))
    (row,) = caplog.records
    formatter = logs.JsonFormatter() if log_format == logs.JSON else logs.TextFormatter()
    line = formatter.format(row)
    assert len(line.splitlines()) == 1
    fields = json.loads(line[line.index("{") :])
    assert (fields["event"], fields["broker"]) == ("change", 3)
    assert fields["principal"] == "User:eve\n\x85\u2028\x9b2J"
