"""`ottla up --processes`: one process for each broker, started again if it ends by itself.

The brokers share their metadata without ZooKeeper: one of them serves it (docs/decisions/0021), not
this process, which only starts, watches and stops them. A broker stops when this process ends, in
whatever way: its standard input is then at its end.
"""

import asyncio
import contextlib
import json
import random
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ottla.base.clock import RealClock
from ottla.base.errors import OttlaError
from ottla.base.files import RealFileSystem, keep_others_out
from ottla.client.admin.cluster import describe_cluster
from ottla.client.admin.topics import list_topics
from ottla.client.brokers import Brokers
from ottla.client.config.properties import write_properties
from ottla.client.security.private_files import write_private
from ottla.cluster.zk import tree_login
from ottla.tools.broker import layout
from ottla.tools.broker.live import Cluster, cluster_phrases
from ottla.tools.broker.local_console import ClusterFacts, LocalConsole
from ottla.tools.output import Output, StatusLine, note

_COMMAND = (sys.executable, "-m", "ottla")
_HOST = "127.0.0.1"
# ZooKeeper's port, so that its tools need no address. Else one below Linux's range of ephemeral
# ports: a client that connects to a port of that range may be connected to itself.
_ZOOKEEPER_PORT = 2181
_PORTS = range(20_000, 32_000)
# Seconds before a broker that ended is started again; doubled each time up to the maximum.
_PAUSE_SECONDS, _PAUSE_SECONDS_MAX = 1.0, 30.0
_WELL_SECONDS = 60.0
# Seconds between two updates of the live line, each of which sends two requests.
_STATE_SECONDS = 2.0


def run(
    data: str,
    settings: Sequence[Mapping[str, str]],
    options: Sequence[str],
    output: Output,
    line: StatusLine | None,
    local_console: LocalConsole | None = None,
    on_started: Callable[[], None] = lambda: None,
) -> None:
    """Run the brokers until a signal; `options` are further options of `ottla broker start`.

    `on_started` is called when all have started. Raises OttlaError if one cannot be started.
    """
    try:
        asyncio.run(
            _Processes(data, settings, options, line).run(output, local_console, on_started)
        )
    finally:
        if local_console is not None:
            local_console.stop()


def free_port(is_any: bool) -> int:
    """Return a free port for the coordination: ZooKeeper's, unless it is taken or `is_any`."""
    candidates = [] if is_any else [_ZOOKEEPER_PORT]
    candidates += random.SystemRandom().sample(_PORTS, 100)
    for port in candidates:
        with contextlib.suppress(OSError), socket.create_server((_HOST, port)):
            return port
    raise OttlaError("no port is free for the coordination: set -o coordination.listener=HOST:PORT")


def _state_phrases(bootstrap: str, count: int) -> list[str]:
    with Brokers(bootstrap) as client:
        described = describe_cluster(client)
        partitions = [row for topic in list_topics(client) for row in topic.partitions]
    under_replicated = sum(len(row.isr) < len(row.replicas) for row in partitions)
    cluster = Cluster(len(described.brokers), count, under_replicated, described.controller_id)
    return [f"{len(partitions):,} partitions", *cluster_phrases(cluster)]


class _Broker:
    """One broker's process, and the file with its settings."""

    def __init__(self, path: Path, settings: Mapping[str, str], options: Sequence[str]) -> None:
        self.settings = dict(settings)
        self.bootstrap = ""
        self.http_url = ""
        self.cluster_id = ""
        self._path = path
        self._options = options
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Return when the broker serves clients; OttlaError if it has ended instead."""
        # It has the passwords of the settings.
        write_private(self._path, write_properties(self.settings))
        command = (
            "broker",
            "start",
            "--config",
            str(self._path),
            "--supervised",
            "--output",
            "json",
        )
        self.process = await asyncio.create_subprocess_exec(
            *_COMMAND,
            *command,
            *self._options,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            # Ctrl-C reaches this process only, which stops the brokers.
            start_new_session=True,
        )
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        if not line:
            code = await self.process.wait()
            raise OttlaError(
                f"Broker {self.settings['node.id']} did not start (exit code {code}): see its "
                "message above"
            )
        facts = json.loads(line)
        self.bootstrap, self.cluster_id = facts["bootstrap"], facts["cluster_id"]
        self.http_url = facts.get("metrics", "").removesuffix("/metrics")
        # Started again, it must have the address that clients know.
        self.settings["listeners"] = f"PLAINTEXT://{self.bootstrap}"

    def stop(self) -> None:
        """Ask the broker to stop, without a controlled shutdown: all brokers stop."""
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()

    def hurry(self) -> None:
        """Ask the broker to stop waiting for clients."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.terminate()
                # A second signal: the first one only stops the broker.
                self.process.terminate()


