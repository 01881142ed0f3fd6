"""The broker as a process: signals, failures, and garbage collection."""

import asyncio
import errno
import gc
import io
import logging
import os
import resource
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from ottla.base.clock import RealClock
from ottla.base.errors import ConfigError, StorageError
from ottla.base.logs import REPEATS_MAX, Repeats
from ottla.base.platform.descriptors import SPARE_COUNT, soft_limit
from ottla.server import loop
from ottla.server.loop import collections_named, run, tell_failure
from ottla.server.loop_lag import LoopWatch
from ottla.server.node import Node


@pytest.fixture
def collector():  # type: ignore[no-untyped-def]
    """Restore the garbage collector of the test's process."""
    before, was_frozen = gc.get_threshold(), gc.get_freeze_count() > 0
    yield
    gc.unfreeze()
    gc.set_threshold(*before)
    if was_frozen:
        gc.freeze()


def node(folder: Path, listener: str = "PLAINTEXT://127.0.0.1:0") -> Node:
    options = {"allow.insecure.listeners": "true"}
    return Node({"log.dirs": str(folder), "listeners": listener, **options})


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.usefixtures("collector")
def test_signal_stops_the_broker_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    """The signal arrives after the ready call; resources are released and the shutdown is clean.

    Later signals have the effect that they had before.
    """
    signals = (signal.SIGINT, signal.SIGTERM)
    handlers = [signal.getsignal(each) for each in signals]
    ready: list[int] = []

    def on_ready(started: Node) -> None:
        ready.append(started.port)
        os.kill(os.getpid(), number)

    run(node(tmp_path / "data"), on_ready)
    assert ready[0] > 0
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    assert [signal.getsignal(each) for each in signals] == handlers


def eventfds() -> int:
    """Return the number of descriptors of eventfd, which reserved descriptors are."""
    links = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            links.append(os.readlink(f"/proc/self/fd/{name}"))
    return sum("eventfd" in link for link in links)


@pytest.mark.usefixtures("collector")
def test_broker_may_open_many_files_and_reserves_descriptors(tmp_path: Path) -> None:
    """The soft limit of open files is the hard limit, and spares exist while the broker runs."""
    before, limits = eventfds(), resource.getrlimit(resource.RLIMIT_NOFILE)
    seen: list[tuple[int, int]] = []

    def on_ready(started: Node) -> None:
        seen.append((soft_limit(), eventfds() - before))
        os.kill(os.getpid(), signal.SIGTERM)

    resource.setrlimit(resource.RLIMIT_NOFILE, (512, limits[1]))
    try:
        run(node(tmp_path / "data"), on_ready)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    ((limit, spares),) = seen
    assert limit == limits[1]
    assert spares >= SPARE_COUNT
    assert eventfds() == before


def test_failed_start_raises(tmp_path: Path) -> None:
    """A failed start raises to the caller of `run`."""
    with pytest.raises(ConfigError, match="Cannot listen"):
        run(node(tmp_path, "PLAINTEXT://203.0.113.1:1"), lambda started: None)


@pytest.mark.usefixtures("collector")
def test_broker_is_stopped_if_the_ready_call_fails(tmp_path: Path) -> None:
    """The error is raised after a clean shutdown."""

    def on_ready(started: Node) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="No space left"):
        run(node(tmp_path / "data"), on_ready)
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_garbage_collection_is_reported_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch records collections like other work, and none after the broker has stopped."""
    watch = LoopWatch(RealClock(), lambda since: "")
    heard: list[str] = []
    monkeypatch.setattr(watch, "did", lambda name, seconds: heard.append(name))
    with collections_named(watch):
        gc.collect()
    gc.collect()
    assert heard == ["garbage collection of generation 2"]


@pytest.mark.parametrize(("objects_max", "generations"), [(0, []), (1 << 40, [2])])
@pytest.mark.usefixtures("collector")
def test_many_objects_of_the_start_are_exempt_without_a_collection(
    monkeypatch: pytest.MonkeyPatch, objects_max: int, generations: list[int]
) -> None:
    """A full collection would visit the objects of all partitions while clients wait."""
    monkeypatch.setattr(loop, "COLLECTED_OBJECTS_MAX", objects_max)
    gc.freeze()  # the objects of earlier tests would make the collection long
    objects: list[object] = [[] for _ in range(10_000)]
    before, seen = gc.get_freeze_count(), list[int]()

    def collected(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            seen.append(info["generation"])

    gc.disable()
    gc.callbacks.append(collected)
    try:
        loop.exempt_start()
    finally:
        gc.callbacks.remove(collected)
        gc.enable()
    assert seen == generations
    assert gc.get_freeze_count() > before
    assert len(objects) == 10_000


@pytest.mark.usefixtures("collector")
def test_collections_are_rare_from_the_start_on(tmp_path: Path) -> None:
    """Loading many logs does not cause full collections; the process has its thresholds later."""
    former, seen = gc.get_threshold(), list[tuple[int, int, int]]()
    started = node(tmp_path / "data")
    start = started.start

    async def noting() -> None:
        seen.append(gc.get_threshold())
        await start()

    started.start = noting  # type: ignore[method-assign]
    run(started, lambda _: os.kill(os.getpid(), signal.SIGTERM))
    assert seen == [loop.THRESHOLDS]
    assert gc.get_threshold() == former


@pytest.mark.usefixtures("collector")
def test_node_without_a_log_directory_stops_the_process(tmp_path: Path) -> None:
    """The node stops by itself, and the exception names the failed directory."""
    data = tmp_path / "data"

    def on_ready(started: Node) -> None:
        directories = started.broker.replicas.directories
        directories.failed(StorageError(str(data), "Input/output error"))

    with pytest.raises(StorageError, match="Input/output error"):
        run(node(data), on_ready)
    assert not (data / ".kafka_cleanshutdown").exists()


async def test_a_bug_that_clients_can_provoke_does_not_flood_the_log() -> None:
    """Unobserved exceptions are logged with their traceback, at a limited rate."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(Repeats())
    log = logging.getLogger("ottla.server.loop")
    log.addHandler(handler)
    try:
        loop = asyncio.get_running_loop()
        for number in range(10 * REPEATS_MAX):
            tell_failure(loop, {"message": "a callback", "exception": KeyError(number)})
    finally:
        log.removeHandler(handler)
    assert stream.getvalue().count("unhandled failure where=a callback") == REPEATS_MAX
    assert "KeyError: 0" in stream.getvalue()
