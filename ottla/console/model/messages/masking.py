"""Masking rules: fields, keys and headers that a user may not see. Filters see masked values only."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ottla.base.errors import ConfigError, OttlaError
from ottla.base.text.json_paths import JsonPath, malformed
from ottla.base.text.json_text import parse_nodes, replaced
from ottla.base.text.patterns import Expression

MASK = "******"
"""The text that replaces hidden parts."""


class MaskedTopic(OttlaError):
    """The user may not read all of the data, so that it cannot be copied or written again."""


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


def applies(rule: MaskingRule, topic: str) -> bool:
    """Return True if a rule hides parts of a topic's records."""
    return Expression(rule.topics).matches(topic)


def require_unmasked(rules: Sequence[MaskingRule], topic: str, purpose: str) -> None:
    """Raise MaskedTopic if rules hide parts of a topic from a user who wants to move its records."""
    if any(applies(rule, topic) for rule in rules):
        raise MaskedTopic(
            f"the topic {topic!r} has masked fields, which only an admin may read: ask an admin to "
            f"{purpose}"
        )


Header = tuple[str, bytes | None]


class Masking:
    """Rules that apply to one topic, compiled; false without such rules."""

    def __init__(self, rules: Sequence[MaskingRule], topic: str) -> None:
        """Compile; raises ConfigError for a malformed expression, path or target."""
        if unknown := {rule.target for rule in rules} - {"key", "value", "header"}:
            raise ConfigError(f"{unknown.pop()!r} cannot be masked: choose key, value or header")
        # All rules are compiled, so that a malformed one is reported whatever the topic is.
        masks = [
            (rule, _header_mask(rule) if rule.target == "header" else _content_mask(rule))
            for rule in rules
        ]
        applying = [(rule, mask) for rule, mask in masks if applies(rule, topic)]
        self._key = [mask for rule, mask in applying if rule.target == "key"]
        self._value = [mask for rule, mask in applying if rule.target == "value"]
        self._headers = [(rule.path, mask) for rule, mask in applying if rule.target == "header"]

    def __bool__(self) -> bool:
        """Return True if a rule applies."""
        return bool(self._key or self._value or self._headers)

    def key(self, raw: bytes | None) -> bytes | None:
        """Return a key with its hidden parts replaced."""
        return _apply(self._key, raw)

    def value(self, raw: bytes | None) -> bytes | None:
        """Return a value with its hidden parts replaced; all of it if a path meets no JSON."""
        return _apply(self._value, raw)

    def headers(self, headers: Sequence[Header]) -> Sequence[Header]:
        """Return headers with hidden values replaced."""
        if not self._headers:
            return headers
        return [(name, self._header(name, raw)) for name, raw in headers]

    def _header(self, name: str, raw: bytes | None) -> bytes | None:
        return _apply(
            [mask for masked_name, mask in self._headers if masked_name in ("", name)], raw
        )


_Mask = Callable[[bytes], bytes]


def _apply(masks: Sequence[_Mask], raw: bytes | None) -> bytes | None:
    if raw is not None:
        for mask in masks:
            raw = mask(raw)
    return raw


def _content_mask(rule: MaskingRule) -> _Mask:
    hide = _hiding(rule.pattern)
    if not rule.path:
        return lambda raw: hide(raw.decode("utf-8", "replace")).encode()
    path = JsonPath(rule.path)
    if path.is_root:
        raise malformed(rule.path)

    def mask(raw: bytes) -> bytes:
        try:
            text = raw.decode()
            json.loads(text)
        except (ValueError, RecursionError):
            # It could contain the field in another form.
            return MASK.encode()
        return replaced(text, parse_nodes(text, json.loads), path, change).encode()

    def change(token: str) -> str:
        value = json.loads(token) if token.startswith('"') else ""
        return json.dumps(hide(value), ensure_ascii=False)

    return mask


def _header_mask(rule: MaskingRule) -> _Mask:
    hide = _hiding(rule.pattern)
    return lambda raw: hide(raw.decode("utf-8", "replace")).encode()


def _hiding(pattern: str) -> Callable[[str], str]:
    if not pattern:
        return lambda text: MASK
    compiled = Expression(pattern)
    return lambda text: compiled.replace(text, MASK)
