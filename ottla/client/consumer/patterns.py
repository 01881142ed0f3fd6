"""Patterns of topics: Python's syntax is refused where librdkafka would read it differently.

librdkafka matches topics with POSIX extended regular expressions (ERE) if it computes assignments
itself. It reads `\\d` as the letter d, and knows no flags.
"""

import re

from ottla.client.errors import ClientError

# Replacements for Python's escapes.
_CLASSES = {
    "d": "[0-9]",
    "D": "[^0-9]",
    "w": "[A-Za-z0-9_]",
    "W": "[^A-Za-z0-9_]",
    "s": "[[:space:]]",
    "S": "[^[:space:]]",
}
# An escape, a set in brackets (a bracket that comes first belongs to it), or another character.
_TOKEN = re.compile(r"\\.?|\[\^?\]?[^\]]*\]?|.", re.DOTALL)


def pattern_text(pattern: str | re.Pattern[str], *, is_extended: bool) -> str:
    """Return the text of a pattern; ClientError if it has flags, which are not sent.

    If `is_extended` is True, ClientError also names syntax that ERE does not have.
    """
    if isinstance(pattern, str):
        text = pattern
    else:
        text = pattern.pattern
        # Every pattern of text has this flag.
        flags = re.RegexFlag(pattern.flags & ~re.UNICODE)
        if flags:
            raise ClientError(
                f"cannot subscribe to {text!r} with {flags!r}: flags are not supported; write "
                "them into the pattern, as [Oo]rders instead of orders with re.IGNORECASE"
            )
    if is_extended:
        _check_extended(text)
    return text


def _check_extended(text: str) -> None:
    if "(?" in text:
        raise ClientError(
            f"cannot subscribe to {text!r}: (? is not part of POSIX extended regular expressions; "
            "write ( for a group, and letters such as [Oo] instead of flags"
        )
    for token in _TOKEN.findall(text):
        if token.startswith("[") and "\\" in token:
            raise ClientError(
                f"cannot subscribe to {text!r}: a backslash in brackets is a character of the set "
                "in POSIX extended regular expressions; write the characters themselves, as "
                "[0-9.] instead of [\\d.]"
            )
        if token.startswith("\\") and token[1:].isalnum():
            letter = token[1:]
            instead = f"; write {_CLASSES[letter]}" if letter in _CLASSES else ""
            raise ClientError(
                f"cannot subscribe to {text!r}: POSIX extended regular expressions do not have "
                f"{token}{instead}"
            )
