"""Log levels of a broker as Kafka's admin tools read and change them."""

import logging
from collections.abc import Iterator

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.logs import AUDIT
from ottla.controller.planning.requests import Alteration, ConfigChange
from ottla.server.config import broker_loggers

NAME = "ottla.server.config.broker_loggers"


@pytest.fixture(autouse=True)
def _untouched() -> Iterator[None]:
    """Restore the levels of the process's loggers after the test."""
    before = {name: logging.getLogger(name).level for name in ("ottla", "ottla.server", NAME)}
    yield
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


def change(
    name: str, value: str | None, alteration: Alteration = Alteration.SET
) -> tuple[ConfigChange]:
    return (ConfigChange(name, alteration, value),)


def test_every_logger_has_a_level() -> None:
    """Loggers of modules and packages have a level, and so has the root logger."""
    levels = broker_loggers.levels()
    assert {"root", NAME, "ottla.server"} <= levels.keys()
    assert set(levels.values()) <= {"FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"}


@pytest.mark.parametrize("level", ["FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"])
def test_a_level_is_set_and_inherited(level: str) -> None:
    """A new level applies at once to the logger and to those below it."""
    broker_loggers.alter(change("ottla.server", level), validate_only=False)
    levels = broker_loggers.levels()
    assert levels["ottla.server"] == levels[NAME] == level


def test_a_level_that_is_removed_is_inherited_again() -> None:
    """A logger without a level inherits the level of its nearest ancestor, finally the root's."""
    broker_loggers.alter(change("root", "ERROR"), validate_only=False)
    broker_loggers.alter(change(NAME, "DEBUG"), validate_only=False)
    broker_loggers.alter(change(NAME, None, Alteration.DELETE), validate_only=False)
    assert broker_loggers.levels()[NAME] == "ERROR"


def test_dry_run_and_invalid_request_change_nothing() -> None:
    """A dry run changes nothing, nor does a request with one invalid logger."""
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
def test_invalid_changes_are_rejected_like_in_kafka(
    changes: tuple[ConfigChange], code: ErrorCode
) -> None:
    """Invalid changes are rejected with the error codes that Apache Kafka 4.3 returns."""
    with pytest.raises(ApiError) as refused:
        broker_loggers.alter(changes, validate_only=False)
    assert refused.value.code is code


@pytest.mark.parametrize("name", ["", "2", "one"])
def test_loggers_of_another_broker_are_rejected(name: str) -> None:
    """A request for another broker's loggers is rejected."""
    broker_loggers.check_broker("1", 1)
    with pytest.raises(ApiError, match="Broker 1"):
        broker_loggers.check_broker(name, 1)


def test_levels_are_restored() -> None:
    """Loggers outside of Ottla have their own levels again when the broker has stopped."""
    chosen, new = logging.getLogger("ottla.storage.log.log"), "ottla.made_meanwhile"
    chosen.setLevel(logging.WARNING)
    former = broker_loggers.own_levels()
    chosen.setLevel(logging.DEBUG)
    logging.getLogger(new).setLevel(logging.ERROR)
    broker_loggers.restore(former)
    assert chosen.level == logging.WARNING
    assert logging.getLogger(new).level == logging.NOTSET
    chosen.setLevel(logging.NOTSET)


def test_only_some_levels() -> None:
    """Names that are wanted, if there is such a logger."""
    every = broker_loggers.levels()
    assert broker_loggers.levels(frozenset({NAME, "other", "ottla-x"})) == {NAME: every[NAME]}
    assert broker_loggers.levels(frozenset({broker_loggers.ROOT})).keys() == {broker_loggers.ROOT}


def test_level_of_the_audit_log_cannot_be_changed() -> None:
    """A client could silence it otherwise."""
    logging.getLogger(AUDIT)
    assert AUDIT not in broker_loggers.levels()
    assert AUDIT not in broker_loggers.levels(frozenset({AUDIT}))
    with pytest.raises(ApiError, match=r"Unknown logger 'ottla\.audit'"):
        broker_loggers.alter(change(AUDIT, "FATAL"), validate_only=False)
