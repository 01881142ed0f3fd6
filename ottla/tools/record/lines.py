"""Conversion of input bytes to records: split at a delimiter, separate keys, map empty to null.

Pure except for reading the given stream. A line typed at a terminal becomes a record immediately.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

_READ_BYTES = 1 << 16


class ByteStream(Protocol):
    """The interface of standard input and files: `read1` returns available bytes, b"" at the end."""

    def read1(self, size: int = -1, /) -> bytes:
        """Return at least one byte, or b"" at the end."""
        ...


@dataclass(frozen=True, slots=True)
class Splitter:
    """The rule that splits a message into key and value, as kcat's -K, -k and -Z do."""

    key_delimiter: bytes | None = None
    fixed_key: bytes | None = None
    empty_is_null: bool = False

    def split(self, message: bytes) -> tuple[bytes | None, bytes | None]:
        """Return key and value; a message without the delimiter has the fixed key, or none."""
        key, value = self.fixed_key, message
        if self.key_delimiter is not None:
            head, delimiter, tail = message.partition(self.key_delimiter)
            if delimiter:
                key, value = head, tail
        if not self.empty_is_null:
            return key, value
        return key or None, value or None


def iterate_messages(stream: ByteStream, delimiter: bytes) -> Iterator[bytes]:
    """Yield the messages between delimiters; the last one needs no delimiter, and is skipped if
    empty.
    """
    incomplete = b""
    while chunk := stream.read1(_READ_BYTES):
        *complete, incomplete = (incomplete + chunk).split(delimiter)
        yield from complete
    if incomplete:
        yield incomplete


def parse_header(text: str) -> tuple[str, bytes | None]:
    """Return name and value of `-H name=value`; without `=` the value is null."""
    name, equals, value = text.partition("=")
    if not name:
        raise ValueError(f"{text!r} is not a header of the form name=value")
    return name, value.encode() if equals else None
