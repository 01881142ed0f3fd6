"""Runs verbs in this process, against a real cluster."""

import io
import json
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from ottla.testing import Cluster
from ottla.tools import main


class Done(NamedTuple):
    """How a command ended: exit code, what it wrote, and where."""

    code: int
    out: bytes
    errors: str

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        """Standard output as the cells of a table, without its headline."""
        return [line.split() for line in self.out.decode().splitlines()[1:]]


Run = Callable[..., Done]


@pytest.fixture
def run(
    ottla_cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> Iterator[Run]:
    """Run `ottla` with these words and this standard input; the cluster is in the environment."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP", ottla_cluster.bootstrap)
    handler = signal.getsignal(signal.SIGTERM)

    def call(*words: str, stdin: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main.run(words)
        sys.stdout.flush()
        captured = capfdbinary.readouterr()
        return Done(code, captured.out, captured.err.decode())

    yield call
    signal.signal(signal.SIGTERM, handler)
