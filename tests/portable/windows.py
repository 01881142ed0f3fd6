"""Runs a program without the modules and names that Python has on Unix only.

Source: the notes "Availability: Unix" in the documentation of Python's modules `os`, `fcntl`,
`grp`, `pwd`, `resource` and `termios`. Libraries with native code choose their calls when they are
built, so a program imports them first. Python's own modules need `sys.platform` of the real system.
"""

import importlib
import importlib.abc
import os
import sys
from collections.abc import Sequence

_MODULES = ("fcntl", "grp", "pwd", "resource", "termios", "pty", "tty")
_NAMES = (
    "O_CLOEXEC O_DIRECTORY O_NONBLOCK O_SYNC O_DSYNC fork forkpty register_at_fork getuid geteuid "
    "getgid getegid sysconf statvfs fstatvfs pread preadv pwrite pwritev readv writev sendfile "
    "fdatasync sync eventfd memfd_create pidfd_open mkfifo mknod fchmod fchown chown lchown uname "
    "getpgid setpgid setsid getsid killpg wait3 wait4 nice getloadavg sched_getaffinity "
    "sched_yield posix_fadvise posix_fallocate lockf major minor makedev ttyname openpty"
)
_LIBRARIES = (
    "asyncio",
    "confluent_kafka",
    "numpy",
    "pyarrow",
    "ssl",
    "subprocess",
    "multiprocessing",
)


class _Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name in _MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def hide(libraries: Sequence[str] = _LIBRARIES) -> None:
    """Import the libraries, then remove the modules and names of Unix from this process."""
    for library in libraries:
        importlib.import_module(library)
    for name in _MODULES:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, _Absent())
    for name in _NAMES.split():
        if hasattr(os, name):
            delattr(os, name)
