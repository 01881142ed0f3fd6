"""The backslash escapes of kcat's delimiters and formats: `\\n`, `\\t`, `\\r`, `\\0`, `\\xNN`,
`\\\\`.
"""

import re

_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_NAMED = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}


def unescape(text: str) -> bytes:
    """Return the bytes that `text` denotes; an unknown escape is its own character."""
    parts: list[bytes] = []
    position = 0
    for escape in _ESCAPE.finditer(text):
        parts.append(text[position : escape.start()].encode())
        word = escape.group(1)
        if len(word) == 3:
            parts.append(bytes([int(word[1:], 16)]))
        else:
            parts.append(_NAMED.get(word, word.encode()))
        position = escape.end()
    parts.append(text[position:].encode())
    return b"".join(parts)
