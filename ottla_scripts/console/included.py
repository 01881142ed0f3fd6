"""The topics of `--include`: names that match a regular expression.

librdkafka's expressions follow POSIX, without `(?i)`, and also match internal topics. So
names are looked up here: at the start, and then as often as a Java client refreshes metadata.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence

from ottla.base.errors import OttlaError
from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from ottla.client.security.options import security_of
from ottla_scripts.exits import UsageError
from ottla_scripts.printing import err

_PAUSE_S = 0.1
# As in (?i), which is allowed only at the start of an expression.
_FLAGS = re.compile(r"\(\?[a-zA-Z]+\)")
# metadata.max.age.ms
_REFRESH_S = 300.0


def without_blacklist(command_line: Sequence[str]) -> list[str]:
    """Replace `--blacklist` of Apache Kafka 1.1 and before by an --include of all other topics."""
    words = list(command_line)
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name not in ("--blacklist", "-blacklist") or not (equals or words[at + 1 :]):
            continue
        others = _others(value if equals else words[at + 1])
        err(f"Option --blacklist is from an earlier version; use --include '{others}' instead.")
        return [*words[:at], "--include", others, *words[at + (1 if equals else 2) :]]
    return words


def _others(expression: str) -> str:
    """Return an expression for the names that do not match; a comma is an alternative."""
    expression = expression.replace(",", "|").replace(" ", "").strip("\"'")
    flags = _FLAGS.match(expression)
    start = flags.end() if flags else 0
    return f"{expression[:start]}(?!(?:{expression[start:]})$).*"


class IncludedTopics:
    """The names that match; UsageError if the expression is wrong."""

    def __init__(self, expression: str, bootstrap: str, properties: Mapping[str, str]) -> None:
        try:
            self._pattern = re.compile(expression)
        except re.error as error:
            raise UsageError(
                f"--include '{expression}' is not a regular expression: {error}"
            ) from error
        self._bootstrap, self._security = bootstrap, security_of(properties)
        self._client_id = properties["client.id"]
        self._excludes_internal = properties.get("exclude.internal.topics", "true") != "false"
        self.next_look_up = 0.0
        """The time of the next look-up, as time.monotonic returns it."""
        self.names: list[str] = []

    def wait(self, goes_on: Callable[[], bool]) -> list[str]:
        """Look the names up until there is one, or until `goes_on` returns False."""
        while not self._look_up() and goes_on():
            time.sleep(_PAUSE_S)
        return self.names

    def has_changed(self) -> bool:
        """Look the names up if they are old; return True if there are others now."""
        if time.monotonic() < self.next_look_up:
            return False
        former = self.names
        try:
            return self._look_up() not in ([], former)
        except OttlaError:
            # The consumer itself reports a cluster that cannot be reached.
            self.next_look_up = time.monotonic() + _REFRESH_S
            return False

    def _look_up(self) -> list[str]:
        with Brokers(self._bootstrap, client_id=self._client_id, security=self._security) as all_:
            listed = all_.retry(lambda: topics.list_topics(all_))
        self.names = sorted(
            topic.name
            for topic in listed
            if not (topic.is_internal and self._excludes_internal)
            and self._pattern.fullmatch(topic.name)
        )
        self.next_look_up = time.monotonic() + _REFRESH_S
        return self.names
