"""Ctrl-C as a flag."""

import os
import signal
import threading

import pytest

from ottla.tools.signals import StopSignals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_first_signal_sets_the_flag_and_the_second_interrupts(number: int) -> None:
    """Between the two signals the command can finish its work."""
    with StopSignals() as stop:
        assert not stop.requested
        os.kill(os.getpid(), number)
        assert stop.requested
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)


def test_patience_interrupts_work_that_does_not_end() -> None:
    """After the first signal the work has that many seconds to finish."""
    # On a busy machine the interrupt comes before the wait begins.
    with StopSignals(patience_s=0.01) as stop, pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait(30)
    assert stop.requested


def test_patience_ends_with_the_work() -> None:
    """Work that finishes in time is not interrupted later."""
    with StopSignals(patience_s=30):
        os.kill(os.getpid(), signal.SIGINT)
    assert [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)] == []


def test_signal_ends_a_wait_for_input() -> None:
    """Otherwise a read from an idle terminal would delay the exit."""
    read, write = os.pipe()
    with StopSignals() as stop:
        timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        assert stop.read(read, 100) == b""
        timer.join()
        assert stop.requested
    os.close(read)
    os.close(write)


def test_input_is_read_until_a_stop() -> None:
    """After the signal no further input is read, even if it is available."""
    read, write = os.pipe()
    with StopSignals() as stop:
        os.write(write, b"abc")
        assert stop.read(read, 2) == b"ab"
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.read(read, 2) == b""
    os.close(write)
    os.close(read)


def test_end_of_input_is_empty() -> None:
    """A read at the end of input returns no bytes, as with other streams."""
    read, write = os.pipe()
    os.close(write)
    with StopSignals() as stop:
        assert stop.read(read, 2) == b""
        assert not stop.requested
    os.close(read)


def test_signal_handlers_are_restored() -> None:
    """The previous handlers of the process are restored."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with StopSignals():
        pass
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    assert signal.set_wakeup_fd(-1) == -1
