"""The dependencies of every log of a broker: ports, its log directory, and three callbacks."""

from collections.abc import Callable
from typing import NamedTuple

from ottla.base.clock import Clock
from ottla.base.errors import StorageError
from ottla.base.files import FileSystem
from ottla.base.rng import Rng


def _ignore(topic: str, partition: int) -> None:
    """Ignore damage: the default for owners that do not track it."""


def _ignore_flush(seconds: float) -> None:
    """Ignore the duration of a flush: the default for owners that do not report it."""


class Dependencies(NamedTuple):
    """The ports that a log uses, the path of its log directory, and three callbacks of its owner.

    `on_failure` is called when a file operation fails: the log directory goes offline. `on_damage`
    is called with topic and partition when a segment is found damaged: the log stays online.
    `on_flush` is called with the duration of a flush in seconds.
    """

    files: FileSystem
    clock: Clock
    rng: Rng
    on_failure: Callable[[StorageError], None]
    log_directory: str = ""
    on_damage: Callable[[str, int], None] = _ignore
    on_flush: Callable[[float], None] = _ignore_flush
