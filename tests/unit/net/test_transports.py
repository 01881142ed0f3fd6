"""The transport of a lost connection accepts every call."""

from ottla.net.transports import LOST


def test_lost_transport_does_nothing() -> None:
    """A connection that was lost need not check each call."""
    LOST.write(b"data")
    LOST.writelines([b"data"])
    LOST.set_write_buffer_limits(high=0)
    LOST.pause_reading()
    LOST.resume_reading()
    LOST.close()
    LOST.abort()
    assert LOST.is_closing()
    assert not LOST.can_write_eof()
    assert LOST.get_write_buffer_size() == 0
    assert LOST.get_extra_info("peername") is None
