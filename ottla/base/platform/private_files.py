"""Files with secrets, which no other user of the machine can read."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ottla.base.loading import deferred_module

if TYPE_CHECKING:
    import tempfile
else:
    # Linux does not need it.
    tempfile = deferred_module("tempfile")


@contextmanager
def _file_in_memory(data: bytes) -> Iterator[str]:
    fd = os.memfd_create("private", os.MFD_CLOEXEC)
    try:
        with open(fd, "wb", closefd=False) as file:
            file.write(data)
        yield f"/proc/self/fd/{fd}"
    finally:
        os.close(fd)


@contextmanager
def file_of_owner(data: bytes) -> Iterator[str]:
    """Yield the path of a temporary file that only its owner can read."""
    # Only the owner may read it.
    fd, path = tempfile.mkstemp(prefix="ottla-private-")
    try:
        with open(fd, "wb") as file:
            file.write(data)
        yield path
    finally:
        os.remove(path)


@contextmanager
def private_copy(data: bytes) -> Iterator[str]:
    """Yield the path of a file with this content, for a library that reads secrets from files only.

    On Linux the file is in memory, without a name that other processes could open. Elsewhere it is
    a temporary file that only its owner can read.
    """
    is_in_memory = hasattr(os, "memfd_create") and os.path.exists("/proc/self/fd")
    with (_file_in_memory if is_in_memory else file_of_owner)(data) as path:
        yield path
