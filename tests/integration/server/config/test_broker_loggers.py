"""A broker that stops restores the log levels of its process."""

import logging
from collections.abc import Iterator

import pytest

from ottla.server.config import broker_loggers
from ottla.testing.cluster import Cluster
from tests.unit.server.config.test_broker_loggers import change

NAME = "ottla.server.config.broker_loggers"


@pytest.fixture(autouse=True)
def _untouched() -> Iterator[None]:
    """Restore the levels of the process's loggers after the test."""
    before = {name: logging.getLogger(name).level for name in ("ottla", "ottla.server", NAME)}
    yield
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


def test_stopping_broker_restores_the_levels() -> None:
    """A broker that stops restores them, as between two tests with a fixture."""
    chosen = logging.getLogger(NAME)
    with Cluster():
        broker_loggers.alter(change(NAME, "ERROR"), validate_only=False)
        assert chosen.level == logging.ERROR
    assert chosen.level == logging.NOTSET
