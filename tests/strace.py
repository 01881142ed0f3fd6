"""System calls of a broker process, as strace reports them.

A test that cannot use strace is skipped, or fails: `tests.runs.needs`.
"""

import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.runs import needs

_SYNCS = ("fsync", "fdatasync")
_WRITES = ("write", "writev", "pwrite64", "pwritev", "sendto", "sendmsg")
# 123 fdatasync(7</data/t-0/0.log>) = 0
_CALL = re.compile(r"(?P<thread>\d+) +(?P<name>\w+)\(\d+<(?P<target>[^>]*(?:->[^>]*)?)>")
_RESUMED = re.compile(r"(?P<thread>\d+) +<\.\.\. (?P<name>\w+) resumed>")
_UNFINISHED = "<unfinished ...>"


class Call(NamedTuple):
    """A completed call: `name` is sync or write, `target` the path or `socket`."""

    name: str
    target: str


def attach(process_id: int, *words: str) -> "subprocess.Popen[str]":
    """Return a running strace that is attached to all threads of a process."""
    needs.require("strace")
    tracer = subprocess.Popen(
        ["strace", "-f", "-p", str(process_id), *words], stderr=subprocess.PIPE, text=True
    )
    assert tracer.stderr is not None
    line = tracer.stderr.readline()
    if "attached" not in line:
        tracer.communicate(timeout=20)
        needs.not_permitted("strace", line)
    return tracer


def detach(tracer: "subprocess.Popen[str]") -> None:
    """Detach strace; return when the process runs without it."""
    tracer.terminate()
    tracer.communicate(timeout=20)


@contextmanager
def traced(process_id: int, file: Path) -> Iterator[None]:
    """Write the syncs and writes of a process to `file`, to be read by `calls`."""
    names = ",".join([*_SYNCS, *_WRITES])
    tracer = attach(process_id, "-yy", "-s", "0", "-e", f"trace={names}", "-o", str(file))
    try:
        yield
    finally:
        detach(tracer)


def calls(file: Path) -> Sequence[Call]:
    """Return the calls to files and to TCP sockets in the order of their completion."""
    found: list[Call] = []
    unfinished: dict[tuple[str, str], str] = {}
    for line in file.read_text("utf-8").splitlines():
        begun, resumed = _CALL.match(line), _RESUMED.match(line)
        if begun is not None and line.endswith(_UNFINISHED):
            unfinished[begun["thread"], begun["name"]] = begun["target"]
        elif begun is not None:
            found += _call(begun["name"], begun["target"])
        elif resumed is not None and (resumed["thread"], resumed["name"]) in unfinished:
            target = unfinished.pop((resumed["thread"], resumed["name"]))
            found += _call(resumed["name"], target)
    return found


def _call(name: str, target: str) -> Sequence[Call]:
    kind = "sync" if name in _SYNCS else "write"
    if target.startswith("/"):
        return (Call(kind, target),)
    return (Call(kind, "socket"),) if target.startswith("TCP") else ()
