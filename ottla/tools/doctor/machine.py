"""Checks of the machine that runs a broker: its log directories, files, limits, ports.

The checks do not interfere with a running broker: a lock is queried, not taken, and the write test
uses its own file, which is removed at once.
"""

import contextlib
import errno
import os
import socket
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from ottla.base.platform import LIMITS_PLACE, LISTENERS_COMMAND
from ottla.base.platform.descriptors import open_file_limits
from ottla.base.platform.disk import is_locked
from ottla.base.platform.mounts import kind_of_mount
from ottla.base.platform.processes import command_line_of
from ottla.client.bootstrap import Address
from ottla.storage.files import checkpoints
from ottla.tools.doctor.findings import Finding, fail, ok, warn
from ottla.tools.output import size_text

# Characters of a command line that are shown.
_COMMAND_MAX = 80

DISK_FAIL_BYTES = 100 * 10**6
DISK_WARN_BYTES = 2 * 10**9
INODES_FAIL = 100
INODES_WARN = 10_000
# Each partition has about five open files, each connection one.
FILES_WARN = 8192
ROOM = (
    "Free disk space, lower retention.ms or retention.bytes of large topics, or add a directory to log.dirs "
    "on another disk: a full disk takes the directory offline."
)
_FORGETFUL = ("tmpfs", "ramfs")
_REMOTE = ("nfs", "nfs4", "cifs", "smb3", "fuse.sshfs")


def examine_directory(path: Path, *, is_served: bool) -> Iterator[Finding]:
    """Yield the findings about one log directory; `is_served` is True if a broker responds here."""
    check = f"log directory {path}"
    existing = path if path.exists() else _existing_parent(path)
    if path.exists() and not path.is_dir():
        yield fail(check, "it is a file", "Choose a separate folder with --data or log.dirs.")
        return
    problem = _write_problem(existing)
    if problem is not None:
        yield fail(
            check,
            f"this user cannot write in {existing}: {problem}",
            "Change its owner (chown) or permissions (chmod), or choose another with --data.",
        )
    elif not path.exists():
        yield ok(check, "does not exist yet; a broker creates it at startup")
    else:
        yield ok(check, "can be written to")
        yield _lock(path, is_served=is_served)
        yield _owner(path)
    yield _space(existing)
    yield _inodes(existing)
    yield _file_system(existing)


def _existing_parent(path: Path) -> Path:
    parent = path.absolute()
    while not parent.exists():
        parent = parent.parent
    return parent


def _write_problem(folder: Path) -> str | None:
    """Return why no file can be written and synced in a folder, or None if one can."""
    if not folder.is_dir():
        return "it is not a folder"
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".ottla-doctor-") as file:
            file.write(b"x")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error.strerror or str(error)
    return None


def _lock(path: Path, *, is_served: bool) -> Finding:
    check = f"lock of {path}"
    file = path / checkpoints.LOCK_FILE
    if not file.exists() or not _is_locked(file):
        return ok(check, "not locked")
    holder = _holder(file)
    if is_served:
        return ok(check, f"held by {holder}")
    return warn(
        check,
        f"held by {holder}, but no broker responds at the given address",
        "Name that broker's address with --bootstrap, or stop it before you start another here.",
    )


def _is_locked(file: Path) -> bool:
    with contextlib.suppress(OSError), file.open("rb+") as opened:
        return is_locked(opened.fileno())
    return False


def _holder(file: Path) -> str:
    """Return the process that has written its id into the lock file."""
    try:
        number = int(file.read_text("ascii", "replace").strip())
    except (OSError, ValueError):
        return "an unidentified process (an Apache Kafka broker?)"
    text = " ".join(command_line_of(number))
    if not text:
        return "an unidentified process (an Apache Kafka broker?)"
    return f"process {number} ({text if len(text) <= _COMMAND_MAX else text[:_COMMAND_MAX] + '…'})"


def _owner(path: Path) -> Finding:
    check = f"data in {path}"
    file = path / checkpoints.META_PROPERTIES_FILE
    if not file.exists():
        return ok(check, "none yet")
    try:
        properties = checkpoints.parse_properties(file.read_bytes())
    except (OSError, ValueError) as error:
        return fail(
            check,
            f"{file.name} cannot be read: {error}",
            "It identifies the cluster and broker of the data: restore it from a backup, or delete it if you are sure that "
            "the data is this broker's.",
        )
    broker_id = properties.get("broker.id", properties.get("node.id", "?"))
    return ok(check, f"of broker {broker_id} in cluster {properties.get('cluster.id', '?')}")


def _space(folder: Path) -> Finding:
    check = f"disk below {folder}"
    statistics = os.statvfs(folder)
    free = statistics.f_bavail * statistics.f_frsize
    total = statistics.f_blocks * statistics.f_frsize
    summary = f"{size_text(free)} of {size_text(total)} are free"
    if free < DISK_FAIL_BYTES:
        return fail(check, summary, ROOM)
    return warn(check, summary, ROOM) if free < DISK_WARN_BYTES else ok(check, summary)


def _inodes(folder: Path) -> Finding:
    check = f"inodes below {folder}"
    statistics = os.statvfs(folder)
    if not statistics.f_files:
        return ok(check, "the file system does not count inodes")
    summary = f"{statistics.f_favail:,} of {statistics.f_files:,} are free"
    remedy = "Delete small files: each segment of each partition needs four."
    if statistics.f_favail < INODES_FAIL:
        return fail(check, summary, remedy)
    return warn(check, summary, remedy) if statistics.f_favail < INODES_WARN else ok(check, summary)


def _file_system(folder: Path) -> Finding:
    check = f"file system below {folder}"
    kind = kind_of_mount(folder)
    if kind in _FORGETFUL:
        return warn(
            check, f"{kind} loses its data when the machine stops", "Choose a disk with --data."
        )
    if kind in _REMOTE:
        return warn(
            check,
            f"{kind}: locks and syncs of network file systems are unreliable",
            "Choose a local disk with --data.",
        )
    return ok(check, kind or "unknown")


def examine_limits() -> Finding:
    """Report whether this user may open enough files for partitions and connections."""
    check = "open files (ulimit -n)"
    soft, hard = open_file_limits()
    if soft >= FILES_WARN:
        return ok(check, f"{soft:,}")
    return warn(
        check,
        f"{soft:,}: each connection takes one, each partition about five",
        f"Raise it before `ottla up`: `ulimit -n {min(65_536, hard):d}`"
        + ("" if hard >= FILES_WARN else f", which needs a higher limit in {LIMITS_PLACE}")
        + ".",
    )


def examine_free_port(address: Address) -> Finding:
    """Report whether a broker could listen on an address that is not in use."""
    check = "port to listen on"
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
    except OSError as error:
        remedies = {
            errno.EADDRINUSE: f"Stop what uses it (`{LISTENERS_COMMAND}`), or choose another with --port.",
            errno.EACCES: "Ports below 1024 are reserved for root: choose another with --port.",
        }
        remedy = remedies.get(
            error.errno or 0, "A broker can only listen on addresses of this machine: check --host."
        )
        return fail(check, f"{address}: {error.strerror or error}", remedy)
    return ok(check, f"{address} is free")


def directories(data: str | None, settings: dict[str, str], default: str) -> Sequence[Path]:
    """Return the log directories that `--data`, a configuration file or the default name."""
    named = data or settings.get("log.dirs") or settings.get("log.dir") or default
    return [Path(part.strip()) for part in named.split(",") if part.strip()]
