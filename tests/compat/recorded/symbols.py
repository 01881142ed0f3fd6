"""Symbols: names for values that differ in every run, so that a transcript can refer to them.

A value gets its number when it is first seen: `$topic_id:1` is the first topic id in a
conversation, `$member:2` the second UUID inside a string (member ids end with one). A request may
use values of earlier responses. `$topic_id:none_such` and the like are generated at the first use.
"""

import hashlib
import re
import time
from typing import Any

from tests.compat.recorded.notation import Word

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SHORT_UUID = re.compile(r"[\w-]{22}", re.ASCII)
_IN_TEXT = re.compile(r"\$[a-z_]+(?::\w+)?")
_NOW = Word("$now")
_NOW_SLACK_MS = 3_600_000


class Symbols:
    """The values that have a name so far, in one conversation with one broker."""

    def __init__(self, **fixed: Any) -> None:
        self._values: dict[str, Any] = {f"${name}": value for name, value in fixed.items()}
        # The values that a request wrote, with the version in them, by the values that were sent.
        self._versioned: dict[str, str] = {}
        self._encoded: dict[bytes, Any] = {}

    def copy(self) -> "Symbols":
        """Return a copy that changes independently."""
        twin = Symbols()
        twin._values = dict(self._values)
        twin._encoded = dict(self._encoded)
        return twin

    # -- what is sent ------------------------------------------------------------------------------

    def value(self, word: Word) -> Any:
        """Return the value of a symbol. Raises KeyError if no response has shown it."""
        if word == _NOW:
            return int(time.time() * 1000)
        kind, _, number = word.partition(":")
        if word not in self._values and kind == "$topic_id" and not number.isdigit():
            self._values[word] = hashlib.md5(number.encode(), usedforsecurity=False).digest()
        return self._values[word]

    def filled(self, text: str, version: int) -> str:
        """Return a string with its symbols replaced, `$v` by the version."""

        def replaced(match: re.Match[str]) -> str:
            return str(version) if match[0] == "$v" else str(self.value(Word(match[0])))

        result = _IN_TEXT.sub(replaced, text)
        if "$v" in text:
            self._versioned[result] = text
        return result

    def remember(self, encoded: bytes, notation: Any) -> bytes:
        """Remember how bytes were written, so that they are shown in the same form; return them."""
        self._encoded[encoded] = notation
        return encoded

    # -- what is received --------------------------------------------------------------------------

    def name(self, kind: str, value: Any) -> Word:
        """Return the symbol of a value; the next number of its kind if the value is new."""
        known = self.known(kind, value)
        if known is not None:
            return known
        prefix = f"${kind}:"
        names = [name for name in self._values if name.removeprefix(prefix).isdigit()]
        count = sum(name.startswith(prefix) for name in names)
        word = Word(f"{prefix}{count + 1}")
        self._values[word] = value
        return word

    def known(self, kind: str, value: Any) -> Word | None:
        """Return the symbol of a value that was seen before."""
        for name, known in self._values.items():
            if known == value and name.split(":")[0] == f"${kind}":
                return Word(name)
        return None

    def text(self, text: str) -> str:
        """Return a string with UUIDs and the request's version as symbols."""
        if text in self._versioned:
            return self._versioned[text]
        return _UUID.sub(lambda match: str(self.name("member", match[0])), text)

    def member(self, text: str) -> str:
        """Return a member id; one that a coordinator has generated is a UUID in base 64."""
        return self.name("member", text) if _SHORT_UUID.fullmatch(text) else self.text(text)

    def bytes(self, data: bytes) -> Any:
        """Return bytes as they were written in a request, or else as text, or else unchanged."""
        if data in self._encoded:
            return self._encoded[data]
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return data
        return text if text.isprintable() else data

    def moment(self, timestamp_ms: int) -> int | Word:
        """Return a timestamp, `$now` if it is one of this hour."""
        distance_ms = abs(time.time() * 1000 - timestamp_ms)
        return _NOW if distance_ms < _NOW_SLACK_MS else timestamp_ms
