"""The pool of private buffers."""

from ottla.net.buffers import ReceiveBuffers


def test_a_buffer_is_used_again() -> None:
    """Frames of the same size class share buffers one after the other."""
    buffers = ReceiveBuffers()
    first = buffers.take(1_000_000)
    buffers.give_back(first)
    assert buffers.take(900_000) is first


def test_sizes_are_powers_of_two_that_fit() -> None:
    """Every size gets room enough, at most double."""
    buffers = ReceiveBuffers()
    for size in (1, 4096, 4097, 65536, 65537, 1 << 20):
        room = len(buffers.take(size))
        assert room >= size
        assert room & (room - 1) == 0


def test_idle_memory_is_bounded() -> None:
    """Giving back a hundred large buffers keeps only some."""
    buffers = ReceiveBuffers()
    taken = [buffers.take(1 << 21) for _ in range(100)]
    for buffer in taken:
        buffers.give_back(buffer)
    again = {id(buffers.take(1 << 21)) for _ in range(100)}
    assert len(again & {id(buffer) for buffer in taken}) == 8
