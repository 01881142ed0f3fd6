"""The directory of an instance's state, with a folder for each task.

The instances of one machine may share `state_dir`: each locks a folder of its own, the first one
that is free. After a restart an instance may get the folder of another one; the group's leader
assigns each task to an instance that has its state. A static member always has the same folder.
"""

import logging
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Protocol

from ottla.base.files import RealFileSystem
from ottla.streams.local.disk.database import StateDatabase, saved_positions
from ottla.streams.model.errors import StateDamaged, StreamsError

_log = logging.getLogger(__name__)
_LOCK = ".lock"
_PREFIX = "local-"
_TASK = re.compile(r"\d+_\d+")


class _Lock(Protocol):
    def release(self) -> None: ...


class StateDirectory:
    """The folders of tasks; the workers of an instance use it together."""

    def __init__(
        self,
        path: str,
        instance: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`path` is the application's directory, `instance` the name of a static member."""
        self._path = path
        self._instance = instance
        self._folder = ""
        self._lock: _Lock | None = None
        self._mutex = threading.Lock()
        self._used: set[str] = set()
        self._clock = clock
        self._unused_since: dict[str, float] = {}

    def open(self) -> None:
        """Lock a folder for this instance. Raises StreamsError if its static member runs already."""
        if self._lock is not None:
            return
        names = (str(number) for number in count(1)) if self._instance is None else [self._instance]
        for name in names:
            folder = os.path.join(self._path, _PREFIX + name)
            try:
                os.makedirs(folder, mode=0o700, exist_ok=True)
                self._lock = RealFileSystem().lock(os.path.join(folder, _LOCK))
            except BlockingIOError as error:
                if self._instance is None:
                    continue
                raise StreamsError(
                    f"the state in {folder!r} is in use by another instance ({error.strerror}): "
                    "close it, or set another group_instance_id for this one"
                ) from None
            except OSError as error:
                raise StreamsError(
                    f"the state in {folder!r} cannot be used ({error.strerror or error}): "
                    "set state_dir to a directory that is writable"
                ) from error
            self._folder = folder
            return

    def database(self, task: str) -> StateDatabase | None:
        """Open the database of a task; None while another worker of this process uses it.

        A damaged database is discarded: the task is restored from its changelogs.
        """
        with self._mutex:
            if task in self._used:
                return None
            self._used.add(task)
        folder = os.path.join(self._folder, task)
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            try:
                return StateDatabase(folder)
            except StateDamaged as error:
                self.discard(task, str(error))
                os.makedirs(folder, mode=0o700, exist_ok=True)
                return StateDatabase(folder)
        except BaseException as error:
            self.release(task)
            if isinstance(error, OSError):
                raise StreamsError(f"{folder!r} cannot be created: {error}") from error
            raise

    def discard(self, task: str, reason: str) -> None:
        """Delete the state of a task, which must be closed, with a warning."""
        _log.warning(
            "Task %s: the state on disk is discarded, and restored from the changelogs: %s",
            task,
            reason,
        )
        shutil.rmtree(os.path.join(self._folder, task), ignore_errors=True)

    def release(self, task: str) -> None:
        """Note that a worker has closed the database of a task."""
        with self._mutex:
            self._used.discard(task)
            self._unused_since[task] = self._clock()

    def discard_unused(self, delay_ms: int) -> None:
        """Delete the state of tasks that no worker has used for this time; other threads may call
        it.
        """
        for task in list(_tasks(self._folder)):
            with self._mutex:
                since = self._unused_since.setdefault(task, self._clock())
                if task in self._used or self._clock() - since < delay_ms / 1000:
                    continue
                # A worker that wants it now tries again.
                self._used.add(task)
            _log.info("Task %s: the state on disk is deleted, because it is not used.", task)
            shutil.rmtree(os.path.join(self._folder, task), ignore_errors=True)
            self.release(task)

    def positions(self) -> dict[str, dict[str, int]]:
        """Return the positions in changelogs of each task's state; none of one that is damaged."""
        folder = self._folder
        return {task: saved_positions(os.path.join(folder, task)) for task in _tasks(folder)}

    def close(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def delete(self) -> None:
        """Delete the state of all instances on this machine that do not run."""
        for folder in _folders(self._path):
            try:
                lock = RealFileSystem().lock(os.path.join(folder, _LOCK))
            except BlockingIOError:
                continue
            try:
                for task in _tasks(folder):
                    shutil.rmtree(os.path.join(folder, task), ignore_errors=True)
            finally:
                lock.release()


def _folders(path: str) -> list[str]:
    if not os.path.isdir(path):
        return []
    return [entry.path for entry in os.scandir(path) if entry.name.startswith(_PREFIX)]


def _tasks(folder: str) -> Iterator[str]:
    return (name for name in sorted(os.listdir(folder)) if _TASK.fullmatch(name))
