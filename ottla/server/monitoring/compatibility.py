"""A Python process under the names that dashboards for a JVM use (`metrics.jvm.names`).

Memory is measured for the process, threads are the operating system's, and garbage collections
count collections of reference cycles, with one collector for each generation. Off by default: most
memory of a Python process is freed without its garbage collector, so an alert on these names means
something else here.
"""

import gc
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ottla.base.clock import Clock
from ottla.base.files import FileSystem
from ottla.base.loading import deferred_module
from ottla.metrics.exposition import Family, Kind, Sample, gauge, labels

# The first scrape needs it.
if TYPE_CHECKING:
    from ottla.base.platform import processes
else:
    processes = deferred_module("ottla.base.platform.processes")


class Collections:
    """The number and duration of garbage collections, by generation, from `start` to `stop`."""

    def __init__(self, clock: Clock) -> None:
        self.counts = [0] * len(gc.get_threshold())
        self.seconds = [0.0] * len(self.counts)
        self._clock = clock
        self._started_at = 0.0

    def start(self) -> None:
        """Measure the collections of this process."""
        gc.callbacks.append(self._changed)

    def stop(self) -> None:
        """Stop measuring; idempotent."""
        if self._changed in gc.callbacks:
            gc.callbacks.remove(self._changed)

    def _changed(self, phase: str, info: Mapping[str, int]) -> None:
        now = self._clock.monotonic()
        if phase == "start":
            self._started_at = now
        else:
            self.counts[info["generation"]] += 1
            self.seconds[info["generation"]] += now - self._started_at


def jvm(files: FileSystem, collections: Collections) -> Iterator[Family]:
    """Yield memory, threads and garbage collections; memory and threads only if they are known."""
    status = processes.own_figures(files.read)
    if status is not None:
        areas = [(labels(area="heap"), status.resident_bytes), (labels(area="nonheap"), 0)]
        yield gauge("jvm_memory_used_bytes", "Memory of the process.", areas)
        yield gauge("jvm_memory_committed_bytes", "Memory of the process.", areas)
        yield gauge("jvm_threads_current", "Threads of the process.", status.threads_count)
    counts: list[Sample] = []
    sums: list[Sample] = []
    for generation, count in enumerate(collections.counts):
        written = labels(gc=f"generation {generation}")
        counts.append((written, count))
        sums.append((written, collections.seconds[generation]))
    yield Family(
        "jvm_gc_collection_seconds",
        Kind.SUMMARY,
        "Collections of reference cycles.",
        (),
        {"_count": counts, "_sum": sums},
    )
