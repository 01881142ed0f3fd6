"""Removal of secrets from what leaves the machine. Pure.

Values are removed by the name of their option, and user names and passwords from addresses. An option that is unknown
is treated as a secret if its name looks like one.
"""

import re
from collections.abc import Mapping
from typing import Any

REMOVED = "<removed>"
_SECRET_NAME = re.compile(
    r"password|passwd|secret|jaas|credential|token|api[._-]?key|private|ssl\.(?:keystore|key)\b"
    r"|basic\.auth|bearer|\bauth\b.*info",
    re.IGNORECASE,
)
_URL_USER = re.compile(r"(\w+://)[^/@\s]+@")
_PAIR = re.compile(
    r"""((?:password|passwd|secret|token|credential)\w*["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s,;}"']+)""",
    re.IGNORECASE,
)


def is_secret(name: str) -> bool:
    """Return True if an option of this name may contain a secret."""
    return _SECRET_NAME.search(name) is not None


def clean_text(text: str) -> str:
    """Return a text without users in addresses, and without `password=…` pairs."""
    return _PAIR.sub(rf"\1{REMOVED}", _URL_USER.sub(rf"\1{REMOVED}@", text))


def clean(value: Any) -> Any:
    """Return JSON-like data without secrets."""
    if isinstance(value, Mapping):
        return {
            key: REMOVED if is_secret(str(key)) and item not in (None, "") else clean(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    return clean_text(value) if isinstance(value, str) else value


def clean_entry(name: str, value: str | None, *, is_sensitive: bool) -> str | None:
    """Return the value of an option, or the mark of a removed one."""
    if value in (None, ""):
        return value
    if is_sensitive or is_secret(name):
        return REMOVED
    return clean_text(str(value))
