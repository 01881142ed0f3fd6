"""Fixtures that run commands in this process against a real cluster."""

import json
import os
import sys
import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from ottla.testing import Cluster
from ottla.tools import main
from tests.unit.client.conftest import new_broker as new_broker

# No process listens on this port.
_NO_BROKER = "127.0.0.1:1"


class Done(NamedTuple):
    """The result of a command: its exit code and its output."""

    code: int
    out: bytes
    errors: str

    @property
    def json(self) -> Any:
        """Return standard output parsed as JSON."""
        return json.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        """Return the cells of the table on standard output, without its header."""
        return [line.split() for line in self.out.decode().splitlines()[1:]]


Run = Callable[..., Done]


@pytest.fixture
def run(run_alone: Run, ottla_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs `ottla` with arguments and standard input against the cluster."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP", ottla_cluster.bootstrap)
    return run_alone


@pytest.fixture
def run_alone(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Return a function that runs `ottla` without a cluster: a command that connects fails."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP", _NO_BROKER)

    def call(*command_line: str, stdin: bytes = b"") -> Done:
        with tempfile.TemporaryFile() as file:
            file.write(stdin)
            file.seek(0)
            former = os.dup(0)
            os.dup2(file.fileno(), 0)
        try:
            with open(0, closefd=False) as text:
                monkeypatch.setattr(sys, "stdin", text)
                code = main.run(command_line)
        finally:
            os.dup2(former, 0)
            os.close(former)
        sys.stdout.flush()
        captured = capfdbinary.readouterr()
        return Done(code, captured.out, captured.err.decode())

    return call
