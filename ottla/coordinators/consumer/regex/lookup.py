"""A running lookup of regular expressions: the topics that match each of them.

Follows Kafka's TopicRegexResolver, in slices: there may be ten thousand topics.
"""

import logging
from collections.abc import Callable, Iterable

from ottla.base.errors import ApiError
from ottla.coordinators.consumer.regex.patterns import SubscriptionPattern
from ottla.coordinators.consumer.state import ResolvedRegex
from ottla.coordinators.consumer.transition import Topics

_log = logging.getLogger(__name__)

_NAMES_AT_ONCE = 64


class Lookup:
    """The names that have not been matched yet, and the matches so far; it began at
    `started_ms`.

    The result contains only topics for which `may_describe` returns True: as in Kafka, those that
    the member may see whose request began the lookup.
    """

    def __init__(
        self,
        topics: Topics,
        started_ms: int,
        regexes: Iterable[str],
        may_describe: Callable[[str], bool] | None = None,
    ) -> None:
        self._version = topics.version
        self._started_ms = started_ms
        self._may_describe = may_describe
        self._names = list(topics.image.topics)
        self._found: dict[str, set[str]] = {regex: set() for regex in regexes}
        self._patterns = _compiled(self._found)

    @property
    def has_more(self) -> bool:
        """True if names remain."""
        return bool(self._names)

    def look_at_some(self) -> None:
        """Match some of the remaining names."""
        names = self._names[-_NAMES_AT_ONCE:]
        del self._names[-_NAMES_AT_ONCE:]
        may_describe = self._may_describe
        if may_describe is not None:
            names = [name for name in names if may_describe(name)]
        for regex, pattern in self._patterns.items():
            self._found[regex].update(name for name in names if pattern.matches(name))

    def result(self) -> dict[str, ResolvedRegex]:
        """Return the topics that match each expression."""
        return {
            regex: ResolvedRegex(frozenset(names), self._version, self._started_ms)
            for regex, names in self._found.items()
        }


def _compiled(regexes: Iterable[str]) -> dict[str, SubscriptionPattern]:
    patterns = {}
    for regex in regexes:
        try:
            patterns[regex] = SubscriptionPattern(regex)
        except ApiError as error:
            # It was valid when it was stored: another version of RE2 must have accepted it.
            _log.error("regular expression ignored error=%s", error)
    return patterns
