"""The live line: its content, and other output on the same terminal."""

import io
import os
import pty

import pytest

from ottla.tools.broker.live import Cluster, Totals, text_of
from ottla.tools.output import StatusLine, size_text


def test_line_has_rates_and_counts() -> None:
    """The rates cover the time since the line was last drawn."""
    before = Totals(10.0, 1000, 50_000, 0, 1, 0, 0)
    now = Totals(12.0, 3000, 3_050_000, 500, 12, 1, 1500)
    assert text_of(before, now) == (
        "1,000 messages/s · in 1.5 MB/s · out 250 B/s · 12 partitions · 1 group · 1,500 connections"
    )


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2.5e6, "2.5 MB"), (3e9, "3.0 GB")],
)
def test_sizes_are_human_readable(size: float, text: str) -> None:
    """A size has the largest unit that fits."""
    assert size_text(size) == text


class Screen:
    """A pseudo terminal and a status line on it."""

    def __init__(self) -> None:
        self._master, slave = pty.openpty()
        self.stream = io.TextIOWrapper(io.FileIO(slave, "w"), write_through=True)
        self.line = StatusLine(self.stream)

    def read(self, expected: str) -> str:
        """Return the terminal's content when it is as long as the expected one."""
        self.stream.flush()
        result = b""
        while len(result) < len(expected.encode()):
            result += os.read(self._master, 65536)
        return result.decode()

    def stop_output(self) -> None:
        os.write(self._master, b"\x13")

    def close(self) -> None:
        os.write(self._master, b"\x11")
        os.close(self._master)
        self.stream.close()


def test_line_is_overwritten_and_erased() -> None:
    """The line is erased completely."""
    screen = Screen()
    screen.line.show("one")
    screen.line.show("two")
    screen.line.clear()
    screen.line.clear()
    expected = "\r\x1b[2Kone\r\x1b[2Ktwo\r\x1b[2K"
    assert screen.read(expected) == expected
    screen.close()


def test_other_output_is_above_the_line() -> None:
    """The line is erased first, and drawn again later."""
    screen = Screen()
    screen.line.show("live")
    screen.line.write("a warning\n")
    screen.line.write("another\n")
    expected = "\r\x1b[2Klive\r\x1b[2Ka warning\r\nanother\r\n"
    assert screen.read(expected) == expected
    screen.close()


def test_the_line_is_no_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A longer line would wrap."""
    monkeypatch.setenv("COLUMNS", "10")
    screen = Screen()
    screen.line.show("x" * 50)
    expected = "\r\x1b[2K" + "x" * 9
    assert screen.read(expected) == expected
    screen.close()


def test_stopped_terminal_does_not_block_the_broker() -> None:
    """After Ctrl-S nothing is written, and the broker does not wait."""
    screen = Screen()
    screen.line.show("one")
    assert "one" in screen.read("\r\x1b[2Kone")
    screen.stop_output()
    for _ in range(10_000):
        screen.line.show("two")
    screen.close()


@pytest.mark.parametrize(
    ("cluster", "text"),
    [
        (Cluster(3, 3, 0, 2), "3 brokers · 0 under-replicated · controller 2"),
        (Cluster(2, 3, 1234, -1), "2 of 3 brokers · 1,234 under-replicated · controller none"),
    ],
)
def test_line_of_a_cluster_shows_its_state(cluster: Cluster, text: str) -> None:
    """Live brokers, partitions with missing replicas, and the controller."""
    totals = Totals(0.0, 0, 0, 0, 0, 0, 0, cluster)
    assert text_of(totals, totals).endswith(f" · {text}")
