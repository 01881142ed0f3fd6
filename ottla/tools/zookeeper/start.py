"""`ottla zookeeper start`: run a real ZooKeeper, or an ensemble, in the foreground until Ctrl-C."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Sequence
from pathlib import Path

import click

from ottla.base.clock import RealClock
from ottla.base.errors import OttlaError
from ottla.base.files import Lock, RealFileSystem, keep_others_out
from ottla.storage.files.checkpoints import LOCK_FILE
from ottla.tools import options
from ottla.tools.output import Output, note
from ottla.tools.zookeeper.java_server import (
    DEFAULT_DATA,
    HOST,
    Ports,
    java_command,
    write_config,
)

DEFAULT_PORT = 2181
_START_SECONDS = 60.0
_STOP_SECONDS = 10.0
_POLL_SECONDS = 0.05
_ANSWER_SECONDS = 2.0


@click.command("start")
@click.option("--nodes", type=click.IntRange(1, 9), default=1, show_default=True,
              help="The number of servers; an odd number survives the loss of fewer than half.")  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True,
              metavar="PORT", help="The port for clients, the next ones for more servers; 0 for any free ports.")  # fmt: skip
@click.option("--data", metavar="FOLDER", default=DEFAULT_DATA, show_default=True,
              type=click.Path(file_okay=False, path_type=Path), help="The folder for all data.")  # fmt: skip
@options.formatted
def command(output: Output, nodes: int, port: int, data: Path) -> None:
    """Run ZooKeeper servers until Ctrl-C, from the jars inside PySpark (needs Java).

    For development and tests: the servers of an ensemble share one machine and listen on loopback
    only. Their logs are in FOLDER/<number>/zookeeper.out.

    \b
    ottla zookeeper start
    ottla zookeeper start --nodes 3 --data /tmp/zk
    """
    java = java_command()
    ensemble = [
        Ports(port + index if port else client, quorum, election)
        for index, (client, quorum, election) in enumerate(_free_ports(nodes))
    ]
    lock = _lock(data)
    try:
        servers = [
            _Server(java, data / str(number), number, ensemble) for number in range(1, nodes + 1)
        ]
        asyncio.run(_run(servers, output, data))
    finally:
        lock.release()
    note("ZooKeeper has stopped.")


def _lock(data: Path) -> Lock:
    """Lock the folder, so that a second ensemble cannot use it and `stop` finds this process."""
    files = RealFileSystem()
    files.make_directories(str(data))
    # Java's snapshots of the tree, with the brokers' secret, may be read by everyone.
    keep_others_out(files, [str(data)])
    try:
        return files.lock(str(data / LOCK_FILE))
    except BlockingIOError as error:
        raise OttlaError(
            f"{data} is in use ({error.strerror}): stop that ZooKeeper with `ottla zookeeper stop "
            f"--data {data}`, or choose another folder with --data"
        ) from error


def _free_ports(nodes: int) -> list[Ports]:
    with contextlib.ExitStack() as probes:
        sockets = [probes.enter_context(socket.create_server((HOST, 0))) for _ in range(3 * nodes)]
        numbers = [probe.getsockname()[1] for probe in sockets]
    return [Ports(*numbers[start : start + 3]) for start in range(0, len(numbers), 3)]


class _Server:
    """One server's process."""

    def __init__(
        self, java: Sequence[str], folder: Path, number: int, ensemble: Sequence[Ports]
    ) -> None:
        self.number = number
        self.address = f"{HOST}:{ensemble[number - 1].client}"
        self.process: asyncio.subprocess.Process | None = None
        self._port = ensemble[number - 1].client
        self._java = java
        self._config = write_config(folder, number, ensemble)
        self._out = folder / "zookeeper.out"

    async def start(self) -> None:
        """Return when the server is part of a quorum."""
        with self._out.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *self._java,
                str(self._config),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C reaches this command only, which stops the servers.
                start_new_session=True,
            )
        clock = RealClock()
        deadline = clock.monotonic() + _START_SECONDS
        while not await self._serves():
            if self.process.returncode is not None or clock.monotonic() > deadline:
                raise OttlaError(
                    f"ZooKeeper server {self.number} on {self.address} did not start: look at "
                    f"{self._out}"
                )
            await clock.sleep(_POLL_SECONDS)

    async def _serves(self) -> bool:
        """Return True if the server reports its mode, which it has once there is a leader."""
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                reader, writer = await asyncio.open_connection(HOST, self._port)
                writer.write(b"srvr")
                response = await reader.read()
                writer.close()
        except (OSError, TimeoutError):
            return False
        return b"Mode:" in response

    async def stop(self) -> None:
        """Stop the server; kill it if it does not end in time."""
        process = self.process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def _run(servers: Sequence[_Server], output: Output, data: Path) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    work = asyncio.ensure_future(_serve(servers, output, data))
    waiting = asyncio.ensure_future(stopped.wait())
    try:
        await asyncio.wait({work, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            await work
    finally:
        work.cancel()
        waiting.cancel()
        await asyncio.gather(work, return_exceptions=True)
        await asyncio.gather(*(server.stop() for server in servers))


async def _serve(servers: Sequence[_Server], output: Output, data: Path) -> None:
    """Start the servers, and report each that ends; OttlaError when none is left."""
    await asyncio.gather(*(server.start() for server in servers))
    connect = ",".join(server.address for server in servers)
    process_ids = [server.process.pid for server in servers if server.process is not None]
    with contextlib.suppress(BrokenPipeError):
        output.done(
            f"ZooKeeper is ready on {connect} (data in {data})",
            connect=connect,
            data=str(data),
            process_ids=process_ids,
        )
    await asyncio.gather(*(_watch(server, servers) for server in servers))
    raise OttlaError(f"no ZooKeeper server is left: look at {data}/1/zookeeper.out")


async def _watch(server: _Server, servers: Sequence[_Server]) -> None:
    assert server.process is not None
    code = await server.process.wait()
    running = sum(item.process is not None and item.process.returncode is None for item in servers)
    sentence = f"ZooKeeper server {server.number} has ended (exit code {code})"
    if running > len(servers) // 2:
        sentence += f"; {running} of {len(servers)} continue."
    else:
        sentence += (
            f"; the {running} of {len(servers)} that are left are no majority and serve no client."
        )
    note(sentence)
