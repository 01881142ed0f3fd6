"""Brokers as processes of their own, whose event loop and memory are watched."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

import pytest

from bench.observed import ObservedBroker

Start = Callable[[Mapping[str, str]], ObservedBroker]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts brokers with broker options, and ends them with the test."""
    with ExitStack() as running:
        yield lambda settings: running.enter_context(ObservedBroker(settings))
