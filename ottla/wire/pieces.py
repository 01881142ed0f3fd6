"""A message whose largest array is encoded in pieces, a few elements at a time.

Thousands of elements take ten times as much memory as their bytes, and their encoding takes long at
a stretch.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ottla.base.buffers import Buffer
from ottla.wire import schema
from ottla.wire.fields import Message, Struct
from ottla.wire.primitives import encode_uvarint

_COUNT_BYTES = 4


class _Place(NamedTuple):
    """The place of the elements in a message without elements: the count, and what follows it."""

    around: bytes
    count_at: int
    rest_at: int


class Pieces:
    """The encoded elements of the array `field` in one version of a message.

    The compiled encoder of the whole message is used. The count of the elements is where the
    encodings of a message without elements and with one begin to differ.
    """

    def __init__(self, cls: type[Message], version: int, field: str) -> None:
        self.count = 0
        self.size_bytes = 0
        self._cls = cls
        self._field = field
        self._version = version
        self._is_flexible = version >= cls.FLEXIBLE_SINCE
        self._first: Struct | None = None
        self._encoded: list[Buffer] = []
        # A message that has nothing but the elements.
        self._blank: _Place | None = None

    def add(self, elements: Sequence[Struct]) -> None:
        """Encode more elements."""
        if not elements:
            return
        if self._first is None:
            self._first = elements[0]
            self._blank = self._place(self._cls())
        assert self._blank is not None
        message = self._cls(**{self._field: elements})
        encoded = memoryview(schema.encode(message, self._version))
        start = self._blank.count_at + len(self._count(len(elements)))
        rest_bytes = len(self._blank.around) - self._blank.rest_at
        self._encoded.append(encoded[start : len(encoded) - rest_bytes])
        self.count += len(elements)
        self.size_bytes += len(self._encoded[-1])

    def parts(self, message: Message, header: bytes) -> list[Buffer]:
        """Return header and message with all added elements, in place of those that it has."""
        if self._first is None:
            return [header, schema.encode(message, self._version)]
        around, count_at, rest_at = self._place(message)
        head = header + around[:count_at] + self._count(self.count)
        return [head, *self._encoded, around[rest_at:]]

    def parts_after_fixed(self, message: Message, header: bytes) -> list[Buffer]:
        """Return the same as `parts` in less time, for a message that has no elements itself.

        Only fields of a fixed size may precede the elements.
        """
        if self._blank is None:
            return self.parts(message, header)
        around = schema.encode(message, self._version)
        head = header + around[: self._blank.count_at] + self._count(self.count)
        return [head, *self._encoded, around[self._blank.rest_at :]]

    def _place(self, message: Message) -> _Place:
        setattr(message, self._field, [self._first])
        one = schema.encode(message, self._version)
        setattr(message, self._field, [])
        without = schema.encode(message, self._version)
        pairs = enumerate(zip(without, one, strict=False))
        differs = next(at for at, (former, byte) in pairs if former != byte)
        # Of a count of four bytes the last one differs.
        count_at = differs if self._is_flexible else differs + 1 - _COUNT_BYTES
        return _Place(without, count_at, count_at + len(self._count(0)))

    def _count(self, count: int) -> bytes:
        return encode_uvarint(count + 1) if self._is_flexible else count.to_bytes(_COUNT_BYTES)
