"""The live line: what it says, and how it shares the terminal."""

import io
import os
import pty

import pytest

from ottla.tools.broker.live import Totals, text_of
from ottla.tools.output import StatusLine, size_text


def test_the_line_tells_rates_and_counts() -> None:
    """Of what happened since it was drawn last."""
    before = Totals(10.0, 1000, 50_000, 0, 1, 0, 0)
    now = Totals(12.0, 3000, 3_050_000, 500, 12, 1, 1500)
    assert text_of(before, now) == (
        "1,000 messages/s · in 1.5 MB/s · out 250 B/s · 12 partitions · 1 group · 1,500 connections"
    )


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2.5e6, "2.5 MB"), (3e9, "3.0 GB")],
)
def test_sizes_are_written_for_people(size: float, text: str) -> None:
    """With the largest unit that fits."""
    assert size_text(size) == text


class Screen:
    """A pseudo terminal and a status line on it."""

    def __init__(self) -> None:
        self._master, slave = pty.openpty()
        self.stream = io.TextIOWrapper(io.FileIO(slave, "w"), write_through=True)
        self.line = StatusLine(self.stream)

    def read(self, expected: str) -> str:
        """Return what the terminal got, as soon as it is as long as what is expected."""
        self.stream.flush()
        found = b""
        while len(found) < len(expected.encode()):
            found += os.read(self._master, 65536)
        return found.decode()

    def stop_output(self) -> None:
        os.write(self._master, b"\x13")

    def close(self) -> None:
        os.write(self._master, b"\x11")
        os.close(self._master)
        self.stream.close()


def test_the_line_is_written_over_and_taken_away() -> None:
    """Nothing of it is left behind."""
    screen = Screen()
    screen.line.show("one")
    screen.line.show("two")
    screen.line.clear()
    screen.line.clear()
    expected = "\r\x1b[2Kone\r\x1b[2Ktwo\r\x1b[2K"
    assert screen.read(expected) == expected
    screen.close()


def test_other_text_stands_above_the_line() -> None:
    """The line goes first, and comes back when it is drawn next."""
    screen = Screen()
    screen.line.show("live")
    screen.line.write("a warning\n")
    screen.line.write("another\n")
    expected = "\r\x1b[2Klive\r\x1b[2Ka warning\r\nanother\r\n"
    assert screen.read(expected) == expected
    screen.close()


def test_the_line_is_no_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or it would become two."""
    monkeypatch.setenv("COLUMNS", "10")
    screen = Screen()
    screen.line.show("x" * 50)
    expected = "\r\x1b[2K" + "x" * 9
    assert screen.read(expected) == expected
    screen.close()


def test_a_terminal_that_is_stopped_does_not_stop_the_broker() -> None:
    """Ctrl-S: nothing is written, and nobody waits."""
    screen = Screen()
    screen.line.show("one")
    assert "one" in screen.read("\r\x1b[2Kone")
    screen.stop_output()
    for _ in range(10_000):
        screen.line.show("two")
    screen.close()
