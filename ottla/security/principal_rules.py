"""Rules from the subject of a certificate to the name of a user (KIP-371). Pure.

Follows Kafka's SslPrincipalMapper: `RULE:pattern/replacement/`, with `L` or `U` behind it for small
or capital letters, and `DEFAULT` for the subject itself. The first rule whose pattern matches the
whole subject decides. Patterns have RE2's syntax, because strangers choose the subjects that the
rules are matched against.
"""

import re
from typing import Any, NamedTuple

from ottla.base.text import patterns
from ottla.base.text.patterns import InvalidPatternError, Pattern

_TEXT = r"(?:\\.|[^\\/])*"
_RULE = re.compile(
    rf"(?:(?P<default>DEFAULT)|RULE:(?P<pattern>{_TEXT})/(?P<replacement>{_TEXT})/(?P<case>[LU]?))"
    r"\s*(?:,\s*|$)"
)
_NOTHING = re.compile(r"[\s,]*")
_REFERENCE = re.compile(r"\\(.)|\$(.?)(\d*)", re.DOTALL)


class Rule(NamedTuple):
    """A rule; None as its pattern is DEFAULT."""

    pattern: Pattern | None = None
    replacement: str = ""
    case: str = ""

    def name_of(self, subject: str) -> str | None:
        """Return the name of a user; None if the rule does not match."""
        pattern = self.pattern
        if pattern is None:
            return subject
        if pattern.fullmatch(subject) is None:
            return None
        name = pattern.sub(lambda match: _expanded(self.replacement, match), subject)
        return name.lower() if self.case == "L" else name.upper() if self.case == "U" else name


Rules = tuple[Rule, ...]


def parse_rules(text: str) -> Rules:
    """Return the rules of an option; raises ValueError if they are not rules."""
    rules = []
    position = _end_of_nothing(text, 0)
    while position < len(text):
        found = _RULE.match(text, position)
        if found is None:
            raise ValueError(
                f"{text[position:]!r} does not begin with a rule: write DEFAULT or "
                "RULE:pattern/replacement/, separated by commas"
            )
        rules.append(Rule() if found["default"] else _rule(found))
        position = _end_of_nothing(text, found.end())
    return tuple(rules)


def name_of(rules: Rules, subject: str) -> str | None:
    """Return the user of a certificate by its subject; None if no rule matches."""
    names = (rule.name_of(subject) for rule in rules)
    return next((name for name in names if name is not None), None)


def _end_of_nothing(text: str, position: int) -> int:
    """Return where the next rule begins: empty rules are ignored."""
    nothing = _NOTHING.match(text, position)
    assert nothing is not None, "the expression matches the empty text"
    return nothing.end()


def _rule(found: re.Match[str]) -> Rule:
    text, replacement = found["pattern"], found["replacement"]
    try:
        pattern = patterns.compiled(text)
    except InvalidPatternError as error:
        raise ValueError(f"{text!r} is not a regular expression of RE2: {error}") from error
    for reference in _REFERENCE.finditer(replacement):
        sign = reference[2]
        if sign is not None and not sign.isdecimal():
            raise ValueError(f"{replacement!r} has a $ that refers to nothing: write \\$")
        if sign not in (None, "0") and not pattern.groups:
            raise ValueError(f"{replacement!r} refers to a group, but {text!r} has no groups")
    return Rule(pattern, replacement, found["case"])


def _expanded(replacement: str, match: Any) -> str:
    """Return a replacement with the groups that it refers to (java.util.regex.Matcher)."""

    def part(reference: re.Match[str]) -> str:
        escaped, sign, digits = reference.groups()
        if sign is None:
            return str(escaped)
        number, count = int(sign), len(match.groups())
        if number > count:
            # Kafka takes the reference to a group that does not exist literally.
            return reference[0]
        used = 0
        while used < len(digits) and 10 * number + int(digits[used]) <= count:
            number = 10 * number + int(digits[used])
            used += 1
        return (match[number] or "") + digits[used:]

    return _REFERENCE.sub(part, replacement)
