"""Lines as records (org.apache.kafka.tools.LineMessageReader)."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from ottla.base.errors import OttlaError
from ottla_scripts.admin.java_split import java_split

Header = tuple[str, bytes | None]


class LineError(OttlaError):
    """A line, or the properties of the reader, cannot be understood."""


class Line(NamedTuple):
    """A record of one line."""

    key: bytes | None
    value: bytes | None
    headers: list[Header]


class LineReader:
    """Splits lines into headers, key and value, as the reader's properties say."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        def flag(name: str) -> bool:
            return properties.get(name, "").strip().lower() == "true"

        self._parses_key = flag("parse.key")
        self._parses_headers = flag("parse.headers")
        self._ignores_errors = flag("ignore.error")
        self._key_separator = properties.get("key.separator", "\t")
        self._headers_delimiter = properties.get("headers.delimiter", "\t")
        self._headers_separator = properties.get("headers.separator", ",")
        self._headers_key_separator = properties.get("headers.key.separator", ":")
        self._null = properties.get("null.marker")
        self._number = 0
        self._check()

    def read(self, text: str) -> Line:
        """Return the record of a line; LineError names the missing separator."""
        self._number += 1
        remainder, headers, key = text, None, None
        if self._parses_headers:
            headers, remainder = self._split(
                text, remainder, self._headers_delimiter, "headers delimiter"
            )
        if self._parses_key:
            key, remainder = self._split(text, remainder, self._key_separator, "key separator")
        return Line(
            None if key is None else self._bytes(key),
            self._bytes(remainder),
            [] if headers is None or headers == self._null else self._headers(headers),
        )

    def _split(
        self, line: str, remainder: str, separator: str, name: str
    ) -> tuple[str | None, str]:
        # An empty separator is found at the beginning of every text.
        part, match, after = remainder.partition(separator) if separator else ("", "", remainder)
        if match or not separator:
            return part, after
        if self._ignores_errors:
            return None, remainder
        raise LineError(f"No {name} found on line number {self._number}: '{line}'")

    def _headers(self, text: str) -> list[Header]:
        result: list[Header] = []
        for pair in java_split(self._headers_separator, text):
            name, match, value = pair.partition(self._headers_key_separator)
            if not match and not self._ignores_errors:
                raise LineError(
                    f"No header key separator found in pair '{pair}' on line number {self._number}"
                )
            if name == self._null:
                raise LineError(
                    f"Header keys should not be equal to the null marker '{self._null}' as they "
                    "can't be null"
                )
            result.append((name, self._bytes(value) if match else None))
        return result

    def _bytes(self, text: str) -> bytes | None:
        return None if text == self._null else text.encode()

    def _check(self) -> None:
        try:
            re.compile(self._headers_separator)
        except re.error as error:
            raise LineError(
                f"headers.separator '{self._headers_separator}' is not a valid regular expression: "
                f"{error}"
            ) from None
        separators = {
            "headers.delimiter": self._headers_delimiter,
            "headers.separator": self._headers_separator,
            "headers.key.separator": self._headers_key_separator,
        }
        for first, second in (
            ("headers.delimiter", "headers.separator"),
            ("headers.delimiter", "headers.key.separator"),
            ("headers.separator", "headers.key.separator"),
        ):
            if separators[first] == separators[second]:
                raise LineError(f"{first} and {second} may not be equal")
        if self._null is None:
            return
        order = ("key.separator", "headers.separator", "headers.delimiter", "headers.key.separator")
        for name in order:
            if {**separators, "key.separator": self._key_separator}[name] == self._null:
                raise LineError(f"null.marker and {name} may not be equal")
