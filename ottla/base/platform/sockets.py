"""Sending through sockets without blocking: parts, files, and the length of the kernel's queue."""

import errno
import os
import socket
import sys
from collections.abc import Callable

try:
    import fcntl
    import termios
except ModuleNotFoundError:
    # Windows.
    fcntl = termios = None  # type: ignore[assignment]

from ottla.base.platform import IS_LINUX

# Delays a packet that is not full. Other systems send it, which costs packets and changes nothing.
MORE: int = getattr(socket, "MSG_MORE", 0)
DO_NOT_WAIT: int = getattr(socket, "MSG_DONTWAIT", 0)
# The type of a descriptor that does not block, so that Python makes no call to find out.
STREAM: int = socket.SOCK_STREAM | getattr(socket, "SOCK_NONBLOCK", 0)
# sys/socket.h of macOS: bytes in the send buffer of a socket.
_SO_NWRITE = 0x1024


def send_file_of_bsd(socket_fd: int, fd: int, position: int, size_bytes: int) -> int:
    """Send bytes of a file as sendfile(2) of Linux does.

    On macOS and the BSDs a length of 0 means the rest of the file. If a socket accepts some of the
    bytes, the call fails there with EAGAIN, and Python returns their number.
    """
    return os.sendfile(socket_fd, fd, position, size_bytes) if size_bytes else 0


# Takes the socket, the file, the position in it and a number of bytes; returns how many were sent.
send_file: Callable[[int, int, int, int], int] = os.sendfile if IS_LINUX else send_file_of_bsd


def _queued_bytes_linux(connection: socket.socket) -> int:
    packed = fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4))
    return int.from_bytes(packed, sys.byteorder)


def queued_bytes_of_macos(connection: socket.socket) -> int:
    """Return the bytes in the send buffer of a socket; 0 if that is not known."""
    try:
        return connection.getsockopt(socket.SOL_SOCKET, _SO_NWRITE)
    except OSError as error:
        if error.errno not in (errno.ENOPROTOOPT, errno.EINVAL):
            raise
        # The BSDs: it is not known.
        return 0


# Returns the number of bytes that the peer has not acknowledged; 0 if that is not known.
queued_bytes: Callable[[socket.socket], int] = (
    _queued_bytes_linux if IS_LINUX else queued_bytes_of_macos
)


def _accept_descriptor(listening: socket.socket) -> int:
    fd, _ = listening._accept()  # type: ignore[attr-defined]
    return int(fd)


def accept_and_detach(listening: socket.socket) -> int:
    """Return the descriptor of the next connection, by public calls of Python."""
    return listening.accept()[0].detach()


# Returns the descriptor of the next connection; raises OSError. CPython's own `accept` uses the
# first, whose name is private: the second takes longer.
accept_descriptor: Callable[[socket.socket], int] = (
    _accept_descriptor if hasattr(socket.socket, "_accept") else accept_and_detach
)
