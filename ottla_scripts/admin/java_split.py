"""Texts in parts, as Java's String.split returns them."""

import re


def java_split(pattern: str, text: str) -> list[str]:
    """Split a text without the empty parts at its end; a text without separator is one part."""
    parts = re.split(pattern, text)
    if len(parts) > 1:
        while parts and not parts[-1]:
            parts.pop()
    return parts
