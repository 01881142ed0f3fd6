"""Measure the CPU time of the log beyond the system calls: appends, reads, creation and loading.

`python -m bench.append` prints one line for each figure, the best of several rounds, because other
processes only ever add time. Appends are measured on files that are truncated again and again, so
that the page cache is warm; “write” is the same bytes through `os.write` alone.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ottla.base.clock import RealClock
from ottla.base.files import RealFileSystem
from ottla.base.rng import SystemRng
from ottla.storage.config import LogConfig
from ottla.storage.directories.disk import LogDirectories
from ottla.storage.log.log import Log
from ottla.wire.records import batch
from ottla.wire.records.records import Record, encode_batch

ROUNDS = 7
TOPIC_ID = bytes(15) + b"\x07"


def open_directories(path: Path) -> LogDirectories:
    """Return the log directory at `path`."""
    return LogDirectories.open(
        [str(path)],
        files=RealFileSystem(),
        clock=RealClock(),
        rng=SystemRng(),
        broker_id=1,
        default_config=LogConfig(),
    )


def best_us(work: Callable[[int], None], count: int, prepare: Callable[[], None]) -> float:
    """Return the CPU µs of one of `count` operations, in the best round."""
    best = float("inf")
    for _ in range(ROUNDS):
        prepare()
        begin = time.process_time_ns()
        work(count)
        best = min(best, (time.process_time_ns() - begin) / count / 1000)
    return best


def make_batch(records: int, value_bytes: int, producer_id: int = -1) -> bytearray:
    """Return a batch as a producer sends it."""
    now_ms = RealClock().time_ms()
    return encode_batch(
        [Record(None, b"x" * value_bytes, timestamp=now_ms)] * records,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=0 if producer_id >= 0 else -1,
    )


def append_us(log: Log, data: bytearray, count: int) -> float:
    """Return the cost of one append as leader, without the preparation of the client's bytes."""
    header = batch.parse_header(data)
    view = memoryview(data)

    def prepare(times: int, append: Callable[[memoryview, int], object]) -> None:
        next_sequence = header.base_sequence
        for _ in range(times):
            # Base offset 0, and the next sequence number with a new checksum.
            data[:8] = b"\0\0\0\0\0\0\0\0"
            if next_sequence >= 0:
                data[53:57] = next_sequence.to_bytes(4, "big")
                batch.seal(data, 0, len(data))
                next_sequence += header.records_count
            append(view, 3)

    def begin_anew() -> None:
        log.truncation.truncate_fully_and_start_at(0)

    appended = best_us(lambda times: prepare(times, log.append_as_leader), count, begin_anew)
    return appended - best_us(lambda times: prepare(times, do_nothing), count, begin_anew)


def do_nothing(_: memoryview, __: int) -> None:
    """Replace the append when only the preparation is measured."""


def write_us(path: Path, data: bytearray, count: int) -> float:
    """Return the cost of one bare write of the same bytes."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)

    def work(times: int) -> None:
        for _ in range(times):
            os.write(fd, data)

    cost = best_us(work, count, lambda: os.ftruncate(fd, 0))
    os.close(fd)
    return cost


def read_us(log: Log, max_bytes: int, count: int) -> float:
    """Return the cost of one read at a random position near the end, as a fetch does it."""
    end = log.log_end_offset
    offsets = [end - 1 - (n * 7919) % min(end, 400) for n in range(count)]

    def work(times: int) -> None:
        for offset in offsets:
            log.read(offset, max_bytes, max_offset=end, only_if_cached=True)

    return best_us(work, count, lambda: None)


def creation_ms(path: Path, partitions: int) -> tuple[float, float, float]:
    """Return wall-clock ms to create, to close and to load `partitions` empty logs."""
    directories = open_directories(path)
    begin = time.perf_counter()
    for partition in range(partitions):
        directories.create("__consumer_offsets", partition, TOPIC_ID, LogConfig())
    created = time.perf_counter()
    directories.close()
    closed = time.perf_counter()
    directories = open_directories(path)
    loaded = time.perf_counter()
    directories.close()
    return (created - begin) * 1000, (closed - created) * 1000, (loaded - closed) * 1000


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--directory", help="where to write (default: a temporary folder)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as folder:
        root = Path(folder)
        directories = open_directories(root / "data")
        config = LogConfig(file_delete_delay_ms=0)
        log = directories.create("bench", 0, TOPIC_ID, config)
        cases = (
            ("1 x 100 B", make_batch(1, 100), 20_000),
            ("1 x 100 B, idempotent", make_batch(1, 100, 77), 20_000),
            ("1 x 1 KB", make_batch(1, 1024), 10_000),
            ("16 x 1 KB", make_batch(16, 1024), 2_000),
            ("1000 x 1 KB", make_batch(1000, 1024), 60),
        )
        print(f"{'append':24} {'append us':>10} {'write us':>10} {'beyond us':>10}")
        for name, data, count in cases:
            appended = append_us(log, data, count)
            log.deletion.remove_deleted()
            bare = write_us(root / "bare", data, count)
            print(f"{name:24} {appended:10.2f} {bare:10.2f} {appended - bare:10.2f}")
        log.truncation.truncate_fully_and_start_at(0)
        tiny = make_batch(1, 100)
        for _ in range(5_000):
            tiny[:8] = bytes(8)
            log.append_as_leader(tiny, 3)
        print(f"read 1 batch of 173 B    {read_us(log, 1, 5_000):10.2f} us")
        print(f"read 16 KB of them       {read_us(log, 16_384, 5_000):10.2f} us")
        directories.close()
        create, close, load = creation_ms(root / "many", 50)
        print(f"50 partitions: create {create:.1f} ms, close {close:.1f} ms, load {load:.1f} ms")


if __name__ == "__main__":
    main()
