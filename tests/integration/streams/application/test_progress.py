"""The line of progress of an application in another process."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios

_APPLICATION = """
import sys, time
from ottla.streams.application import progress

progress._LOOK_S = 0.05
known = iter([progress.Progress()] * 3 + [progress.Progress(n, 1000 * n, 7, "", 1 << 20, 9) for n in range(1, 9999)])
line = progress.ProgressLine("an-application-with-a-long-name", lambda: "RUNNING", lambda: next(known))
try:
    line.start()
    time.sleep(60)
except KeyboardInterrupt:
    line.stop()
    sys.exit(0)
"""


def _read(terminal: int, until: bytes) -> bytes:
    output = b""
    while until not in output:
        output += os.read(terminal, 4096)
    return output


def test_the_line_is_rewritten_until_ctrl_c() -> None:
    """It never exceeds the terminal's width; at the end, one line with a summary remains."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    arguments = [sys.executable, "-c", _APPLICATION]
    application = subprocess.Popen(arguments, stdin=side, stderr=side, start_new_session=True)
    os.close(side)
    output = _read(main, b"| lag 7").decode()
    application.send_signal(signal.SIGINT)
    output += _read(main, b"\n").decode()
    assert application.wait(10) == 0
    os.close(main)
    first, *lines = output.split("\r\x1b[2K")
    assert first == ""
    assert lines[0] == "an-application-with-a-long-name RUNNING | no micro-batch yet, 0 s"
    assert max(map(len, lines)) <= 80
    assert re.fullmatch(
        r"an-application-with-a-long-name stops after [\d,]+ records and micro-batch \d+\r\n",
        lines[-1],
    )
