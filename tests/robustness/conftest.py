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
