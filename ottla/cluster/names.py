"""Rules for topic names, and which names would share a metric or a folder.

Called wherever a topic is created or named by a client. Follows Kafka's Topic class: a name becomes
a folder, so it cannot contain characters that are special in a file system.
"""

import re
from collections.abc import Iterable, Iterator

from ottla.base.errors import ApiError, ErrorCode

NAME_LENGTH_MAX = 249
GROUP_OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
SHARE_GROUP_STATE_TOPIC = "__share_group_state"
INTERNAL_TOPICS = frozenset((GROUP_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC))

_SHOWN = 300
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def validate_topic_name(name: str) -> None:
    """Raise ApiError INVALID_TOPIC_EXCEPTION, with the reason, unless the topic name is valid."""
    reason = _refuse(name)
    if reason:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def _refuse(name: str) -> str:
    """Return the reason in the words of Kafka, which its users know; none for a valid name."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    shown = name[:_SHOWN]
    if len(name) > NAME_LENGTH_MAX:
        return f"the length of '{shown}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    # fullmatch, because `$` would accept a newline at the end.
    if not _LEGAL.fullmatch(name):
        return (
            f"'{shown}' contains one or more characters other than ASCII alphanumerics, '.', '_' "
            "and '-'"
        )
    return ""


def is_internal(name: str) -> bool:
    """Return True if this is a topic in which the brokers store their own state."""
    return name in INTERNAL_TOPICS


class TopicNames:
    """The names of topics that are in use; a search takes no longer if there are more of them."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = set(names)
        # By the name with '_' for '.', and in lower case; none before the first search for it.
        self._folded: dict[str, str] | None = None
        self._in_lower_case: dict[str, str] | None = None

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def add(self, name: str) -> None:
        """Add the name of a new topic."""
        self._names.add(name)
        if self._folded is not None:
            self._folded[_folded(name)] = name
        if self._in_lower_case is not None:
            self._in_lower_case[name.lower()] = name

    def collision(self, name: str) -> str | None:
        """Return the topic that differs from `name` only in '.' against '_'; None without one.

        Both have the same metric names, so Kafka rejects the second one.
        """
        if "." not in name and "_" not in name:
            return None
        if self._folded is None:
            self._folded = {_folded(one): one for one in self._names}
        other = self._folded.get(_folded(name))
        return None if other == name else other

    def same_folder(self, name: str) -> str | None:
        """Return the topic that differs from `name` only in case; None without one.

        On a disk that ignores case, the partitions of both would be in the same folders.
        """
        if self._in_lower_case is None:
            self._in_lower_case = {one.lower(): one for one in self._names}
        other = self._in_lower_case.get(name.lower())
        return None if other == name else other


def same_folders(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of topics that would be in the same folders on a disk that ignores case."""
    former = TopicNames(())
    for name in sorted(names):
        other = former.same_folder(name)
        if other is not None:
            yield other, name
        former.add(name)


def _folded(name: str) -> str:
    return name.replace(".", "_")
