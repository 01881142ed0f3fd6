"""The names of internal topics of applications, as Apache Kafka's tools recognize them."""

import re

_SUFFIXES = ("-changelog", "-repartition", "-subscription-registration-topic",
             "-subscription-response-topic")  # fmt: skip
_FOREIGN_KEY = re.compile(
    r".+-KTABLE-FK-JOIN-SUBSCRIPTION-(?:REGISTRATION|RESPONSE)-[0-9]+-topic", re.DOTALL
)


def is_internal(name: str, application_id: str) -> bool:
    """Return True if a topic has the name of an internal topic of the application."""
    has_form = name.endswith(_SUFFIXES) or _FOREIGN_KEY.fullmatch(name) is not None
    return name.startswith(f"{application_id}-") and has_form
