"""The broker's loggers as a config resource (type 8, KIP-412): read levels, change them at once.

Names are Ottla's module names; `root` is the logger that all others inherit from. Levels are
log4j's. The level of the audit log can be set when the broker starts only: otherwise a client could
silence it. Nothing is stored: a broker that stops restores the levels that the process had before.
Follows kafka.utils.LoggingController and ConfigAdminManager.
"""

import logging
from collections.abc import Iterable, Mapping

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.logs import AUDIT, TRACE
from ottla.controller.planning.requests import Alteration, ConfigChange

ROOT = "root"
# ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG
SOURCE = 6
_TOP = "ottla"
_LEVELS = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": TRACE,
}

_log = logging.getLogger(__name__)


def check_broker(name: str, node_id: int) -> None:
    """Raise INVALID_REQUEST if the resource is not this broker."""
    if name != str(node_id):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Broker {node_id} only has its own loggers, not the loggers of broker {name!r}",
        )


def levels(among: frozenset[str] | None = None) -> dict[str, str]:
    """Return the current level of each logger by name, its own or an inherited one.

    `among` contains the names that are wanted; the default is all of them.
    """
    loggers = list(logging.getLogger().manager.loggerDict)
    names = sorted(
        name
        for name in (loggers if among is None else among.intersection(loggers))
        if name.startswith(f"{_TOP}.") and name != AUDIT
    )
    root = {ROOT: _level_of(_TOP)} if among is None or ROOT in among else {}
    return root | {name: _level_of(name) for name in names}


def own_levels() -> dict[str, int]:
    """Return the loggers' own levels by name, for `restore`."""
    levels = {}
    for name, logger in list(logging.getLogger().manager.loggerDict.items()):
        if isinstance(logger, logging.Logger) and f"{name}.".startswith(f"{_TOP}."):
            levels[name] = logger.level
    return levels


def restore(former: Mapping[str, int]) -> None:
    """Restore every logger's own level; a logger that is not in `former` has no level."""
    for name, level in own_levels().items():
        if level != former.get(name, logging.NOTSET):
            logging.getLogger(name).setLevel(former.get(name, logging.NOTSET))


def _level_of(name: str) -> str:
    number = logging.getLogger(name).getEffectiveLevel()
    return next((level for level, least in _LEVELS.items() if number >= least), "TRACE")


def alter(changes: Iterable[ConfigChange], *, validate_only: bool) -> None:
    """Change levels, all or none; raises ApiError INVALID_CONFIG or INVALID_REQUEST."""
    levels = [_checked(change) for change in changes]
    if validate_only:
        return
    for name, number in levels:
        logging.getLogger(name).setLevel(number)
        _log.info("log level changed name=%s level=%s", name, _level_of(name))


def _checked(change: ConfigChange) -> tuple[str, int]:
    """Return the logger and its new level; NOTSET if it is to inherit its level."""
    if change.alteration not in (Alteration.SET, Alteration.DELETE):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"{change.alteration.name} is not supported for log levels; use SET or DELETE.",
        )
    is_deletion = change.alteration is Alteration.DELETE
    if not is_deletion and change.value is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"No level was given for logger {change.name!r}.")
    if change.name not in levels():
        raise ApiError(ErrorCode.INVALID_CONFIG, f"Unknown logger {change.name!r}.")
    name = _TOP if change.name == ROOT else change.name
    if is_deletion:
        if change.name == ROOT:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, "The root logger's level can be set, not removed."
            )
        return name, logging.NOTSET
    number = _LEVELS.get(change.value or "")
    if number is None:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Unknown log level {change.value!r}; use one of {', '.join(_LEVELS)}.",
        )
    return name, number
