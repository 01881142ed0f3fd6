"""Several brokers on one machine without ZooKeeper: `ottla up --brokers`, `ottla broker start`."""

import asyncio
import json
import os
import pty
import re
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ottla.base.files import RealFileSystem
from ottla.client.admin import cluster
from ottla.client.brokers import Brokers
from ottla.cluster.zk import tree_login
from ottla.cluster.zk.live import LiveSession
from ottla.cluster.zk.port import ConnectionSuspended, SessionState
from ottla.testing.process import COMMAND, run_command
from ottla.tools.broker.processes import free_port

pytestmark = pytest.mark.slow

_PATIENCE_S = 30.0


class Command:
    """A command in the foreground whose first line of output are facts in JSON."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, *words, "--output", "json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        self.facts: dict[str, Any] = json.loads(line)

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; return the exit code and what was written to standard error."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=_PATIENCE_S)
        return self.process.returncode, errors


Start = Callable[..., Command]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start commands, which end with the test."""
    commands: list[Command] = []

    def start(*words: str) -> Command:
        commands.append(Command(*words))
        return commands[-1]

    yield start
    # The last first: a broker that stops after its ensemble waits for it.
    for command in reversed(commands):
        if command.process.poll() is None:
            command.stop()
        with command.process:
            # Closes the pipes of a process that the test has killed.
            continue


def brokers_of(bootstrap: str) -> dict[int, int]:
    """Return the port of each broker that the cluster knows."""
    with Brokers(bootstrap) as brokers:
        return {node.node_id: node.port for node in cluster.describe_cluster(brokers).brokers}


def wait(condition: Callable[[], bool]) -> None:
    """Return when the condition holds."""
    deadline, pause = time.monotonic() + _PATIENCE_S, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "the condition does not hold in time"
        pause.wait(0.05)


def process_of(folder: Path) -> int:
    """Return the process that uses a log directory."""
    # Empty for a moment while a process takes the lock.
    return int((folder / ".lock").read_text() or 0)


