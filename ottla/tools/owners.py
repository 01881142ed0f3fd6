"""The process that uses a directory, by the lock that it holds, and how it is stopped."""

import os
import signal
import time

from ottla.base.errors import OttlaError
from ottla.base.files import RealFileSystem
from ottla.base.platform.processes import await_end
from ottla.storage.files.checkpoints import LOCK_FILE

_POLL_SECONDS = 0.05
# A process may continue after it has closed its directory, as a test's does.
_EXIT_SECONDS = 5.0


def owner_of(directory: str) -> int | None:
    """Return the process that uses a directory; None if it is not in use.

    OttlaError if the owner is not known: Apache Kafka locks the file without writing its process
    id.
    """
    path = f"{directory}/{LOCK_FILE}"
    if not os.path.exists(path):
        return None
    try:
        RealFileSystem().lock(path).release()
    except BlockingIOError as error:
        parts = (error.strerror or "").split()
        if len(parts) == 2 and parts[0] == "process" and parts[1].isdigit():
            return int(parts[1])
        raise OttlaError(
            f"the process that uses {directory} is not known: stop it with `kill`"
        ) from error
    return None


def stop_owner(directory: str, process_id: int, name: str, timeout: float) -> None:
    """Ask the owner of a directory to stop, and wait until it has released the lock and ended.

    OttlaError, with the `name` of the owner, if it belongs to another user or takes too long.
    """
    terminate(process_id)
    deadline = time.monotonic() + timeout
    while owner_of(directory) == process_id:
        if time.monotonic() > deadline:
            raise OttlaError(
                f"{name} (process {process_id}) has not stopped within {timeout:g} s: look at "
                "its log, wait longer with --timeout, or end it with `kill -9`"
            )
        time.sleep(_POLL_SECONDS)
    await_end(process_id, min(_EXIT_SECONDS, max(0.0, deadline - time.monotonic())))


def terminate(process_id: int) -> None:
    """Send SIGTERM; OttlaError if the process belongs to another user."""
    try:
        os.kill(process_id, signal.SIGTERM)
    except PermissionError as error:
        raise OttlaError(
            f"process {process_id} belongs to another user: run the command as that user"
        ) from error