class _Processes:
    """All brokers, from start to stop."""

    def __init__(
        self,
        data: str,
        settings: Sequence[Mapping[str, str]],
        options: Sequence[str],
        line: StatusLine | None,
    ) -> None:
        self._data = data
        self._line = line
        is_any = settings[0]["listeners"].endswith(":0")
        address = settings[0].get("coordination.listener") or f"{_HOST}:{free_port(is_any)}"
        common = {
            "coordination.listener": address,
            "coordination.dir": layout.coordination(data),
        }
        self._coordination = address
        self._brokers = [
            _Broker(layout.properties(data, number), {**own, **common}, options)
            for number, own in enumerate(settings, 1)
        ]
        self._stopped = asyncio.Event()
        self._clock = RealClock()

    async def run(
        self, output: Output, local_console: LocalConsole | None, on_started: Callable[[], None]
    ) -> None:
        """Start the brokers, watch them, and stop them after a signal."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._on_signal)
        files = RealFileSystem()
        files.make_directories(self._data)
        keep_others_out(files, [self._data])
        watching: list[asyncio.Task[None]] = []
        try:
            await self._start_all()
            on_started()
            if not self._stopped.is_set():
                self._announce(output)
                if local_console is not None:
                    local_console.start(self._facts())
            watching = [asyncio.ensure_future(self._watch(broker)) for broker in self._brokers]
            if self._line is not None:
                watching.append(asyncio.ensure_future(self._show_state(self._line)))
            await self._stopped.wait()
        finally:
            for task in watching:
                task.cancel()
            if self._line is not None:
                self._line.clear()
            await self._stop_all()

    def _facts(self) -> ClusterFacts:
        urls = {
            int(broker.settings["node.id"]): broker.http_url
            for broker in self._brokers
            if broker.http_url
        }
        bootstrap = ",".join(broker.bootstrap for broker in self._brokers)
        login = tree_login.read(RealFileSystem(), layout.coordination(self._data))
        return ClusterFacts(bootstrap, urls, self._coordination, zookeeper_login=login)

    async def _show_state(self, line: StatusLine) -> None:
        """Draw the state of the cluster, as one of its brokers reports it."""
        bootstrap = ",".join(broker.bootstrap for broker in self._brokers)
        while True:
            try:
                phrases = await asyncio.to_thread(_state_phrases, bootstrap, len(self._brokers))
            except OttlaError:
                phrases = ["no broker responds"]
            line.show(" · ".join(phrases))
            await self._clock.sleep(_STATE_SECONDS)

    async def _start_all(self) -> None:
        starting = [asyncio.ensure_future(broker.start()) for broker in self._brokers]
        stopped = asyncio.ensure_future(self._stopped.wait())
        started = asyncio.gather(*starting, return_exceptions=True)
        waiting: list[asyncio.Future[Any]] = [started, stopped]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not started.done():
            return
        for error in await started:
            if isinstance(error, BaseException):
                raise error

    def _announce(self, output: Output) -> None:
        bootstrap = ",".join(broker.bootstrap for broker in self._brokers)
        with contextlib.suppress(BrokenPipeError):
            output.done(
                f"Ottla is ready on {bootstrap} (data in {self._data})\n"
                f"The metadata is on {self._coordination}: "
                f"KAFKA_OPTS={tree_login.java_options(layout.coordination(self._data))} "
                f"ottla zookeeper shell --connect {self._coordination}",
                bootstrap=bootstrap,
                data=self._data,
                cluster_id=self._brokers[0].cluster_id,
                coordination=self._coordination,
            )

    def _on_signal(self) -> None:
        if self._stopped.is_set():
            # A second signal: the brokers no longer wait for clients.
            for broker in self._brokers:
                broker.hurry()
        self._stopped.set()

    async def _watch(self, broker: _Broker) -> None:
        """Start a broker again whenever it ends."""
        pause = _PAUSE_SECONDS
        while True:
            began = self._clock.monotonic()
            assert broker.process is not None
            code = await broker.process.wait()
            number = broker.settings["node.id"]
            if self._clock.monotonic() - began > _WELL_SECONDS:
                pause = _PAUSE_SECONDS
            if self._line is not None:
                self._line.clear()
            note(f"Broker {number} has ended (exit code {code}); it is started again.")
            await self._clock.sleep(pause)
            pause = min(2 * pause, _PAUSE_SECONDS_MAX)
            with contextlib.suppress(OttlaError):
                # One that does not start has written why; the next attempt follows.
                await broker.start()

    async def _stop_all(self) -> None:
        running = [broker for broker in self._brokers if broker.process is not None]
        for broker in running:
            broker.stop()
        for broker in running:
            assert broker.process is not None
            await broker.process.wait()
