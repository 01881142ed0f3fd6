"""The process: memory, processor time, files, garbage collector, lag of the event loop.

Names are those of the Python client of Prometheus, which dashboards for Python processes know.
"""

import gc
import os
import platform
from collections.abc import Iterator

import ottla
from ottla.base import descriptors
from ottla.base.files import FileSystem
from ottla.metrics.exposition import Family, Kind, Sample, counter, gauge, labels
from ottla.server.loop_lag import BUCKETS, LoopLag, LoopWatch

_STAT = "/proc/self/stat"
_BOOT = "/proc/stat"
_DESCRIPTORS = "/proc/self/fd"
_IO = "/proc/self/io"
# Fields of /proc/self/stat after the name of the program, counted from 0.
_USER_TICKS, _SYSTEM_TICKS, _START_TICKS, _VIRTUAL_BYTES, _RESIDENT_PAGES = 11, 12, 19, 20, 21


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
        *_device(files),
        *_collector(),
    ]


def _statistics(files: FileSystem) -> Iterator[Family]:
    try:
        # The name of the program, in parentheses, may contain any character.
        fields = files.read(_STAT).rpartition(b")")[2].split()
        boot = files.read(_BOOT).split(b"btime ")[1].split()[0]
    except (OSError, IndexError):
        return
    ticks = os.sysconf("SC_CLK_TCK")
    used = (int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS])) / ticks
    yield counter("process_cpu_seconds_total", "Processor time.", used)
    started = int(boot) + int(fields[_START_TICKS]) / ticks
    yield gauge("process_start_time_seconds", "Start time in seconds since 1970.", started)
    yield gauge("process_virtual_memory_bytes", "Address space.", int(fields[_VIRTUAL_BYTES]))
    resident = int(fields[_RESIDENT_PAGES]) * os.sysconf("SC_PAGE_SIZE")
    yield gauge("process_resident_memory_bytes", "Memory.", resident)


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


def _device(files: FileSystem) -> Iterator[Family]:
    try:
        rows = dict(line.split(b": ") for line in files.read(_IO).splitlines())
        read, written = int(rows[b"read_bytes"]), int(rows[b"write_bytes"])
    except (OSError, KeyError, ValueError):
        return
    prefix = "kafka_server_kafkaserver_linux_disk_"
    yield gauge(f"{prefix}read_bytes", "Bytes read from devices for the process.", read)
    yield gauge(f"{prefix}write_bytes", "Bytes to be written to devices for the process.", written)


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


def loop(watch: LoopWatch) -> list[Family]:
    """Return the load of the event loop: it is Kafka's network and request handler threads in one."""
    idle = watch.idle_share()
    return [
        gauge(
            "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
            "Fraction (0 to 1) of the last minute in which the event loop was idle.",
            idle,
        ),
        gauge("kafka_network_socketserver_networkprocessoravgidle_percent", "The same.", idle),
        *_lag(watch.lag),
    ]


def _lag(lag: LoopLag) -> list[Family]:
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
