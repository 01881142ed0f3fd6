"""Shared by the tests of the log: a manual clock, and short functions to write and read."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ottla.base.errors import StorageError
from ottla.base.files import FileSystem, RealFileSystem
from ottla.base.rng import SeededRng
from ottla.storage.config import LogConfig
from ottla.storage.directories.disk import LogDirectories
from ottla.storage.log import recovery
from ottla.storage.log.log import Dependencies, Log
from ottla.wire.records import control
from ottla.wire.records.records import Record, encode_batch, iterate_batches, iterate_records

START_MS = 1_700_000_000_000
TOPIC_ID = bytes(range(16))

# The logs and directories that a test has opened, to be closed afterwards.
OPENED: list[Log | LogDirectories] = []


class ManualClock:
    """A clock that advances only when a test advances it."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.now_ms = now_ms
        # How far the wall clock alone is ahead.
        self.leap_ms = 0

    def time_ms(self) -> int:
        """Return the time in milliseconds that the test has set."""
        return self.now_ms + self.leap_ms

    def monotonic(self) -> float:
        """Return the monotonic time in seconds."""
        return self.now_ms / 1000

    def cpu_seconds(self) -> float:
        """Return the monotonic time, as if the process used no CPU."""
        return self.now_ms / 1000

    async def sleep(self, seconds: float) -> None:
        """Advance the clock without waiting."""
        self.now_ms += int(seconds * 1000)


class World:
    """A log directory on a real disk, with one log in it, and a clock of its own."""

    def __init__(self, path: Path | str, config: LogConfig | None = None, **fields: Any) -> None:
        self.path = Path(path)
        self.clock = ManualClock()
        self.files: FileSystem = RealFileSystem()
        self.config = config or LogConfig(**fields)
        self.failures: list[StorageError] = []

    @property
    def folder(self) -> Path:
        """Return the directory of the log."""
        return self.path / "t-0"

    def directories(self, **opening: Any) -> LogDirectories:
        """Open the log directory."""
        settings = {"cluster_id": "c", "broker_id": 1, "topic_config": lambda topic: self.config}
        directories = LogDirectories.open(
            [str(self.path)],
            files=self.files,
            clock=self.clock,
            rng=SeededRng(1),
            on_offline=lambda path, error: self.failures.append(error),
            **(settings | opening),
        )
        OPENED.append(directories)
        return directories

    def load(self, *, clean: bool = False, recovery_point: int = 0, log_start: int = 0) -> Log:
        """Open the log without a log directory around it; create it if it does not exist."""
        expected = recovery.Expectation(log_start, recovery_point, clean)
        arguments = (self.files, str(self.folder), self.config)
        if self.files.exists(str(self.folder)):
            loaded = recovery.load(*arguments, expected, self.clock.now_ms)
        else:
            loaded = recovery.create(*arguments, self.clock.now_ms)
        self.loaded = loaded
        dependencies = Dependencies(
            self.files, self.clock, SeededRng(1), self.failures.append, str(self.path)
        )
        log = Log("t", 0, TOPIC_ID, self.config, loaded, dependencies)
        OPENED.append(log)
        return log

    def names(self, suffix: str) -> list[str]:
        """Return the names of the log's files with this suffix."""
        return sorted(path.name for path in self.folder.iterdir() if path.name.endswith(suffix))


def make_batch(
    values: list[bytes] | int = 1, *, timestamp: int = START_MS, sequence: int = -1, **fields: Any
) -> bytearray:
    """Return a batch as a client sends it, with `values` or with that many numbered ones."""
    if isinstance(values, int):
        values = [b"value-%d" % number for number in range(values)]
    records = [Record(b"key", value, timestamp=timestamp) for value in values]
    if sequence >= 0:
        fields = {"producer_id": 7, "producer_epoch": 0, "base_sequence": sequence} | fields
    return encode_batch(records, **fields)


def read_all(log: Log, *, max_bytes: int = 1 << 20, start: int | None = None) -> list[Record]:
    """Return all records except control records from `start` (default: the log start), fetch by
    fetch.
    """
    offset = log.log_start_offset if start is None else start
    result: list[Record] = []
    while offset < log.log_end_offset:
        fetched = log.read(offset, max_bytes, max_offset=log.log_end_offset)
        assert fetched is not None
        headers = [header for _, header in iterate_batches(fetched.records)]
        assert headers, f"nothing at offset {offset}"
        result += [record for record in iterate_records(fetched.records) if record.offset >= offset]
        offset = headers[-1].last_offset + 1
    return result


def offsets(log: Log) -> list[int]:
    """Return the offsets that the log holds."""
    return [record.offset for record in read_all(log)]


@contextmanager
def patched(target: Any, name: str, replacement: Callable[..., Any]) -> Iterator[None]:
    """Replace a method of one object."""
    original = getattr(target, name)
    setattr(target, name, replacement)
    try:
        yield
    finally:
        setattr(target, name, original)


def small_segments(path: Path, **fields: Any) -> World:
    """Return a world whose segments take about five batches of one record."""
    config = {"segment_bytes": 450, "index_interval_bytes": 100, "file_delete_delay_ms": 0}
    return World(path, **(config | fields))


def fill(log: Log, count: int, **fields: Any) -> None:
    """Append batches of one record."""
    for _ in range(count):
        log.append_as_leader(make_batch(**fields), 0)


def end_transaction(log: Log, outcome: str, producer_id: int = 7) -> None:
    """Append a coordinator's transaction marker."""
    marker = control.EndTransactionMarker(control.ControlType[outcome], 0)
    data = control.encode_marker(
        marker, producer_id=producer_id, producer_epoch=0, timestamp=START_MS
    )
    log.append_as_leader(data, 0, from_client=False)
