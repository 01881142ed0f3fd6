"""Sending and accepting: the portable forms have the same results as Linux's."""

import socket
from collections.abc import Callable

import pytest

from ottla.base.platform import sockets


@pytest.mark.parametrize("send_file", [sockets.send_file, sockets.send_file_of_bsd])
def test_a_file_is_sent_from_a_position(send_file: Callable[..., int], file_fd: int) -> None:
    """The number of bytes is returned; a length of 0 sends nothing, also on macOS."""
    sender, receiver = socket.socketpair()
    with sender, receiver:
        assert send_file(sender.fileno(), file_fd, 2, 5) == 5
        assert receiver.recv(100) == b"23456"
        assert send_file(sender.fileno(), file_fd, 2, 0) == 0


@pytest.mark.parametrize("queued_bytes", [sockets.queued_bytes, sockets.queued_bytes_of_macos])
def test_the_queue_of_a_socket_is_empty_or_not_known(
    queued_bytes: Callable[[socket.socket], int],
) -> None:
    """A system that cannot report the length of the queue reports 0."""
    listener = socket.create_server(("127.0.0.1", 0))
    with listener, socket.create_connection(listener.getsockname()) as connection:
        assert queued_bytes(connection) == 0


@pytest.mark.parametrize("accept", [sockets.accept_descriptor, sockets.accept_and_detach])
def test_an_accepted_connection_is_a_descriptor(accept: Callable[[socket.socket], int]) -> None:
    """Without CPython's private `_accept`, the public one is used."""
    listener = socket.create_server(("127.0.0.1", 0))
    with listener, socket.create_connection(listener.getsockname()) as peer:
        accepted = socket.socket(fileno=accept(listener))
        accepted.sendall(b"x")
        assert peer.recv(1) == b"x"
        accepted.close()
