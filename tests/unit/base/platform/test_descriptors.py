"""Spare file descriptors that are reserved for files."""

import errno
import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.base import files
from ottla.base.platform import descriptors
from ottla.base.platform.descriptors import SpareDescriptors, raise_soft_limit, soft_limit


def lacking(times: int, number: int = errno.EMFILE):
    """Return work that fails this number of times."""
    left = [times]

    def work() -> str:
        if left[0]:
            left[0] -= 1
            raise OSError(number, os.strerror(number))
        return "done"

    return work


def test_work_is_retried_while_there_are_spare_descriptors() -> None:
    """Each failure uses one spare, and the spares are restored after the work."""
    spares = SpareDescriptors()
    spares.hold(3)
    for number in (errno.EMFILE, errno.ENFILE):
        assert spares.run(lacking(3, number)) == "done"
    with pytest.raises(OSError, match="Too many open files"):
        spares.run(lacking(4))
    assert spares.run(lacking(0)) == "done"
    assert spares.run(lacking(3)) == "done"
    spares.hold(0)


def test_other_errors_are_not_retried() -> None:
    """An error such as a missing file does not go away."""
    spares = SpareDescriptors()
    spares.hold(1)
    with pytest.raises(FileNotFoundError):
        spares.run(lacking(1, errno.ENOENT))
    spares.hold(0)


def test_without_spares_the_error_is_raised() -> None:
    """Processes other than brokers reserve no spares."""
    with pytest.raises(OSError, match="Too many open files"):
        SpareDescriptors().run(lacking(1))


def test_lock_of_a_directory_uses_a_spare_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that stands by for the coordination tree tries to take its lock again and again."""
    spares, opened, lack = SpareDescriptors(), os.open, lacking(1)
    spares.hold(1)

    attempts: list[str] = []

    def open_once_lacking(path: str, flags: int, mode: int = 0o777) -> int:
        attempts.append(path)
        lack()
        return opened(path, flags, mode)

    monkeypatch.setattr(files, "SPARES", spares)
    monkeypatch.setattr(os, "open", open_once_lacking)
    path = str(tmp_path / "lock")
    files.RealFileSystem().lock(path).release()
    assert attempts[:2] == [path, path], "the second attempt has the spare descriptor"
    spares.hold(0)


def test_folder_is_removed_with_spare_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The removal of a folder opens it and the folders in it, and continues where it stopped."""
    spares, opened, lack = SpareDescriptors(), os.open, lacking(3)
    spares.hold(4)
    folder = tmp_path / "t-0.x-delete"
    (folder / "inner").mkdir(parents=True)
    (folder / "0.log").write_bytes(b"a")

    def open_lacking(path: str, flags: int, *arguments: int, **options: int) -> int:
        lack()
        return opened(path, flags, *arguments, **options)

    monkeypatch.setattr(files, "SPARES", spares)
    monkeypatch.setattr(os, "open", open_lacking)
    files.RealFileSystem().remove_tree(str(folder))
    assert not folder.exists()
    spares.hold(0)


def test_soft_limit_is_raised_to_the_hard_limit() -> None:
    """Most systems give a process 1 024 descriptors and allow many more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
    try:
        assert raise_soft_limit() == before[1]
        assert soft_limit() == before[1]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("open_reserved", [descriptors.open_reserved, descriptors.open_null_device])
def test_a_reserved_descriptor_can_be_closed(open_reserved: Callable[[], int]) -> None:
    """It is a descriptor of its own, which child processes do not inherit."""
    fd = open_reserved()
    assert not os.get_inheritable(fd)
    os.close(fd)


def test_a_limit_that_the_system_rejects_is_raised_as_far_as_macos_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Even root of macOS has an unlimited hard limit, but accepts at most OPEN_MAX."""
    given = []

    def set_limit(_: int, pair: tuple[int, int]) -> None:
        if pair[0] != 10_240:
            raise ValueError("Invalid argument")
        given.append(pair)

    monkeypatch.setattr(descriptors, "open_file_limits", lambda: (256, 2**63 - 1))
    monkeypatch.setattr(descriptors.resource, "setrlimit", set_limit)
    assert descriptors.raise_soft_limit() == 10_240
    assert given == [(10_240, 2**63 - 1)]
