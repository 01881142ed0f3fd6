"""JMX object names: `domain:key=value,…`, and the patterns that select them.

In a pattern, `*` and `?` match any characters of the domain and of values; `*` as a property
allows further ones. The order of properties does not matter. Follows javax.management.ObjectName.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from ottla.base.text import patterns
from ottla.metrics.beans import Bean, Properties

# Values with these characters are quoted.
_SPECIAL = re.compile(r'[,=:"*?\n\\]')
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "*": r"\*", "?": r"\?", "\n": r"\n"})
# A property: its key, and its value, which may be in quotes.
_PROPERTY = re.compile(r'(\*)(?:,|$)|([^,=:"*?]+)=("(?:[^"\\]|\\.)*"|[^,=:"]*)(?:,|$)')
_CHARACTERS = re.compile(r"\\?.", re.DOTALL)
_WILDCARDS = {"*": "(?s:.*)", "?": "(?s:.)"}
ANY = "*:*"


class ObjectName(NamedTuple):
    """A domain and its properties, as texts in the order in which they are written."""

    domain: str
    properties: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.domain}:{','.join(map('='.join, self.properties.items()))}"


def object_name(bean: Bean, properties: Properties) -> ObjectName:
    """Return the name of a bean with further properties; attributes of a type share one name."""
    pairs = {"type": bean.type}
    if not bean.is_attribute:
        pairs["name"] = bean.name
    pairs |= {key: _quoted(value) for key, value in properties.pairs}
    return ObjectName(bean.domain, pairs)


def _quoted(value: str) -> str:
    return f'"{value.translate(_ESCAPES)}"' if _SPECIAL.search(value) else value


class ObjectNamePattern:
    """Selects object names; a pattern without wildcards selects one name.

    Raises ValueError for a text that is not a pattern.
    """

    def __init__(self, text: str) -> None:
        domain, colon, rest = text.partition(":")
        if not colon or not rest:
            raise ValueError(f"invalid object name {text!r}: it must be domain:key=value,…")
        self.text = text
        self._domain = _wildcards(domain)
        self._values: dict[str, patterns.Pattern] = {}
        self._is_open = False
        position = 0
        while position < len(rest):
            match = _PROPERTY.match(rest, position)
            if match is None:
                raise ValueError(
                    f"invalid object name {text!r}: {rest[position:]!r} is not a property"
                )
            any_more, key, value = match.groups()
            if any_more:
                self._is_open = True
            else:
                self._values[key] = _wildcards(value)
            position = match.end()
        self.is_exact = not self._is_open and not re.search(r"(?<!\\)[*?]", text)

    def __contains__(self, name: ObjectName) -> bool:
        properties = name.properties
        if len(properties) < len(self._values) or not self._domain.fullmatch(name.domain):
            return False
        if not self._is_open and len(properties) > len(self._values):
            return False
        return all(
            key in properties and value.fullmatch(properties[key]) is not None
            for key, value in self._values.items()
        )

    def may_contain(self, bean: Bean) -> bool:
        """Return False if no name of this bean can match, whatever its further properties are."""
        known = {"type": bean.type} if bean.is_attribute else {"type": bean.type, "name": bean.name}
        return self._domain.fullmatch(bean.domain) is not None and all(
            key not in self._values or self._values[key].fullmatch(value) is not None
            for key, value in known.items()
        )


def _wildcards(text: str) -> patterns.Pattern:
    """Return the expression for a text with wildcards; a backslash escapes the next character.

    Raises InvalidPatternError, a ValueError, if it has too many wildcards.
    """
    characters = _CHARACTERS.findall(text)
    return patterns.compiled(
        "".join(_WILDCARDS.get(part) or patterns.escaped(part) for part in characters)
    )
