"""Masking rules: fields, keys and headers that a user may not see. Filters see masked values only."""

from collections.abc import Sequence
from dataclasses import dataclass

from ottla.console.model.connections import planned

MASK = "******"


@dataclass(frozen=True, slots=True)
class MaskingRule:
    """Hides a part of records of the topics that `topics` matches (RE2, whole name).

    `target` is "value", "key" or "header". `path` is a JSON path of the fields to hide (empty: the
    whole value) or the name of the header. `pattern` (RE2) hides only its matches inside the text.
    """

    topics: str
    target: str = "value"
    path: str = ""
    pattern: str = ""


class Masking:
    """Rules that apply to one topic, compiled; false if there are none."""

    def __init__(self, rules: Sequence[MaskingRule], topic: str) -> None:
        raise planned()

    def __bool__(self) -> bool:
        """Return True if a rule applies."""
        raise planned()
