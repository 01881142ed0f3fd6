"""One broker of a test on an event loop and a thread of its own, from start to stop or kill."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress

from ottla.base.errors import OttlaError
from ottla.server.coordination.tree import SharedTree
from ottla.server.node import Node
from ottla.testing.broker_disk import BrokerDisk
from ottla.testing.broker_net import BrokerNet

_PATIENCE_S = 30.0
# How long the tasks of a killed broker may take to end.
_KILL_SECONDS = 1.0


class BrokerThread:
    """One life of a broker; `tree` None gives it a tree of its own in its log directory."""

    def __init__(
        self,
        settings: Mapping[str, str],
        disk: BrokerDisk,
        net: BrokerNet,
        tree: SharedTree | None = None,
    ) -> None:
        self.node: Node
        self.disk = disk
        self.net = net
        self._settings = settings
        self._tree = tree
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._ready = threading.Event()
        self._is_serving = False
        self._is_killed = False
        self._stops_with_cluster = False
        # Set while the broker is not paused.
        self._may_run = threading.Event()
        self._may_run.set()
        self._failure: OttlaError | OSError | None = None
        # A daemon thread: a test that forgets `stop` must not keep the interpreter from exiting.
        self._thread = threading.Thread(target=self._run, name="ottla-broker", daemon=True)

    def begin(self) -> None:
        """Start the thread; `finish_start` waits for the broker."""
        self._thread.start()

    def finish_start(self) -> None:
        """Return when the broker serves clients; raise the error if it cannot start."""
        self._ready.wait()
        if not self._is_serving:
            self._thread.join()
            raise self._failure or OttlaError("The broker did not start: see its traceback.")

    def begin_stop(self, *, with_cluster: bool = False) -> None:
        """Ask the broker to stop cleanly; a paused one continues for that.

        `with_cluster` if all brokers stop: then none gives up its leaders to another one.
        """
        self._stops_with_cluster = with_cluster
        self.resume()
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)

    def finish_stop(self) -> None:
        """Return when the broker has stopped; raise the error that it failed with."""
        self._join()
        if self._failure is not None:
            raise self._failure

    def kill(self) -> None:
        """End the broker like `kill -9`: it writes nothing more, and its connections are closed."""
        self._is_killed = True
        self.disk.kill()
        self.resume()
        self._call(self._stop.set)
        self._join()

    def run(self, work: Callable[[], object]) -> None:
        """Run work on the broker's event loop, and return when it is done.

        The work of a paused broker is done when it continues.
        """
        done = threading.Event()

        def call() -> None:
            try:
                work()
            finally:
                done.set()

        if self._call(call) and self._may_run.is_set():
            done.wait(_PATIENCE_S)

    def _call(self, work: Callable[[], object]) -> bool:
        """Call a function on the loop; return False if the broker has ended by itself."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(work)
            return True
        return False

    def pause(self) -> None:
        """Block the broker's event loop, like SIGSTOP."""
        self._may_run.clear()
        self._loop.call_soon_threadsafe(self._may_run.wait)

    def resume(self) -> None:
        """Let a paused broker continue, like SIGCONT."""
        self._may_run.set()

    def _join(self) -> None:
        self._thread.join(_PATIENCE_S)
        if self._thread.is_alive():
            raise OttlaError(f"The broker did not stop within {_PATIENCE_S:g} s.")

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except (OttlaError, OSError) as error:
            self._failure = error
        finally:
            # The thread prints any other error; no caller waits for it.
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self.node = Node(self._settings, files=self.disk, net=self.net, tree=self._tree)
        await self.node.start()
        self._is_serving = True
        self._ready.set()
        try:
            await self._stop.wait()
        finally:
            if self._is_killed:
                await self._end_at_once()
            else:
                await self.node.stop(with_cluster=self._stops_with_cluster)

    async def _end_at_once(self) -> None:
        """Close the connections and end the tasks; what they still do reaches no disk."""
        self._loop.set_exception_handler(lambda loop, context: None)
        # Nothing in the interpreter may refer to the broker: its process has ended.
        self.node.sources.stop_measuring()
        await self.net.kill()
        running = asyncio.all_tasks() - {asyncio.current_task()}
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=_KILL_SECONDS)
