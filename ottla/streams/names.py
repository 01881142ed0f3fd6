"""Names of the topics that are an application's own, as Kafka Streams gives them."""

import re

# A user's own topic may well end in -topic: foreign-key joins name theirs at length.
_INTERNAL = re.compile(
    r".*-(?:changelog|repartition|subscription-(?:registration|response)-topic"
    r"|KTABLE-FK-JOIN-SUBSCRIPTION-(?:REGISTRATION|RESPONSE)-\d+-topic)"
)


def changelog_name(application_id: str, store: str) -> str:
    """Return the name of a store's changelog."""
    return f"{application_id}-{store}-changelog"


def is_internal(topic: str, application_id: str) -> bool:
    """Tell whether a topic is named as an application's internal ones are."""
    is_named_so = _INTERNAL.fullmatch(topic.removeprefix(application_id)) is not None
    return topic.startswith(f"{application_id}-") and is_named_so
