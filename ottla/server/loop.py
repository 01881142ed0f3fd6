"""A process of brokers: event loop, garbage collector, signals.

Not used by the test fixture: there the process belongs to the test runner. uvloop is used if it is
installed; it costs 4-8 % less CPU and changes nothing else.
"""

import asyncio
import gc
import importlib.util
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ottla.base.clock import Clock, RealClock
from ottla.base.errors import OttlaError
from ottla.base.loading import deferred_module, load_module
from ottla.base.logs import provoked_logger
from ottla.base.platform import descriptors
from ottla.base.platform.descriptors import SPARE_COUNT, SPARES
from ottla.coordinators.groups.service import DEFERRED_MODULES
from ottla.server.loop_lag import LoopWatch

# An optional dependency.
if TYPE_CHECKING:
    import uvloop
else:
    uvloop = deferred_module("uvloop")

_log = provoked_logger(__name__)

LoopFactory = Callable[[], asyncio.AbstractEventLoop]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# The first clients of a broker that has just started find it idle.
_IMPORTS_AFTER_SECONDS = 1.0
_BETWEEN_IMPORTS_SECONDS = 0.02
# The hot path frees memory by reference counting, so collections are rare. One of the second
# generation, whose objects are from the last five collections, takes up to 0.05 s.
THRESHOLDS = (20_000, 5, 1000)
COLLECTED_OBJECTS_MAX = 50_000
# ctypes for the page cache, which every fetch asks.
_OF_FETCHES = "ottla.base.platform.page_cache"


class Service(Protocol):
    """One broker (`Node`), or several (`LocalCluster`)."""

    failure: OttlaError | None
    on_failure: Callable[[], None]

    @property
    def loop_watches(self) -> list[LoopWatch]:
        """The watches that measure how long the event loop is blocked."""
        ...

    async def start(self) -> None:
        """Return when clients are served; raises ConfigError or StorageError."""
        ...

    async def stop(self) -> None:
        """Stop cleanly; idempotent."""
        ...

    def hurry(self) -> None:
        """Stop waiting for clients during the shutdown."""
        ...


S = TypeVar("S", bound=Service)


def run(node: S, on_ready: Callable[[S], None]) -> None:
    """Start the node, call `on_ready`, and stop it cleanly on SIGINT or SIGTERM. Blocks.

    Raises the ConfigError or StorageError of the start, and the error for which the node has
    stopped by itself.
    """
    # Imported objects stay, so the collections during the start skip them.
    gc.freeze()
    former_thresholds = gc.get_threshold()
    gc.set_threshold(*THRESHOLDS)
    descriptors.raise_soft_limit()
    SPARES.hold(SPARE_COUNT)
    *_, factory = event_loops().values()
    former = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(_serve(node, on_ready))
    finally:
        gc.set_threshold(*former_thresholds)
        SPARES.hold(0)
        # uvloop keeps its handler of SIGINT, which does nothing once the loop is closed.
        for number, handler in former.items():
            signal.signal(number, handler)


def event_loops() -> dict[str, LoopFactory]:
    """Return the installed event loops by name; the broker uses the last one."""
    factories: dict[str, LoopFactory] = {"asyncio": asyncio.new_event_loop}
    if importlib.util.find_spec("uvloop") is not None:
        factories["uvloop"] = uvloop.new_event_loop
    return factories


async def _serve(node: S, on_ready: Callable[[S], None]) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        if stopped.is_set():
            # A second signal: no longer wait for clients.
            node.hurry()
        stopped.set()

    loop.set_exception_handler(tell_failure)
    for number in _SIGNALS:
        loop.add_signal_handler(number, on_signal)
    node.on_failure = stopped.set
    if not await _is_started(node, stopped):
        return
    exempt_start()
    importing = asyncio.ensure_future(import_deferred(RealClock()))
    try:
        with collections_named(*node.loop_watches):
            on_ready(node)
            await stopped.wait()
    finally:
        importing.cancel()
        try:
            await node.stop()
        finally:
            if node.failure is not None:
                raise node.failure


async def _is_started(node: Service, stopped: asyncio.Event) -> bool:
    """Start the node; return False if it was stopped during the start, in which case everything is
    closed.
    """
    starting = asyncio.ensure_future(node.start())
    interrupted = asyncio.ensure_future(stopped.wait())
    await asyncio.wait([starting, interrupted], return_when=asyncio.FIRST_COMPLETED)
    if starting.done() or node.failure is not None:
        interrupted.cancel()
        await starting
        return True
    starting.cancel()
    await asyncio.wait([starting])
    if not starting.cancelled() and starting.exception() is None:
        # The signal came after the start.
        await node.stop()
    return False


async def import_deferred(clock: Clock) -> None:
    """Import the modules of fetches and groups a while after the start, one at a time.

    Otherwise the first fetch would take 2 ms longer, and the first group would block the loop for
    30 ms.
    """
    await clock.sleep(_IMPORTS_AFTER_SECONDS)
    for module in (_OF_FETCHES, *DEFERRED_MODULES):
        load_module(module)
        await clock.sleep(_BETWEEN_IMPORTS_SECONDS)
    # Not collected before: that would take 100 ms if 10 000 partitions were created at the start.
    gc.freeze()


def tell_failure(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an exception that no task awaited: a bug, but perhaps one that clients can provoke."""
    _log.error(
        "unhandled failure where=%s",
        context.get("message"),
        exc_info=context.get("exception"),
    )


def exempt_start() -> None:
    """Exempt the objects created by the start from collections.

    A full collection costs up to 500 ns per object. After the start of a broker with thousands of
    partitions it would be a long pause, so the few cycles that such a start leaves are kept.
    """
    if len(gc.get_objects()) < COLLECTED_OBJECTS_MAX:
        gc.collect()
    gc.freeze()


@contextmanager
def collections_named(*watches: LoopWatch) -> Iterator[None]:
    """Report each long run of the garbage collector to the watches."""
    clock, started = RealClock(), 0.0

    def collected(phase: str, info: dict[str, int]) -> None:
        nonlocal started
        now = clock.monotonic()
        if phase == "start":
            started = now
        else:
            for watch in watches:
                watch.did(f"garbage collection of generation {info['generation']}", now - started)

    gc.callbacks.append(collected)
    try:
        yield
    finally:
        gc.callbacks.remove(collected)
