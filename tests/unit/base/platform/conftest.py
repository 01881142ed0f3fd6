"""An open file for the calls of the platform."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(name="file_fd")
def _file_fd(tmp_path: Path) -> Iterator[int]:
    """The descriptor of a file with ten bytes, for reads and writes."""
    (tmp_path / "file").write_bytes(b"0123456789")
    fd = os.open(tmp_path / "file", os.O_RDWR)
    yield fd
    os.close(fd)
