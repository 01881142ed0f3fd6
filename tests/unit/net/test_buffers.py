"""The pool of private receive buffers."""

from ottla.net.buffers import ReceiveBuffers


def test_buffer_is_reused() -> None:
    """Frames of the same size class use the same buffer one after the other."""
    buffers = ReceiveBuffers()
    first = buffers.take(1_000_000)
    buffers.give_back(first)
    assert buffers.take(900_000) is first


def test_sizes_are_powers_of_two_that_fit() -> None:
    """Every size gets a buffer of at most double its size."""
    buffers = ReceiveBuffers()
    for size in (1, 4096, 4097, 65536, 65537, 1 << 20):
        room = len(buffers.take(size))
        assert room >= size
        assert room & (room - 1) == 0


def test_idle_memory_is_bounded() -> None:
    """After a hundred large buffers are released only some are kept."""
    buffers = ReceiveBuffers()
    results = [buffers.take(1 << 21) for _ in range(100)]
    for buffer in results:
        buffers.give_back(buffer)
    again = {id(buffers.take(1 << 21)) for _ in range(100)}
    assert len(again & {id(buffer) for buffer in results}) == 8
