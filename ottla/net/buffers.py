"""Receive buffers: one that all connections of a loop share, and a pool for unfinished frames.

Allocating or freeing 128 KiB and more for each request costs more than the request (the C library
maps and unmaps pages), so buffers for partial frames are powers of two and are reused.
"""

SHARED_BYTES = 256 * 1024
_SMALLEST = 12  # 4 KiB
_LARGEST_KEPT = 22  # 4 MiB
_KEPT_BYTES_MAX = 16 * 1024 * 1024


def room_bytes(size_bytes: int) -> int:
    """Return the size of the buffer that `take(size_bytes)` returns."""
    return 1 << max(_SMALLEST, (size_bytes - 1).bit_length())


class ReceiveBuffers:
    """The buffers of one event loop. A buffer belongs to its taker until it is given back."""

    def __init__(self) -> None:
        # In use only from a transport's read to the end of the same callback.
        self.shared = memoryview(bytearray(SHARED_BYTES))
        self._free: dict[int, list[bytearray]] = {}
        self._kept_bytes = 0

    def take(self, size_bytes: int) -> bytearray:
        """Return a buffer of at least `size_bytes`; its content is arbitrary."""
        order = max(_SMALLEST, (size_bytes - 1).bit_length())
        free = self._free.get(order)
        if free:
            self._kept_bytes -= 1 << order
            return free.pop()
        return bytearray(1 << order)

    def give_back(self, buffer: bytearray) -> None:
        """Return a buffer to the pool, or free it if the pool is full."""
        size_bytes = len(buffer)
        order = size_bytes.bit_length() - 1
        if order <= _LARGEST_KEPT and self._kept_bytes + size_bytes <= _KEPT_BYTES_MAX:
            self._free.setdefault(order, []).append(buffer)
            self._kept_bytes += size_bytes
