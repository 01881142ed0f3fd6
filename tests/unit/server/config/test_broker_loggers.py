"""Log levels as Kafka's admin tools see and change them."""

import logging
from collections.abc import Iterator

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.controller.planning.requests import Alteration, ConfigChange
from ottla.server.config import broker_loggers
from ottla.testing.cluster import Cluster

NAME = "ottla.server.config.broker_loggers"


@pytest.fixture(autouse=True)
def _untouched() -> Iterator[None]:
    """The process's loggers are as they were before."""
    before = {name: logging.getLogger(name).level for name in ("ottla", "ottla.server", NAME)}
    yield
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


def change(
    name: str, value: str | None, alteration: Alteration = Alteration.SET
) -> tuple[ConfigChange]:
    return (ConfigChange(name, alteration, value),)


def test_every_logger_has_a_level() -> None:
    """Those of modules, of packages, and the root of all."""
    found = broker_loggers.levels()
    assert {"root", NAME, "ottla.server"} <= found.keys()
    assert set(found.values()) <= {"FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"}


@pytest.mark.parametrize("level", ["FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"])
def test_a_level_is_set_and_inherited(level: str) -> None:
    """At once, for the logger and those below it."""
    broker_loggers.alter(change("ottla.server", level), validate_only=False)
    found = broker_loggers.levels()
    assert found["ottla.server"] == found[NAME] == level


def test_a_level_that_is_removed_is_inherited_again() -> None:
    """From the root in the end."""
    broker_loggers.alter(change("root", "ERROR"), validate_only=False)
    broker_loggers.alter(change(NAME, "DEBUG"), validate_only=False)
    broker_loggers.alter(change(NAME, None, Alteration.DELETE), validate_only=False)
    assert broker_loggers.levels()[NAME] == "ERROR"


def test_only_what_is_asked_for_is_changed() -> None:
    """Nothing where it is only to be checked, and nothing where one of several is wrong."""
    before = broker_loggers.levels()
    broker_loggers.alter(change(NAME, "TRACE"), validate_only=True)
    with pytest.raises(ApiError):
        broker_loggers.alter(
            change(NAME, "TRACE") + change("ottla.nobody", "TRACE"), validate_only=False
        )
    assert broker_loggers.levels() == before


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        (change(NAME, "NOISY"), ErrorCode.INVALID_CONFIG),
        (change(NAME, "warn"), ErrorCode.INVALID_CONFIG),
        (change(NAME, ""), ErrorCode.INVALID_CONFIG),
        (change(NAME, "OFF"), ErrorCode.INVALID_CONFIG),
        (change("ottla.nobody", "INFO"), ErrorCode.INVALID_CONFIG),
        (change("ottla.nobody", None, Alteration.DELETE), ErrorCode.INVALID_CONFIG),
        (change("root", None), ErrorCode.INVALID_REQUEST),
        (change("root", None, Alteration.DELETE), ErrorCode.INVALID_REQUEST),
        (change(NAME, "INFO", Alteration.APPEND), ErrorCode.INVALID_REQUEST),
        (change(NAME, "INFO", Alteration.SUBTRACT), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_is_refused_as_kafka_does(
    changes: tuple[ConfigChange], code: ErrorCode
) -> None:
    """The codes are those that Apache Kafka 4.3 was heard to give."""
    with pytest.raises(ApiError) as refused:
        broker_loggers.alter(changes, validate_only=False)
    assert refused.value.code is code


@pytest.mark.parametrize("name", ["", "2", "one"])
def test_another_broker_is_not_this_one(name: str) -> None:
    """Its loggers are asked of it."""
    broker_loggers.check_broker("1", 1)
    with pytest.raises(ApiError, match="Broker 1"):
        broker_loggers.check_broker(name, 1)


def test_levels_are_given_back() -> None:
    """What shares the process with a broker has its own levels again when the broker has stopped."""
    chosen, new = logging.getLogger("ottla.storage.log.log"), "ottla.made_meanwhile"
    chosen.setLevel(logging.WARNING)
    former = broker_loggers.own_levels()
    chosen.setLevel(logging.DEBUG)
    logging.getLogger(new).setLevel(logging.ERROR)
    broker_loggers.restore(former)
    assert chosen.level == logging.WARNING
    assert logging.getLogger(new).level == logging.NOTSET
    chosen.setLevel(logging.NOTSET)


def test_a_broker_that_stops_gives_them_back() -> None:
    """As a test fixture's does between two tests."""
    chosen = logging.getLogger(NAME)
    with Cluster():
        broker_loggers.alter(change(NAME, "ERROR"), validate_only=False)
        assert chosen.level == logging.ERROR
    assert chosen.level == logging.NOTSET
