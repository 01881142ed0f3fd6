"""Converts Java's regular expressions and SQL's LIKE to Python's, if both mean the same.

Java's `.`, `$` and character classes differ slightly from Python's, and each language has
constructs that the other lacks. Patterns that are not known to be the same are rejected. Java:
`java.util.regex.Pattern`.
"""

import functools
import re

_ENDS = "\\n\\r\\u0085\\u2028\\u2029"
_DOLLAR = f"(?:(?=(?:\\r\\n|[{_ENDS}])?\\Z)(?<!\\r(?=\\n)))"
_TOKEN = re.compile(
    r"""(?P<literal>[^\\\[\](){}.$^|*+?#]|\#)
    |(?P<escaped>\\[^A-Za-z0-9])
    |(?P<class>\\[dDwWsS])
    |(?P<control>\\[tnrf])
    |(?P<set>\[\^?(?:\\[^A-Za-z0-9]|\\[dwstnrf]|[^\\\[\]&])+\])
    |(?P<dot>\.)
    |(?P<dollar>\$)
    |(?P<start>\^)
    |(?P<group>\((?:\?:|\?=|\?!|(?!\?)))
    |(?P<close>\))
    |(?P<or>\|)
    |(?P<repeat>(?:[*+?]|\{\d+(?:,\d*)?\})[?+]?)
    """,
    re.VERBOSE | re.DOTALL,
)
_REPLACED = re.compile(r"\\(.)|\$(\d)|(\$|\\)", re.DOTALL)


@functools.lru_cache(maxsize=256)
def of_java(pattern: str) -> re.Pattern[str]:
    """Convert a regular expression of Java to Python.

    Raises ValueError if a part of it may have another meaning in Python.
    """
    parts, position = [], 0
    while position < len(pattern):
        token = _TOKEN.match(pattern, position)
        if token is None:
            raise ValueError(
                f"{pattern!r} may have another meaning in Python than in Java at character {position + 1}: "
                "use a simpler pattern or a Python function"
            )
        parts.append({"dot": f"[^{_ENDS}]", "dollar": _DOLLAR}.get(token.lastgroup or "", token[0]))
        position = token.end()
    try:
        return re.compile("".join(parts), re.ASCII)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None


def replaced(match: re.Match[str], replacement: str) -> str:
    """Expand a replacement: `$1` is a group, and a backslash escapes the next character."""

    def expand(part: re.Match[str]) -> str:
        if part[1] is not None:
            return part[1]
        if part[2] is None:
            raise ValueError(f"{replacement!r}: a number of a group follows $, a character \\")
        return match[int(part[2])] or ""

    return _REPLACED.sub(expand, replacement)


def split(value: str, pattern: str, limit: int) -> list[str]:
    """Split a string at the matches of a pattern, into at most `limit` parts if `limit` is
    positive.
    """
    compiled = of_java(pattern)
    if compiled.match(""):
        raise ValueError(f"{pattern!r} matches the empty string: such a split is not supported")
    parts: list[str] = []
    start = 0
    for result in compiled.finditer(value):
        if len(parts) + 1 == limit:
            break
        parts.append(value[start : result.start()])
        start = result.end()
    return [*parts, value[start:]]


@functools.lru_cache(maxsize=256)
def of_like(pattern: str, escape: str) -> re.Pattern[str]:
    """Convert a pattern of LIKE: `_` matches one character, `%` any number of characters."""
    parts, characters = [], iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, "")
            if following not in ("_", "%", escape) or not following:
                raise ValueError(f"{pattern!r}: {escape} must precede _, % or itself")
            parts.append(re.escape(following))
        else:
            parts.append({"_": ".", "%": ".*"}.get(character, re.escape(character)))
    return re.compile("".join(parts), re.DOTALL)
