"""A real broker inside the test process: isolated, on a free port, started in milliseconds.

The broker runs on its own event loop and thread, so a test may block, run its own event loop, or
use any client. The defaults are Kafka's, except those that would make tests wait: the first
rebalance of a group is not delayed.
"""

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from ottla.base.errors import OttlaError
from ottla.base.files import FileSystem, RealFileSystem
from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from ottla.cluster.options.option_tables import refuse_unknown_names
from ottla.server.node import Node
from ottla.testing.volatile import VolatileFileSystem

# Tests do not wait for further group members (Kafka: 3 s).
TEST_OPTIONS: Mapping[str, str] = {"group.initial.rebalance.delay.ms": "0"}
_LOOPBACK = "127.0.0.1"
_PATIENCE_S = 30.0


class Cluster:
    """A single-broker cluster; a context manager, with and without `async`.

    `options` are broker options by their Kafka names; `start` rejects unknown ones. `data` is a
    directory that is kept. Without it the records are in a temporary directory that is never synced
    and that `stop` removes. Methods may be called from any thread. `stop` is idempotent, and a
    stopped cluster can be started again, on the same port.
    """

    def __init__(
        self, *, options: Mapping[str, str] | None = None, data: str | Path | None = None
    ) -> None:
        self.options = {**TEST_OPTIONS, **(options or {})}
        self._is_temporary = data is None
        self.data = Path(tempfile.gettempdir() if data is None else data)
        self._port = 0
        self._lock = threading.Lock()
        self._running: _NodeThread | None = None

    @property
    def bootstrap(self) -> str:
        """The bootstrap address for clients, as host:port."""
        return f"{self.host}:{self.port}"

    @property
    def host(self) -> str:
        """The host name or address of the listener."""
        return self._node.host

    @property
    def port(self) -> int:
        """The port of the listener; the same after a restart."""
        return self._node.port

    @property
    def cluster_id(self) -> str:
        """The id of the cluster, generated on its first start."""
        return self._node.cluster_id

    def start(self) -> "Cluster":
        """Start the broker and return when it serves clients; raises ConfigError or StorageError."""
        with self._lock:
            if self._running is None:
                refuse_unknown_names(self.options)
                if self._is_temporary and not self._has_own_folder():
                    self.data = Path(tempfile.mkdtemp(prefix="ottla-"))
                files = VolatileFileSystem() if self._is_temporary else RealFileSystem()
                running = _NodeThread(self._settings(), files)
                try:
                    running.start_node()
                except (OttlaError, OSError):
                    self._forget_data()
                    raise
                self._running = running
                self._port = running.node.port
        return self

    def stop(self) -> None:
        """Stop cleanly and remove temporary data; idempotent."""
        with self._lock:
            self._stop_node()
            self._forget_data()

    def restart(self) -> None:
        """Stop cleanly and start again with the same data on the same port."""
        with self._lock:
            self._stop_node()
        self.start()

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic; raises ApiError if it exists or its name or configuration is invalid."""
        with self.admin() as brokers:
            topics.create_topic(brokers, name, partitions=partitions, config=config)

    def topics(self) -> list[str]:
        """Return the names of the topics, without internal ones."""
        with self.admin() as brokers:
            return [row.name for row in topics.list_topics(brokers) if not row.is_internal]

    def admin(self) -> Brokers:
        """Return a new client for the functions of `ottla.client.admin`; close it after use."""
        return Brokers(self.bootstrap)

    def __enter__(self) -> "Cluster":
        """Start the cluster."""
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the cluster."""
        self.stop()

    async def __aenter__(self) -> "Cluster":
        """Start the cluster without blocking the caller's event loop."""
        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the cluster without blocking the caller's event loop."""
        await asyncio.to_thread(self.stop)

    @property
    def _node(self) -> Node:
        if self._running is None:
            raise OttlaError("The cluster is not running: use `with Cluster() as cluster`.")
        return self._running.node

    def _settings(self) -> dict[str, str]:
        return {
            "listeners": f"PLAINTEXT://{_LOOPBACK}:{self._port}",
            "log.dirs": str(self.data),
            **self.options,
        }

    def _has_own_folder(self) -> bool:
        return self.data != Path(tempfile.gettempdir())

    def _stop_node(self) -> None:
        if self._running is not None:
            running, self._running = self._running, None
            running.stop_node()

    def _forget_data(self) -> None:
        if self._is_temporary and self._has_own_folder():
            shutil.rmtree(self.data, ignore_errors=True)
            self.data = Path(tempfile.gettempdir())


class _NodeThread:
    """One node on its own event loop and thread, from start to stop."""

    def __init__(self, settings: Mapping[str, str], files: FileSystem) -> None:
        self.node: Node
        self._settings = settings
        self._files = files
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._ready = threading.Event()
        self._is_serving = False
        self._failure: OttlaError | OSError | None = None
        # A daemon thread: a test that forgets `stop` must not keep the interpreter from exiting.
        self._thread = threading.Thread(target=self._run, name="ottla-broker", daemon=True)

    def start_node(self) -> None:
        """Return when the node serves clients; raise the error if it cannot start."""
        self._thread.start()
        self._ready.wait()
        if not self._is_serving:
            self._thread.join()
            raise self._failure or OttlaError("The broker did not start: see its traceback.")

    def stop_node(self) -> None:
        """Return when the node has stopped; raise the error that it failed with."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_PATIENCE_S)
        if self._thread.is_alive():
            raise OttlaError(f"The broker did not stop within {_PATIENCE_S:g} s.")
        if self._failure is not None:
            raise self._failure

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
        self.node = Node(self._settings, files=self._files)
        await self.node.start()
        self._is_serving = True
        self._ready.set()
        try:
            await self._stop.wait()
        finally:
            await self.node.stop()
