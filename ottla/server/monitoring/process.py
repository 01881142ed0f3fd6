"""The process: memory, processor time, files, garbage collector, lag of the event loop.

Names are the names of Prometheus' Python client, which dashboards for Python processes know.
"""

import gc
import os
import platform
from collections.abc import Iterator
from typing import NamedTuple

import ottla
from ottla.base import descriptors
from ottla.base.files import FileSystem
from ottla.metrics.beans import Beans, Idle, Measurement
from ottla.metrics.exposition import Family, Kind, Sample, counter, gauge, labels
from ottla.server.loop_lag import BUCKETS, LoopLag, LoopWatch

_server = Beans("kafka.server", "KafkaServer")
_handlers = Beans("kafka.server", "KafkaRequestHandlerPool")
_sockets = Beans("kafka.network", "SocketServer")

_STAT = "/proc/self/stat"
_BOOT = "/proc/stat"
_DESCRIPTORS = "/proc/self/fd"
_IO = "/proc/self/io"
# Fields of /proc/self/stat after the name of the program, counted from 0.
_USER_TICKS, _SYSTEM_TICKS, _THREADS, _START_TICKS = 11, 12, 17, 19
_VIRTUAL_BYTES, _RESIDENT_PAGES = 20, 21


def process(files: FileSystem) -> list[Family]:
    """Return the operating system's figures of the process; none if they are not available."""
    info = labels(
        implementation=platform.python_implementation(), version=platform.python_version()
    )
    return [
        gauge("ottla_info", "Version.", [(labels(version=ottla.__version__), 1)]),
        gauge("python_info", "Python.", [(info, 1)]),
        *_statistics(files),
        *_descriptors(files),
        *_collector(),
    ]


class Status(NamedTuple):
    """The operating system's figures of the process; times in seconds."""

    cpu_seconds: float
    started_seconds: float
    virtual_bytes: int
    resident_bytes: int
    threads_count: int


def status(files: FileSystem) -> Status | None:
    """Return the figures of the process; None if the operating system does not have them."""
    try:
        # The name of the program, in parentheses, may contain any character.
        fields = files.read(_STAT).rpartition(b")")[2].split()
        boot = files.read(_BOOT).split(b"btime ")[1].split()[0]
    except (OSError, IndexError):
        return None
    ticks = os.sysconf("SC_CLK_TCK")
    return Status(
        (int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS])) / ticks,
        int(boot) + int(fields[_START_TICKS]) / ticks,
        int(fields[_VIRTUAL_BYTES]),
        int(fields[_RESIDENT_PAGES]) * os.sysconf("SC_PAGE_SIZE"),
        int(fields[_THREADS]),
    )


def _statistics(files: FileSystem) -> Iterator[Family]:
    process_status = status(files)
    if process_status is None:
        return
    yield counter("process_cpu_seconds_total", "Processor time.", process_status.cpu_seconds)
    started = process_status.started_seconds
    yield gauge("process_start_time_seconds", "Start time in seconds since 1970.", started)
    yield gauge("process_virtual_memory_bytes", "Address space.", process_status.virtual_bytes)
    yield gauge("process_resident_memory_bytes", "Memory.", process_status.resident_bytes)


def open_count(files: FileSystem) -> int:
    """Return how many descriptors the process has open; 0 if that is unknown."""
    try:
        return len(files.list(_DESCRIPTORS))
    except OSError:
        return 0


def _descriptors(files: FileSystem) -> Iterator[Family]:
    count = open_count(files)
    if not count:
        return
    yield gauge("process_open_fds", "Open files and sockets.", count)
    limit = descriptors.soft_limit()
    yield gauge("process_max_fds", "Limit of open files and sockets (ulimit -n).", limit)


_READ = _server.gauge("linux-disk-read-bytes", "Bytes read from devices for the process.")
_WRITTEN = _server.gauge(
    "linux-disk-write-bytes", "Bytes to be written to devices for the process."
)


def device(files: FileSystem) -> Iterator[Measurement]:
    """Yield the bytes that the process has read from devices and written to them."""
    try:
        rows = dict(line.split(b": ") for line in files.read(_IO).splitlines())
        read, written = int(rows[b"read_bytes"]), int(rows[b"write_bytes"])
    except (OSError, KeyError, ValueError):
        return
    yield _READ.of(read)
    yield _WRITTEN.of(written)


def _collector() -> Iterator[Family]:
    statistics = [
        (labels(generation=at), generation) for at, generation in enumerate(gc.get_stats())
    ]
    for name, key, meaning in (
        ("collections", "collections", "Runs of the garbage collector."),
        ("objects_collected", "collected", "Objects freed by the garbage collector."),
        (
            "objects_uncollectable",
            "uncollectable",
            "Objects that the garbage collector could not free.",
        ),
    ):
        yield counter(
            f"python_gc_{name}_total",
            meaning,
            [(written, generation[key]) for written, generation in statistics],
        )


_HANDLERS_IDLE = _handlers.idle(
    "RequestHandlerAvgIdlePercent",
    "Fraction (0 to 1) of the last minute in which the event loop was idle.",
)
_PROCESSORS_IDLE = _sockets.gauge(
    "NetworkProcessorAvgIdlePercent",
    "Fraction (0 to 1) of the last minute in which the event loop was idle.",
)


def idle(watch: LoopWatch) -> Iterator[Measurement]:
    """Yield the idle share of the event loop: it is Kafka's network and handler threads in one."""
    share = watch.idle_share()
    yield _HANDLERS_IDLE.of(Idle(int(watch.idle_seconds() * 1e9), share))
    yield _PROCESSORS_IDLE.of(share)


def loop(lag: LoopLag) -> list[Family]:
    """Return the lag of the event loop, during which no client is served."""
    below = 0
    buckets: list[Sample] = []
    for bound, count in zip((*map(str, BUCKETS), "+Inf"), lag.counts, strict=True):
        below += count
        buckets.append((labels(le=bound), below))
    return [
        Family(
            "ottla_event_loop_lag_seconds",
            Kind.HISTOGRAM,
            "Lag of the event loop.",
            (),
            {
                "_bucket": buckets,
                "_sum": [("", lag.sum_seconds)],
                "_count": [("", below)],
            },
        ),
        counter("ottla_event_loop_pauses_total", "Number of lags over 100 ms.", lag.pauses_count),
    ]
