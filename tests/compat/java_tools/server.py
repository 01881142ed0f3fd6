"""Runs Kafka's command-line tools in one JVM for each class path and options of Java.

A tool runs from its main method with its own arguments, and has its own exit code and output.
Starting the JVM and loading Kafka's classes takes longer than the work of a tool.
"""

import atexit
import contextlib
import struct
import subprocess
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parent / "ToolServer.java"
_PATIENCE_S = 100.0


class Result(NamedTuple):
    """The exit code of a tool, and its output."""

    code: int
    output: str
    errors: str


class ToolServer:
    """One JVM; not thread-safe."""

    def __init__(self, command_line: list[str]) -> None:
        self._own_errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the JVM
        self._process = subprocess.Popen(
            command_line,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._own_errors,
        )

    @property
    def process_id(self) -> int:
        """The process id of the JVM."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """False after a tool has ended the JVM, or has timed out."""
        return self._process.poll() is None

    def run(self, main_class: str, *arguments: str) -> Result:
        """Run a tool. Raises AssertionError if the JVM does not survive it."""
        assert self._process.stdin is not None
        timer = threading.Timer(_PATIENCE_S, self._process.kill)
        timer.start()
        try:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(_encode(main_class, *arguments))
                self._process.stdin.flush()
            (code,) = struct.unpack(">i", self._read(4))
            return Result(code, self._read_text(), self._read_text())
        finally:
            timer.cancel()

    def end(self) -> None:
        """Let the JVM end by itself, as at the end of its input."""
        self._process.communicate(timeout=_PATIENCE_S)
        self._own_errors.close()

    def close(self) -> None:
        """Stop the JVM."""
        self._process.kill()
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()
        self._own_errors.close()

    def _read(self, size: int) -> bytes:
        assert self._process.stdout is not None
        content = self._process.stdout.read(size)
        if len(content) < size:
            self._process.wait(20)
            self._own_errors.seek(0)
            raise AssertionError(f"the tool ended the JVM: {self._own_errors.read().decode()}")
        return content

    def _read_text(self) -> str:
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size).decode()


def _encode(*words: str) -> bytes:
    parts = [struct.pack(">i", len(words))]
    for word in words:
        encoded = word.encode()
        parts += [struct.pack(">H", len(encoded)), encoded]
    return b"".join(parts)


# By class path and options of Java.
_SERVERS: dict[tuple[str, ...], ToolServer] = {}


def server_of(key: tuple[str, ...], start: Callable[[], ToolServer]) -> ToolServer:
    """Return the server of a class path and options of Java; start it if none runs, or if a tool
    has ended it.
    """
    server = _SERVERS.get(key)
    if server is None or not server.is_running:
        if server is not None:
            server.close()
        server = _SERVERS[key] = start()
    return server


@atexit.register
def _close_all() -> None:
    for server in _SERVERS.values():
        server.close()
