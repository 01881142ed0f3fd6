"""The process: memory, processor time, files, garbage collector, lag of the event loop.

Names are the names of Prometheus' Python client, which dashboards for Python processes know.
"""

import gc
import platform
from collections.abc import Iterator
from typing import TYPE_CHECKING

import ottla
from ottla.base.files import FileSystem
from ottla.base.loading import deferred_module
from ottla.base.platform import descriptors
from ottla.metrics.beans import Beans, Idle, Measurement
from ottla.metrics.exposition import Family, Kind, Sample, counter, gauge, labels
from ottla.server.loop_lag import BUCKETS, LoopLag, LoopWatch

# The first scrape needs it.
if TYPE_CHECKING:
    from ottla.base.platform import processes
else:
    processes = deferred_module("ottla.base.platform.processes")

_server = Beans("kafka.server", "KafkaServer")
_handlers = Beans("kafka.server", "KafkaRequestHandlerPool")
_sockets = Beans("kafka.network", "SocketServer")


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


def _statistics(files: FileSystem) -> Iterator[Family]:
    process_status = processes.own_figures(files.read)
    if process_status is None:
        return
    yield counter("process_cpu_seconds_total", "Processor time.", process_status.cpu_seconds)
    started = process_status.started_seconds
    yield gauge("process_start_time_seconds", "Start time in seconds since 1970.", started)
    if process_status.virtual_bytes:
        yield gauge("process_virtual_memory_bytes", "Address space.", process_status.virtual_bytes)
    yield gauge("process_resident_memory_bytes", "Memory.", process_status.resident_bytes)


def open_count(files: FileSystem) -> int:
    """Return how many descriptors the process has open; 0 if that is unknown."""
    return processes.open_descriptor_count(files.list)


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
    counts = processes.device_bytes(files.read)
    if counts is None:
        return
    read, written = counts
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
