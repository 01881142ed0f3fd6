"""The command `ottla streams run` on a terminal: one line of progress, no noise, a clean end."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest

from ottla.client.arrow_table import read_table
from ottla.streams.task.task import TopicRecord
from ottla.testing.cluster import Cluster
from ottla.testing.process import COMMAND
from tests.spark import scenarios

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240), pytest.mark.slow, pytest.mark.alone]

_MODULE = """
from ottla.streams import Serdes, StreamsBuilder

builder = StreamsBuilder()
words = builder.stream("terminal", value=Serdes.string())
words.group_by(lambda word: word).count("terminal-counts").to_stream().to("terminal-out")
topology = builder.build()
"""


class _Terminal:
    """A terminal of 80 columns with its output."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self._main, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.process = subprocess.Popen(
            command,
            stdin=side,
            stdout=side,
            stderr=side,
            cwd=folder,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(side, termios.TIOCSCTTY, 0),
        )
        os.close(side)
        self.text = ""

    def read(self, until: str, timeout_s: float = 120.0) -> None:
        """Read until the output matches a pattern, or ends."""
        deadline = time.monotonic() + timeout_s
        while not re.search(until, self.text):
            if select.select([self._main], [], [], 1.0)[0]:
                try:
                    self.text += os.read(self._main, 65536).decode(errors="replace")
                except OSError:
                    return
            assert time.monotonic() < deadline, self.text

    def press_ctrl_c(self) -> None:
        """Type Ctrl-C."""
        os.write(self._main, b"\x03")

    def close(self) -> None:
        """Kill the program and close the terminal."""
        self.process.kill()
        self.process.wait()
        os.close(self._main)


def test_a_terminal_shows_one_line_until_ctrl_c(broker: Cluster, tmp_path: Path) -> None:
    """Messages of Spark's processes are hidden; the last line is a summary."""
    # The times of the records are old.
    for topic in ("terminal", "terminal-out"):
        broker.create_topic(topic, config={"retention.ms": "-1"})
    scenarios.produce(broker.bootstrap, {"terminal": [TopicRecord(None, b"a", 1_000_000)] * 50})
    (tmp_path / "screens.py").write_text(_MODULE)
    words = ("streams", "run", "screens:topology", "-b", broker.bootstrap)
    terminal = _Terminal([*COMMAND, *words, "--state-dir", str(tmp_path / "state")], tmp_path)
    try:
        terminal.read(r"RUNNING \| [\d,]+( records)?/s \| lag 0 \| state .* watermark")
        terminal.press_ctrl_c()
        terminal.read(r"screens stops after .*\r\n")
        assert terminal.process.wait(60) == 0
        terminal.read(r"\Z never")
    finally:
        terminal.close()
    lines = re.split(r"\r\x1b\[2K", terminal.text)
    # A terminal shows typed characters after the line.
    wide = [line for line in lines if len(line.rstrip("\r\n").removesuffix("^C")) > 80]
    assert wide == []
    output = re.compile(r"screens (RUNNING|REBALANCING|CREATED|PENDING_SHUTDOWN) \| .*(\^C)?|")
    others = [line for line in lines[:-1] if not output.fullmatch(line)]
    assert others == [], others
    assert re.fullmatch(r"screens stops after 50 records and micro-batch \d+\r\n", lines[-1])
    table = read_table("terminal-out", bootstrap=broker.bootstrap)
    assert table.num_rows == 50
