"""Legal names, and the names of an application's internal topics in Kafka Streams."""

import re

from ottla.streams.model.errors import TopologyError

_LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}")

# A user's topic may end with -topic: foreign-key joins are identified by their full names.
_INTERNAL = re.compile(
    r".*-(?:changelog|repartition|subscription-(?:registration|response)-topic"
    r"|KTABLE-FK-JOIN-SUBSCRIPTION-(?:REGISTRATION|RESPONSE)-\d+-topic)"
)


def check_name(name: str, subject: str) -> None:
    """Raise TopologyError if a name is illegal in Kafka (`Named.validate`, `Topic.validate`)."""
    if not isinstance(name, str) or name in (".", "..") or not _LEGAL.fullmatch(name):
        raise TopologyError(
            f"{subject} cannot be named {name!r}: use 1 to 249 ASCII letters, digits, '.', '_' and '-', "
            "other than '.' and '..'"
        )


def already_added(store: str) -> TopologyError:
    """Return the error for a second store with the same name."""
    return TopologyError(
        f"store {store!r} is added already: give the second one another name, or add the same description "
        "object to share one store"
    )


def changelog_name(application_id: str, store: str) -> str:
    """Return the name of the changelog topic of a store."""
    return f"{application_id}-{store}-changelog"


def is_internal(topic: str, application_id: str) -> bool:
    """Return True if the name of a topic is one of an application's internal topics."""
    is_named_so = _INTERNAL.fullmatch(topic.removeprefix(application_id)) is not None
    return topic.startswith(f"{application_id}-") and is_named_so
