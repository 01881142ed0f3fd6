"""Imported by Python at its start: makes the process look like one of macOS, as far as Ottla sees.

Names that macOS lacks are removed, /proc and /sys do not exist, and calls that differ behave as the
manual of macOS describes: `fcntl(fd, F_FULLFSYNC)`, sendfile(2) with a length of 0.
"""

import errno
import fcntl
import importlib
import importlib.util
import os
import pathlib
import posix
import sys
import sysconfig
import types
from collections.abc import Callable
from typing import Any

_NAMES = pathlib.Path(__file__).parents[1] / "names.py"
_HIDDEN = ("/proc/", "/sys/")
_FULL_SYNC = 51
_DARWIN = ("Darwin", "portable", "24.0.0", "Darwin Kernel Version 24.0.0", "arm64")


def _is_hidden(path: Any) -> bool:
    if isinstance(path, os.PathLike):
        path = os.fspath(path)
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    return isinstance(path, str) and f"{path}/".startswith(_HIDDEN)


def _missing(path: Any) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _hide(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("open", "os.listdir", "os.scandir", "os.mkdir") and _is_hidden(arguments[0]):
        raise _missing(arguments[0])


def _hiding(call: Callable[..., Any]) -> Callable[..., Any]:
    def hiding(path: Any, *arguments: Any, **options: Any) -> Any:
        if _is_hidden(path):
            raise _missing(path)
        return call(path, *arguments, **options)

    return hiding


def _remove_names() -> None:
    spec = importlib.util.spec_from_file_location("portable_names", _NAMES)
    assert spec is not None and spec.loader is not None
    names = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(names)
    # The import of socket imports selectors, which chooses epoll if select has it.
    for module_name in ("select", *names.LINUX_ONLY):
        absent = names.LINUX_ONLY[module_name]
        modules = [importlib.import_module(module_name)]
        if module_name == "socket":
            modules.append(importlib.import_module("_socket"))
        if module_name == "os":
            modules.append(posix)
        for module in modules:
            for name in absent:
                if hasattr(module, name):
                    delattr(module, name)


def _behave_like_macos() -> None:
    real_fcntl, real_sendfile = fcntl.fcntl, os.sendfile

    def control(fd: Any, command: int, argument: Any = 0) -> Any:
        if command == _FULL_SYNC:
            os.fsync(fd)
            return 0
        return real_fcntl(fd, command, argument)

    def send(out_fd: int, in_fd: int, offset: int, count: int) -> int:
        # 0 means the rest of the file.
        return real_sendfile(out_fd, in_fd, offset, count or os.fstat(in_fd).st_size - offset)

    fcntl.fcntl = control
    fcntl.F_FULLFSYNC = _FULL_SYNC
    os.sendfile = send
    os.uname = lambda: os.uname_result(_DARWIN)
    for name in ("stat", "lstat", "access", "readlink"):
        setattr(os, name, _hiding(getattr(os, name)))
    sys.addaudithook(_hide)


def _imitate() -> None:
    # Modules of the library that read sys.platform need modules of macOS.
    sysconfig.get_config_vars()
    os.environ["_PYTHON_SYSCONFIGDATA_NAME"] = next(
        name for name in sys.modules if name.startswith("_sysconfigdata")
    )
    proxies = types.ModuleType("_scproxy")
    for name in ("_get_proxy_settings", "_get_proxies"):
        setattr(proxies, name, dict)
    sys.modules["_scproxy"] = proxies
    _remove_names()
    _behave_like_macos()
    sys.platform = "darwin"
    # Names of packages that are not installed either.
    sys.modules.update(dict.fromkeys(os.environ.get("PORTABLE_WITHOUT", "").split(), None))


_imitate()
