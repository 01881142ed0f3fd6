"""Java properties: the format of `server.properties` and `client.properties`."""

import re
from collections.abc import Mapping

from ottla.base.errors import ConfigError

_COMMENT = ("#", "!")
_SEPARATOR = re.compile(r"\s*[=:]\s*|\s+")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_NAMED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(
    text: str, source: str, *, needs_values: bool = True, keeps_spaces: bool = False
) -> dict[str, str]:
    """Return the settings; ConfigError names `source` and the line that is not a setting.

    If a name is set twice, the last value counts, as in Java. Without `needs_values` a name alone
    has the empty value, also as in Java. With `keeps_spaces`, so may a value end with spaces:
    Java removes them later from most options.
    """
    settings: dict[str, str] = {}
    for number, line in _logical_lines(text, keeps_spaces):
        name, has_separator, value = _split(line)
        if needs_values and not (has_separator and name):
            raise ConfigError(f"{source}, line {number}: {line!r} is not of the form name=value")
        settings[_unescape(name)] = _unescape(value)
    return settings


def write_properties(settings: Mapping[str, str]) -> str:
    """Return the text of a configuration file with these settings."""
    return "".join(f"{name}={_escape(value)}\n" for name, value in settings.items())


def _escape(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return escaped.replace("\t", "\\t").replace("\f", "\\f")


def _logical_lines(text: str, keeps_spaces: bool) -> list[tuple[int, str]]:
    """Return (number, line) without comments; a backslash at the end of a line joins the next one."""
    lines: list[tuple[int, str]] = []
    joined: str | None = None
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.lstrip() if joined is not None or keeps_spaces else line.strip()
        if joined is None and (not stripped or stripped.startswith(_COMMENT)):
            continue
        logical_line = (joined or "") + stripped
        # An even number of backslashes is a sequence of escaped backslashes.
        if (len(logical_line) - len(logical_line.rstrip("\\"))) % 2:
            joined = logical_line[:-1]
            continue
        lines.append((number, logical_line if keeps_spaces else logical_line.rstrip()))
        joined = None
    if joined:
        lines.append((len(text.splitlines()), joined if keeps_spaces else joined.rstrip()))
    return lines


def _split(line: str) -> tuple[str, bool, str]:
    separator = _SEPARATOR.search(line)
    if separator is None:
        return line, False, ""
    return line[: separator.start()], True, line[separator.end() :]


def _unescape(text: str) -> str:
    def replace(escape: re.Match[str]) -> str:
        word = escape.group(1)
        return chr(int(word[1:], 16)) if len(word) == 5 else _NAMED.get(word, word)

    return _ESCAPE.sub(replace, text)
