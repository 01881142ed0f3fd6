"""What every log of a broker is given: ports, its log directory, and whom to notify."""

from collections.abc import Callable
from typing import NamedTuple

from ottla.base.clock import Clock
from ottla.base.errors import StorageError
from ottla.base.files import FileSystem
from ottla.base.rng import Rng


def _ignore(topic: str, partition: int) -> None:
    """Stand in for an owner that does not follow damage."""


class Dependencies(NamedTuple):
    """The ports that a log uses, the path of its log directory, and two callbacks of its owner.

    `on_failure` is called when a file operation fails: the log directory goes offline. `on_damage` is
    called with topic and partition when a segment is found damaged: the log stays online.
    """

    files: FileSystem
    clock: Clock
    rng: Rng
    on_failure: Callable[[StorageError], None]
    log_directory: str = ""
    on_damage: Callable[[str, int], None] = _ignore
