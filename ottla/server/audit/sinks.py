"""The audit log in a file.

The event loop never waits for the file: lines are kept in memory, and a thread writes them. If the
disk is full, the broker continues. The error is logged, the lines are written when there is space
again, and those for which the memory is too small are counted.
"""

import logging
from collections import deque
from contextlib import suppress

from ottla.base.clock import Clock
from ottla.base.errors import ConfigError
from ottla.base.files import FileSystem, Lock, make_directories_durably, run_whole
from ottla.base.tasks import Tasks
from ottla.server.audit.record import AuditRecord

WAITING_BYTES_MAX = 4 * 1024**2
"""Lines that wait for the file; further ones are lost."""

_RETRY_SECONDS = 1.0
_ERROR_SECONDS = 60.0
_NEVER = float("-inf")
_NEWLINE = b"\n"

_log = logging.getLogger(__name__)


class FileSink:
    """Writes to a file, which is renamed to `FILE.1` at its largest size, and so on.

    The file is opened for each write, so that another program may move it away.
    """

    def __init__(
        self, path: str, *, max_bytes: int, backups: int, files: FileSystem, clock: Clock
    ) -> None:
        self.lost_count = 0
        self._path = path
        self._max_bytes = max_bytes
        self._backups = backups
        self._files = files
        self._clock = clock
        self._tasks = Tasks(clock=clock)
        self._lock: Lock | None = None
        self._lines: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._is_writing = False
        self._error_at = _NEVER

    async def open(self) -> None:
        """Lock the file and create it; ConfigError if that is impossible."""
        await run_whole(self._files, self._open)

    def _open(self) -> None:
        folder = self._path.rpartition("/")[0]
        try:
            if folder:
                make_directories_durably(self._files, folder)
            self._lock = self._files.lock(f"{self._path}.lock")
            self._files.open(self._path, create=True).close()
        except BlockingIOError as error:
            raise ConfigError(
                f"audit.log.file={self._path} is in use by {error.strerror}: each broker needs a file "
                "of its own"
            ) from error
        except OSError as error:
            self._release()
            raise ConfigError(
                f"audit.log.file={self._path} cannot be written: {error.strerror or error}"
            ) from error

    def write(self, record: AuditRecord) -> None:
        """Keep the line of a record until a thread has written it."""
        line = record.line().encode() + _NEWLINE
        if self._waiting_bytes + len(line) > WAITING_BYTES_MAX:
            self.lost_count += 1
            return
        self._lines.append(line)
        self._waiting_bytes += len(line)
        if not self._is_writing:
            self._is_writing = True
            self._tasks.spawn(self._write_all(), "audit log")

    async def _write_all(self) -> None:
        try:
            while self._lines:
                if not await self._write_waiting():
                    await self._clock.sleep(_RETRY_SECONDS)
        finally:
            self._is_writing = False

    async def _write_waiting(self) -> bool:
        """Write the lines that are waiting now; return False if that has failed."""
        lines = list(self._lines)
        written: list[int] = []

        def work() -> None:
            self._append(b"".join(lines))
            written.append(len(lines))

        try:
            await run_whole(self._files, work)
        except OSError as error:
            self._failed(error)
            return False
        finally:
            # A task that is cancelled has written them, too.
            for _ in range(sum(written)):
                self._waiting_bytes -= len(self._lines.popleft())
        if self._error_at != _NEVER:
            self._error_at = _NEVER
            _log.warning("audit log written again path=%s lost=%d", self._path, self.lost_count)
        return True

    def _failed(self, error: OSError) -> None:
        now = self._clock.monotonic()
        if now - self._error_at >= _ERROR_SECONDS:
            self._error_at = now
            _log.error(
                "audit log not written path=%s error=%s waiting=%d lost=%d",
                self._path,
                error.strerror or error,
                len(self._lines),
                self.lost_count,
            )

    # -- in a thread ------------------------------------------------------------------------------

    def _append(self, data: bytes) -> None:
        files = self._files
        if files.exists(self._path):
            size = files.size(self._path)
            if size and size + len(data) > self._max_bytes:
                self._rename()
        file = files.open(self._path, create=True)
        try:
            end = file.size()
            # A crash, or a full disk, may have left a part of a line.
            is_torn = bool(end) and bytes(file.read_at(end - 1, 1)) != _NEWLINE
            try:
                file.append(_NEWLINE + data if is_torn else data)
                file.sync()
            except OSError:
                with suppress(OSError):
                    file.truncate(end)
                raise
        finally:
            file.close()

    def _rename(self) -> None:
        files = self._files
        for number in range(self._backups - 1, 0, -1):
            former = f"{self._path}.{number}"
            if files.exists(former):
                files.rename(former, f"{self._path}.{number + 1}")
        files.rename(self._path, f"{self._path}.1")
        files.sync_directory(self._path.rpartition("/")[0] or ".")

    # -- end --------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Write the lines that are waiting once more, and unlock the file; idempotent."""
        await self._tasks.close()
        if self._lines and not await self._write_waiting():
            self.lost_count += len(self._lines)
            _log.error("audit log lost path=%s lines=%d", self._path, len(self._lines))
            self._lines.clear()
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None
