"""The page docs/platforms.md, and the record of which dependencies have wheels.

`python -m docs.platforms` asks uv whether the locked version of each dependency has a wheel for
each system and version of Python, and writes docs/wheels.json. It needs the network.
"""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "docs/wheels.json"
# uv's names of systems, and ours.
SYSTEMS = {
    "x86_64-manylinux_2_28": "Linux x86-64",
    "aarch64-manylinux_2_28": "Linux arm64",
    "aarch64-apple-darwin": "macOS arm64",
    "x86_64-apple-darwin": "macOS x86-64",
    "x86_64-pc-windows-msvc": "Windows (clients)",
}
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
# Extras for the development of Ottla, and one that is a package of ours.
_OTHER_EXTRAS = ("demo", "dev", "scripts")
_NAME = re.compile(r"[A-Za-z0-9_.-]+")

TITLE = "Platforms"
LEAD = """Ottla runs on Linux (x86-64, arm64) and on macOS with Python 3.11 or later. It is developed
and measured on Linux. The portable mode of the tests (`make portable`) removes the names that macOS
lacks. No test has run on macOS itself yet."""
DIFFERENCES = (
    ("", "Linux", "macOS and the BSDs"),
    (
        "an acknowledgement with `flush.on.ack`",
        "fdatasync",
        "F_FULLFSYNC on macOS, fsync elsewhere ([durability](durability.md))",
    ),
    (
        "a fetch of data that is not in the page cache",
        "another thread reads it",
        "the event loop waits for the device",
    ),
    ("a clean stop with many partitions", "one syncfs", "one sync for each file"),
    (
        "the lock of a folder",
        "a lock of the open file, which Java's locks see",
        "flock, which Java's locks see there",
    ),
    ("event loop", "epoll, or uvloop (`pip install 'ottla[uvloop]'`)", "kqueue, or uvloop"),
    (
        "process metrics",
        "`/proc`",
        "getrusage: memory is the highest so far; no bytes of devices",
    ),
    (
        "secrets for libraries that read files",
        "a file in memory",
        "a temporary file of the user",
    ),
)
TEXT = """## Windows

The client library, `read_table` and the test driver of streams run on Windows. Brokers and the
command `ottla` need WSL 2 (`wsl --install`, then `pip install ottla` in it) or Docker
(`deploy/Containerfile`).

## Pythons

`make test-python PYTHON=python3.13` creates an environment for another Python and runs the quick
tests with it. Debian 13 has Python 3.13. Elsewhere, `uv python install 3.13` or pyenv installs it.
The quick tests have run with 3.11 and 3.13, not yet with 3.12 and 3.14.

## Addresses and folders

`[::1]` and `[::]` are addresses of listeners. An empty host means all addresses of both families,
on one socket each. Folders may have names with blanks and characters outside ASCII. Locks and syncs of
network file systems are unreliable: `ottla doctor` warns.

A broker finds at its start if the disk of a log directory ignores case, as most disks of macOS do. On
such a disk, `A` and `a` are the same folder: the controller rejects a topic whose name differs
from that of another one only in case, and names both. A broker whose tree already has two such topics
does not start. A replica that a controller on another disk assigns has the error `KAFKA_STORAGE_ERROR`.

NFS needs version 4, whose server has the locks: without them, two brokers could open the same
directory. Mount it with `hard` and without `nolock`: after the error of a `soft` mount, the log directory goes
offline. A file that is renamed or removed while it is open is kept by the client as `.nfs…`, so the
folder of a deleted topic disappears only when its files are closed. An fsync is as durable as the
server's: an export with `async` loses acknowledged records when the server fails."""
WHEELS = """## Wheels

The table has each dependency at its version in `requirements.lock`, and the systems and Pythons for
which PyPI has a wheel. A package without a wheel needs a compiler, except for pyspark, which has no
native code."""


def dependencies() -> dict[str, str]:
    """Return the dependencies of Ottla and of its extras, with their locked versions."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    rows = [*project["dependencies"]]
    for extra, requirements in project["optional-dependencies"].items():
        if extra not in _OTHER_EXTRAS:
            rows += requirements
    names = {match[0].lower() for row in rows if (match := _NAME.match(row))}
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    versions = dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", lock, re.MULTILINE))
    return {name: versions[name] for name in sorted(names)}


def recorded() -> dict[str, Any]:
    """Return the record: versions, and the missing wheels by system and Python."""
    record: dict[str, Any] = json.loads(RECORD.read_text("utf-8"))
    return record


def rows() -> list[list[str]]:
    """Return the rows of the table."""
    record = recorded()
    result = []
    for name, version in record["versions"].items():
        gaps = {
            label: [python for python in PYTHONS if name in record["missing"][f"{system} {python}"]]
            for system, label in SYSTEMS.items()
        }
        cells = [
            "yes" if not pythons else "no" if len(pythons) == len(PYTHONS) else
            f"not for {', '.join(pythons)}"
            for pythons in gaps.values()
        ]  # fmt: skip
        result.append([f"{name} {version}", *cells])
    return result


def _missing(requirements: list[str], system: str, python: str) -> list[str]:
    """Return the requirements without a wheel for a system and a Python."""
    command = [
        str(Path(sys.executable).with_name("uv")), "pip", "compile", "--quiet", "--no-deps",
        "--no-header", "--only-binary", ":all:", "--python-version", python,
        "--python-platform", system, "-",
    ]  # fmt: skip
    missing: list[str] = []
    while left := [row for row in requirements if row.split("==")[0] not in missing]:
        done = subprocess.run(  # noqa: S603 - uv, with names of packages
            command, input="\n".join(left), capture_output=True, text=True, check=False
        )
        named = [row.split("==")[0] for row in left if row in done.stderr]
        if not named:
            return missing
        missing += named
    return missing


def record() -> None:
    """Write the record."""
    versions = dependencies()
    requirements = [f"{name}=={version}" for name, version in versions.items()]
    missing = {
        f"{system} {python}": _missing(requirements, system, python)
        for system in SYSTEMS
        for python in PYTHONS
    }
    text = json.dumps({"versions": versions, "missing": missing}, indent=1)
    RECORD.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    record()
