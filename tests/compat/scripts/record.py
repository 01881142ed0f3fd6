"""Records what Apache Kafka's tools print: `python -m tests.compat.scripts.record [subject …]`.

Each transcript is played to a new broker with the tools of its version (Maven fetches them, Java
runs them), and the output is written into the file.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.compat import java
from tests.compat.java_tools.server import SOURCE, ToolServer
from tests.compat.recorded import peers
from tests.compat.scripts.classes import ALONE, CLASSES
from tests.compat.scripts.transcript import FOLDER, Command, Transcript, normalize, read, write

# Loggers are a matter of a distribution's configuration; what a tool itself prints is recorded.
_SILENT = "log4j.rootLogger=OFF\n"


def record(transcript: Transcript) -> None:
    """Play a transcript to Apache Kafka and store the results."""
    class_path = java.kafka_class_path(transcript.version)
    with tempfile.TemporaryDirectory(prefix="scripts-") as name:
        folder = Path(name)
        (folder / "log4j.properties").write_text(_SILENT)
        with peers.running(transcript.version, folder / "kafka", {}) as target:
            bootstrap = f"{target.host}:{target.port}"
            tools = Tools(folder, class_path)
            (folder / "work").mkdir()
            for command in transcript.commands:
                if "O" not in command.marks:
                    tools.run(command, bootstrap, folder / "work")


class Tools:
    """The tools of one version."""

    def __init__(self, folder: Path, class_path: str) -> None:
        self._class_path = f"{folder}:{java.compiled(SOURCE, class_path)}:{class_path}"
        self._server = ToolServer(java.command(self._class_path, SOURCE.stem))

    def run(self, command: Command, bootstrap: str, folder: Path) -> None:
        """Run one command and store its result."""
        command.write_files(folder)
        script, *words = command.words(bootstrap, folder)
        if script in ALONE or command.stdin:
            done = subprocess.run(
                java.command(self._class_path, CLASSES[script], *words),
                input="".join(f"{line}\n" for line in command.stdin),
                capture_output=True, text=True, timeout=60, check=False,
            )  # fmt: skip
            code, out, errors = done.returncode, done.stdout, done.stderr
        else:
            code, out, errors = self._server.run(CLASSES[script], *words)
        command.code = code
        command.out = normalize(out, bootstrap, folder)
        command.errors = normalize(errors, bootstrap, folder, others=command.out)


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