def configuration(folder: Path, number: int, port: int, *rows: str) -> Path:
    """Write the configuration of a broker that shares its tree with others; return the file."""
    path = folder / f"server{number}.properties"
    lines = [
        f"broker.id={number}",
        "listeners=PLAINTEXT://127.0.0.1:0",
        f"log.dirs={folder}/data{number}",
        f"coordination.dir={folder}/coordination",
        f"coordination.listener=127.0.0.1:{port}",
        "zookeeper.session.timeout.ms=6000",
        # A broker that stops last may find no controller, and repeats its request.
        "controlled.shutdown.retry.backoff.ms=100",
        *rows,
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_ready_line_names_every_broker(tmp_path: Path) -> None:
    """`ottla up --brokers 3` runs one cluster in one process, and stops cleanly."""
    process = subprocess.Popen(
        [*COMMAND, "up", "--brokers", "3", "--port", "0", "--data", str(tmp_path / "data")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    match = re.fullmatch(r"Ottla is ready on ((127\.0\.0\.1:\d+,?){3}) \(data in (.+)\)\n", line)
    assert match is not None, line
    ports = [int(address.rpartition(":")[2]) for address in match.group(1).split(",")]
    wait(lambda: brokers_of(match.group(1)) == dict(enumerate(ports, 1)))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=_PATIENCE_S)
    assert (process.returncode, errors.splitlines()[-1]) == (0, "Ottla has stopped.")


def test_brokers_in_processes_form_one_cluster(start: Start, tmp_path: Path) -> None:
    """With `--processes` each broker has a process, and one that is killed is started again."""
    data = tmp_path / "data"
    up = start("up", "--brokers", "3", "--processes", "--port", "0", "--data", str(data))
    bootstrap = up.facts["bootstrap"]
    ports = [int(address.rpartition(":")[2]) for address in bootstrap.split(",")]
    wait(lambda: brokers_of(bootstrap) == dict(enumerate(ports, 1)))
    victim = process_of(data / "broker2")
    os.kill(victim, signal.SIGKILL)
    wait(lambda: process_of(data / "broker2") != victim)
    wait(lambda: brokers_of(bootstrap) == dict(enumerate(ports, 1)))
    code, errors = up.stop()
    assert code == 0
    assert "Broker 2 has ended (exit code -9); it is started again." in errors


def test_metadata_of_processes_can_be_seen_with_the_shell(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ready line names the address of the coordination, and KAFKA_OPTS for the login."""
    up = start(
        "up", "--brokers", "2", "--processes", "--port", "0", "--data", str(tmp_path / "data")
    )
    arguments = ("zookeeper", "shell", "--connect", up.facts["coordination"], "ls", "/brokers/ids")
    refused = run_command(*arguments)
    assert refused.returncode == 1
    assert b"Insufficient permission" in refused.stderr
    monkeypatch.setenv("KAFKA_OPTS", tree_login.java_options(f"{tmp_path}/data/coordination"))
    assert run_command(*arguments).stdout == b"[1, 2]\n"


def test_brokers_end_with_the_process_that_watches_them(start: Start, tmp_path: Path) -> None:
    """After kill -9 of `ottla up --processes` no broker is left."""
    data = tmp_path / "data"
    up = start("up", "--brokers", "2", "--processes", "--port", "0", "--data", str(data))
    processes = [process_of(data / f"broker{number}") for number in (1, 2)]
    up.stop(signal.SIGKILL)
    wait(lambda: not any(Path(f"/proc/{number}").exists() for number in processes))
    assert [number for number in processes if Path(f"/proc/{number}").exists()] == []


def test_data_of_one_broker_and_of_several_are_not_mixed(start: Start, tmp_path: Path) -> None:
    """A directory with the data of one broker is rejected for several brokers, and vice versa, with
    the remedy.
    """
    single, several = str(tmp_path / "single"), str(tmp_path / "several")
    start("up", "--port", "0", "--data", single).stop()
    start("up", "--port", "0", "--brokers", "2", "--data", several).stop()
    refused = run_command("up", "--port", "0", "--brokers", "2", "--data", single)
    assert (refused.returncode, b"data of a single broker" in refused.stderr) == (1, True)
    refused = run_command("up", "--port", "0", "--data", several)
    assert (refused.returncode, b"add --brokers 2" in refused.stderr) == (1, True)


@pytest.mark.parametrize("words", [["-o", "node.id=7"], ["-o", "listeners=PLAINTEXT://:1"]])
def test_option_of_a_single_broker_is_refused_for_several(
    words: Sequence[str], tmp_path: Path
) -> None:
    """An option such as node.id is rejected for several brokers, because all would have the same
    value.
    """
    done = run_command("up", "--brokers", "2", "--data", str(tmp_path / "data"), *words)
    name = words[1].partition("=")[0].encode()
    assert done.returncode == 1
    assert name + b" cannot be set with --brokers" in done.stderr


def test_broker_of_a_configuration_file_runs_until_it_is_stopped(
    start: Start, tmp_path: Path
) -> None:
    """`broker start` reports unknown names; `broker stop` ends it cleanly and waits for its end."""
    file = configuration(tmp_path, 5, free_port(is_any=True), "no.such.option=1")
    broker = start("broker", "start", "--config", str(file))
    assert brokers_of(broker.facts["bootstrap"]).keys() == {5}
    stopped = run_command("broker", "stop", "--config", str(file))
    assert stopped.returncode == 0, stopped.stderr
    assert stopped.stdout == b"The broker (process %d) has stopped.\n" % broker.process.pid
    _, errors = broker.process.communicate(timeout=_PATIENCE_S)
    assert broker.process.returncode == 0
    assert "no.such.option is ignored" in errors
    assert (tmp_path / "data5" / ".kafka_cleanshutdown").exists()
    again = run_command("broker", "stop", "--config", str(file))
    assert (again.returncode, b"no broker uses" in again.stderr) == (1, True)


async def test_sessions_survive_kill_9_of_the_broker_that_serves_the_metadata(
    start: Start, tmp_path: Path
) -> None:
    """Another broker takes over: same session, same ephemeral node, and the cluster has a
    controller.
    """
    port = free_port(is_any=True)
    files = [configuration(tmp_path, number, port) for number in (1, 2, 3)]
    brokers = [
        await asyncio.to_thread(start, "broker", "start", "--config", str(file)) for file in files
    ]
    login = tree_login.read(RealFileSystem(), f"{tmp_path}/coordination")
    session = await LiveSession.begin(f"127.0.0.1:{port}", login=login)
    states: asyncio.Queue[SessionState] = asyncio.Queue()
    session.on_session(states.put_nowait)
    await session.create("/mine", b"data", ephemeral=True)
    # The first broker took the lock.
    brokers[0].process.kill()
    async with asyncio.timeout(_PATIENCE_S):
        assert await states.get() is SessionState.SUSPENDED
        began = asyncio.get_running_loop().time()
        assert await states.get() is SessionState.CONNECTED
        gap = asyncio.get_running_loop().time() - began
    data, stat = await session.get("/mine")
    assert (data, stat.ephemeral_owner) == (b"data", session.session_id)
    assert gap < 3, f"{gap:.2f} s without coordination"
    bootstrap = brokers[1].facts["bootstrap"]
    async with asyncio.timeout(_PATIENCE_S):
        while (await asyncio.to_thread(brokers_of, bootstrap)).keys() != {2, 3}:
            try:
                await session.set("/mine", b"data")
            except ConnectionSuspended:
                continue
    await session.close()


@pytest.mark.parametrize("words", [[], ["--processes"]], ids=["one process", "processes"])
def test_live_line_shows_the_state_of_the_cluster(words: Sequence[str], tmp_path: Path) -> None:
    """Brokers, under-replicated partitions and the controller are on the terminal."""
    master, slave = pty.openpty()
    command = ["up", "--brokers", "2", "--port", "0", "--data", str(tmp_path / "data"), *words]
    with subprocess.Popen(
        [*COMMAND, *command], stdout=subprocess.DEVNULL, stderr=slave, env=_wide_terminal()
    ) as process:
        os.close(slave)
        data = b""
        while not re.search(rb"2 brokers \xc2\xb7 0 under-replicated \xc2\xb7 controller \d", data):
            readable, _, _ = select.select([master], [], [], _PATIENCE_S)
            assert readable, data
            data += os.read(master, 4096)
        process.terminate()
        process.wait(_PATIENCE_S)
    os.close(master)


def _wide_terminal() -> dict[str, str]:
    return {**os.environ, "COLUMNS": "200"}


async def test_sessions_survive_a_pause_of_the_broker_that_serves_the_metadata(
    start: Start, tmp_path: Path
) -> None:
    """A broker that was paused longer than the session timeout does not expire sessions when it
    continues.
    """
    address = f"127.0.0.1:{free_port(is_any=True)}"
    arguments = (
        "--port",
        "0",
        "--data",
        str(tmp_path / "data"),
        "-o",
        f"coordination.listener={address}",
    )
    broker = await asyncio.to_thread(start, "up", *arguments)
    login = tree_login.read(RealFileSystem(), f"{tmp_path}/data")
    session = await LiveSession.begin(address, timeout_ms=1_000, login=login)
    states: asyncio.Queue[SessionState] = asyncio.Queue()
    session.on_session(states.put_nowait)
    await session.create("/mine", ephemeral=True)
    broker.process.send_signal(signal.SIGSTOP)
    async with asyncio.timeout(_PATIENCE_S):
        assert await states.get() is SessionState.SUSPENDED
        stopped_at = asyncio.get_running_loop().time()
        while asyncio.get_running_loop().time() < stopped_at + 1.5:
            # During this time reconnecting fails; the state does not change.
            assert states.empty()
            await asyncio.to_thread(threading.Event().wait, 0.05)
        broker.process.send_signal(signal.SIGCONT)
        assert await states.get() is SessionState.CONNECTED
    stat = await session.exists("/mine")
    assert stat is not None
    assert stat.ephemeral_owner == session.session_id
    await session.close()


def test_broker_without_an_id_gets_one_and_keeps_it(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids are generated from 1001, as the first brokers of a cluster on ZooKeeper have them."""
    monkeypatch.setenv("KAFKA_OPTS", tree_login.java_options(f"{tmp_path}/tree"))
    address = f"127.0.0.1:{free_port(is_any=True)}"
    tree = (
        "--port",
        "0",
        "--data",
        str(tmp_path / "tree"),
        "-o",
        f"coordination.listener={address}",
    )
    start("up", *tree)
    for number in (1, 2):
        lines = (
            "listeners=PLAINTEXT://127.0.0.1:0",
            f"zookeeper.connect={address}/generated",
            f"log.dirs={tmp_path}/data{number}",
        )
        (tmp_path / f"{number}.properties").write_text("\n".join(lines))
    arguments = ("broker", "start", "--config")
    first = start(*arguments, str(tmp_path / "1.properties"))
    second = start(*arguments, str(tmp_path / "2.properties"))
    wait(lambda: brokers_of(second.facts["bootstrap"]).keys() == {1001, 1002})
    first.stop()
    start(*arguments, str(tmp_path / "1.properties"))
    wait(lambda: brokers_of(second.facts["bootstrap"]).keys() == {1001, 1002})
    assert "broker.id=1001" in (tmp_path / "data1/meta.properties").read_text().split()


def test_supervised_broker_that_is_stopped_while_it_starts_does_not_serve(tmp_path: Path) -> None:
    """Its input ends before it is ready, as with Ctrl-C at the start of `ottla up --processes`."""
    file = tmp_path / "server.properties"
    file.write_text(f"listeners=PLAINTEXT://127.0.0.1:0\nlog.dirs={tmp_path}/data\n")
    done = subprocess.run(
        [*COMMAND, "broker", "start", "--config", str(file), "--supervised"],
        input=b"",
        capture_output=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
