"""Brokers in separate processes, whose event loop and memory are observed."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

import pytest

from bench.observed import ObservedBroker

Start = Callable[[Mapping[str, str]], ObservedBroker]


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a function that starts brokers with options; they are stopped at the end of the test."""
    with ExitStack() as running:
        yield lambda settings: running.enter_context(ObservedBroker(settings))


@pytest.fixture
def probed_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the harness ask the first listener of the settings."""

    def launch(self: ObservedBroker) -> int:
        probe_port = original(self)
        address = str(self._settings["listeners"]).partition(",")[0]
        self.port = int(address.rpartition(":")[2])
        return probe_port

    original = ObservedBroker.launch
    monkeypatch.setattr(ObservedBroker, "launch", launch)
