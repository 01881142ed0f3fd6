"""The topics that a statement with an unknown table may mean. Pure."""

import difflib
import re
from collections.abc import Callable, Iterable

_UNKNOWN = re.compile(r"Table with name (.+?) does not exist!?")
# DuckDB suggests its own tables.
_SUGGESTION = re.compile(r'\s*Did you mean ".*?"\??')
_NAMES_MAX = 3


def with_topics(message: str, topics: Callable[[], Iterable[str]]) -> str:
    """Return DuckDB's error with the topics of similar names, if it is about an unknown table."""
    unknown = _UNKNOWN.search(message)
    if unknown is None:
        return message
    name = unknown[1].strip('"')
    by_lower = {topic.lower(): topic for topic in topics()}
    similar = difflib.get_close_matches(name.lower(), by_lower, _NAMES_MAX, 0.6)
    meant = ""
    if similar:
        meant = " (did you mean " + " or ".join(f'"{by_lower[match]}"' for match in similar) + "?)"
    hint = 'tables are topics: quote names with dots or dashes, as in "orders.v1"'
    rest = _SUGGESTION.sub("", message[unknown.end() :]).strip()
    return f"there is no topic {name!r}{meant}; {hint}{f'. {rest}' if rest else ''}"
