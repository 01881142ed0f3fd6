"""Ctrl-C as a question."""

import os
import signal
import threading

import pytest

from ottla.tools.signals import StopSignals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_and_the_second_insists(number: int) -> None:
    """Between the two, work can come to a good end."""
    with StopSignals() as stop:
        assert not stop.requested
        os.kill(os.getpid(), number)
        assert stop.requested
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)


def test_who_waits_for_input_is_woken() -> None:
    """A terminal where nobody types would hold up the end otherwise."""
    read, write = os.pipe()
    with StopSignals() as stop:
        timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        assert stop.read(read, 100) == b""
        timer.join()
        assert stop.requested
    os.close(read)
    os.close(write)


def test_input_is_read_as_it_comes_until_a_stop() -> None:
    """After the signal nothing more is taken in, although it is there."""
    read, write = os.pipe()
    with StopSignals() as stop:
        os.write(write, b"abc")
        assert stop.read(read, 2) == b"ab"
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.read(read, 2) == b""
    os.close(write)
    os.close(read)


def test_the_end_of_input_is_nothing() -> None:
    """As with every other stream."""
    read, write = os.pipe()
    os.close(write)
    with StopSignals() as stop:
        assert stop.read(read, 2) == b""
        assert not stop.requested
    os.close(read)


def test_the_signals_are_given_back() -> None:
    """What a process did with them before, it does again."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with StopSignals():
        pass
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    assert signal.set_wakeup_fd(-1) == -1
