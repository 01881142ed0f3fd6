"""Lines of bytes as Java's BufferedReader and its decoder of UTF-8 return them."""

import codecs
from collections.abc import Iterator
from typing import Protocol

_CHUNK = 1 << 16
_ERRORS = "ottla.java-replace"
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class Stream(Protocol):
    """Bytes that arrive in parts, such as standard input."""

    def read1(self, size: int, /) -> bytes:
        """Return the available bytes; empty at the end."""


def java_lines(stream: Stream) -> Iterator[str]:
    r"""Return the lines of a stream: `\n`, `\r` and `\r\n` end a line.

    A line is returned as soon as its end has arrived. Bytes that are not UTF-8 become U+FFFD.
    """
    parts: list[bytes] = []
    after_return = False
    while chunk := stream.read1(_CHUNK):
        if after_return:
            chunk = chunk.removeprefix(b"\n")
        after_return = chunk.endswith(b"\r")
        lines = chunk.splitlines(keepends=True)
        for line in lines:
            parts.append(line.rstrip(b"\r\n"))
            if line.endswith((b"\n", b"\r")):
                yield _decode(b"".join(parts))
                parts = []
    if any(parts):
        yield _decode(b"".join(parts))


def _decode(line: bytes) -> str:
    return line.decode("utf-8", _ERRORS)


def _replace(error: UnicodeError) -> tuple[str, int]:
    """Replace the bytes that Java's decoder replaces by one character.

    Python replaces each byte of a surrogate (`ed a0 80`), Java all of them together.
    """
    if not isinstance(error, UnicodeDecodeError):
        raise error
    start, data = error.start, error.object
    if data[start] == 0xED and _is_continuation(data[start + 1 : start + 2]):
        return _REPLACEMENT, start + 2 + _is_continuation(data[start + 2 : start + 3])
    return _REPLACEMENT, error.end


def _is_continuation(byte: bytes) -> bool:
    return byte != b"" and byte[0] & 0xC0 == 0x80


codecs.register_error(_ERRORS, _replace)
