"""Text files of the command line: pipes are read, special files that do not end are refused."""

import os
import threading
from pathlib import Path

import pytest

from ottla.base.errors import ConfigError
from ottla.client.security.private_files import write_private
from ottla.tools.main import run
from ottla.tools.text_files import read_text


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/full"])
def test_special_file_that_does_not_end_is_refused(path: str) -> None:
    """The error says what to name instead."""
    with pytest.raises(ConfigError, match=f"{path} is not a regular file .*: name a regular file"):
        read_text(path)


def test_named_pipe_is_read(tmp_path: Path) -> None:
    """A pipe such as <(command) is as good as a file, also if it needs several reads."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = "num.partitions=3\n" * 20_000
    writer = threading.Thread(target=pipe.write_text, args=(text,))
    writer.start()
    assert read_text(pipe) == text
    writer.join()


def test_null_device_is_empty() -> None:
    """It is a special file that ends."""
    assert read_text("/dev/null") == ""


@pytest.mark.parametrize(
    "line",
    [
        "up --config",
        "broker start --config",
        "topic list --command-config",
        "doctor --config",
        "pipeline check",
    ],
)
def test_commands_refuse_a_file_that_does_not_end(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each command that reads a configuration file uses the same bound."""
    assert run([*line.split(), "/dev/zero"]) == 1
    assert "/dev/zero is not a regular file" in capsys.readouterr().err


def test_text_with_secrets_is_for_its_owner_only(tmp_path: Path) -> None:
    """Also if the file has other permissions from an earlier version."""
    path = tmp_path / "broker1.properties"
    path.write_text("a longer text than the new one")
    path.chmod(0o644)
    write_private(path, "password=x\n")
    assert path.read_text() == "password=x\n"
    assert path.stat().st_mode & 0o777 == 0o600
