"""The page cache on systems that do not report its content."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.base.platform import page_cache


@pytest.fixture(name="file_fd")
def _file_fd(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "file").write_bytes(b"0123456789")
    fd = os.open(tmp_path / "file", os.O_RDWR)
    yield fd
    os.close(fd)


def test_a_file_whose_pages_are_not_known_counts_as_cached(file_fd: int) -> None:
    """Linux reports it, and other systems read it directly."""
    assert page_cache.is_cached(file_fd, 0, 10)
    assert page_cache.assume_cached(file_fd, 0, 10)
