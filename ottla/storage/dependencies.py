"""The dependencies of every log of a broker: ports, its log directory, and two callbacks."""

from collections.abc import Callable
from typing import NamedTuple

from ottla.base.clock import Clock
from ottla.base.errors import StorageError
from ottla.base.files import FileSystem
from ottla.base.rng import Rng


def _ignore(topic: str, partition: int) -> None:
    """Ignore damage: the default for owners that do not track it."""


class Dependencies(NamedTuple):
    """The ports that a log uses, the path of its log directory, and two callbacks of its owner.

    `on_failure` is called when a file operation fails: the log directory goes offline. `on_damage`
    is called with topic and partition when a segment is found damaged: the log stays online.
    """

    files: FileSystem
    clock: Clock
    rng: Rng
    on_failure: Callable[[StorageError], None]
    log_directory: str = ""
    on_damage: Callable[[str, int], None] = _ignore
