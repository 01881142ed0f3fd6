"""Records what Apache Kafka's tools print: `python -m tests.compat.scripts.record [subject …]`.

Each transcript is played to a new broker with the tools of its version (Maven fetches them, Java
runs them), and the output is written into the file.
"""

import contextlib
import itertools
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ottla.client import AdminClient
from tests.compat import java, zookeeper
from tests.compat.java_tools.server import SOURCE, ToolServer
from tests.compat.recorded import peers
from tests.compat.scripts.classes import ALONE, CLASSES, USERS, WORDS
from tests.compat.scripts.transcript import (
    FOLDER,
    PROTOCOLS,
    Command,
    Places,
    Transcript,
    normalize,
    read,
    write,
)

# Loggers are a matter of a distribution's configuration; what a tool itself prints is recorded.
_SILENT = "log4j.rootLogger=OFF\n"
_JMX = (
    "-Dcom.sun.management.jmxremote.port={0}",
    "-Dcom.sun.management.jmxremote.rmi.port={0}",
    "-Dcom.sun.management.jmxremote.host=127.0.0.1",
    "-Djava.rmi.server.hostname=127.0.0.1",
    "-Dcom.sun.management.jmxremote.authenticate=false",
    "-Dcom.sun.management.jmxremote.ssl=false",
)
# The words for addresses of the broker.
_BROKER = ("$B", "$J", "$L", "$P", "$Q")


def record(transcript: Transcript) -> None:
    """Play a transcript to Apache Kafka and store the results."""
    with tempfile.TemporaryDirectory(prefix="scripts-") as name:
        folder = Path(name)
        (folder / "log4j.properties").write_text(_SILENT)
        tools: dict[str, Tools] = {}
        with contextlib.ExitStack() as stack:
            locations = stack.enter_context(places_of(transcript, folder))
            for command in transcript.commands:
                if "O" not in command.marks:
                    if command.version not in tools:
                        tools[command.version] = Tools(folder, command.version)
                        stack.callback(tools[command.version].close)
                    tools[command.version].run(command, locations)


@contextlib.contextmanager
def places_of(transcript: Transcript, folder: Path) -> Iterator[Places]:
    """Run the brokers of a transcript until the end of the block."""
    work = folder / "work"
    work.mkdir()
    second = jmx_url = controller = ""
    java_options: tuple[str, ...] = ()
    if transcript.uses("$J"):
        (port,) = java.free_ports(1)
        java_options = tuple(option.format(port) for option in _JMX)
        jmx_url = f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{port}/jmxrmi"
    listeners = transcript.listeners(work)
    with contextlib.ExitStack() as stack:
        if any(map(transcript.uses, _BROKER)):
            target = stack.enter_context(
                peers.running(
                    transcript.version,
                    folder / "kafka",
                    transcript.options(work, "broker", "kafka"),
                    java_options,
                    [f"{PROTOCOLS[word]}://{address}" for word, address in listeners.items()],
                )
            )
            bootstrap, controller = f"{target.host}:{target.port}", target.controller
        else:
            # The commands read files only.
            bootstrap = f"127.0.0.1:{java.free_ports(1)[0]}"
        if transcript.uses("$C"):
            other = stack.enter_context(peers.running(transcript.version, folder / "second", {}))
            second = f"{other.host}:{other.port}"
        ensemble = ""
        if transcript.uses("$Z"):
            ensemble = stack.enter_context(zookeeper.running(folder / "secured", USERS))
        yield Places(
            bootstrap,
            work,
            second,
            jmx_url,
            controller,
            listeners.get("$L", ""),
            zookeeper=ensemble,
            protected=listeners.get("$P", ""),
        )


class Tools:
    """The tools of one version."""

    def __init__(self, folder: Path, version: str) -> None:
        # The folder is first: it has the logging configuration.
        self._class_path = f"{folder}:{java.kafka_class_path(version)}"
        self._server = ToolServer(java.command(self._class_path, SOURCE.stem))

    def run(self, command: Command, places: Places) -> None:
        """Run one command and store its result."""
        command.prepare(places)
        script, *command_line = command.command_line(places)
        words = [*WORDS.get(script, ()), *command_line]
        program, *line = java.command(self._class_path, CLASSES[script], *words)
        java_options = shlex.split(places.fill(command.java_options))
        line = [program, *java_options, *line]
        code: int | None
        if "E" in command.marks:
            code, out, errors = _until_copied(line, places)
        elif script not in ALONE and not command.input and not java_options:
            code, out, errors = self._shared(script, words)
        else:
            code, out, errors = _alone(line, command)
        if code is None:
            code, out, errors = _alone(line, command)
        places.remember_tokens(out)
        command.code = code
        command.out = normalize(out, places)
        if script == "zookeeper-shell":
            # Lines about the connection, and empty ones, precede the output.
            command.out = list(itertools.dropwhile(lambda line: not line.strip(), command.out))
        command.errors = normalize(errors, places, others=command.out)

    def close(self) -> None:
        """Stop the JVM."""
        self._server.close()

    def _shared(self, script: str, command_line: list[str]) -> tuple[int | None, str, str]:
        try:
            return self._server.run(CLASSES[script], *command_line)
        except AssertionError:
            # The tool ends its JVM itself.
            self._server.close()
            self._server = ToolServer(java.command(self._class_path, SOURCE.stem))
            return None, "", ""


def _alone(line: list[str], command: Command) -> tuple[int, str, str]:
    done = subprocess.run(line, input=command.input, capture_output=True, timeout=60, check=False)
    out, errors = (data.decode().replace("\r\n", "\n") for data in (done.stdout, done.stderr))
    return done.returncode, out, errors


def _until_copied(line: list[str], places: Places) -> tuple[int, str, str]:
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while _records_of(places.second) < _records_of(places.bootstrap):
        assert time.monotonic() < deadline, "the copy is incomplete"
        with contextlib.suppress(subprocess.TimeoutExpired):
            raise AssertionError(f"the tool has ended with exit code {process.wait(0.2)}")
    process.terminate()
    out, errors = process.communicate(timeout=60)
    return 0, out, errors


def _records_of(bootstrap: str) -> int:
    with AdminClient(bootstrap_servers=bootstrap) as admin:
        rows = [
            (topic.name, part.partition)
            for topic in admin.list_topics()
            for part in topic.partitions
        ]
        return sum(offset.offset for offset in admin.list_offsets(dict.fromkeys(rows, -1)).values())


def main(subjects: list[str]) -> None:
    """Record the given subjects, or all."""
    paths = [FOLDER / f"{name}.txt" for name in subjects] or sorted(FOLDER.glob("*.txt"))
    for path in paths:
        start = time.monotonic()
        transcript = read(path)
        record(transcript)
        write(transcript)
        print(f"{path.stem}: {len(transcript.commands)} commands, {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
