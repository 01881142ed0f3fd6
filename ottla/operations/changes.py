"""A change to a cluster, as the audit log stores it, and the confirmation that some need."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.base.errors import ConfigError

MASKED = "******"
"""The text of a sensitive value."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change that has been made.

    The action is a noun and a verb, such as "topic.create". The resource is the name of the entity,
    such as "orders" or "orders-0". The values before and after are only those that differ, as
    text. A sensitive value is "******".
    """

    cluster: str
    action: str
    resource: str
    before: Mapping[str, str] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def require_confirmation(expected: str, confirmation: str, *, verb: str, kind: str) -> None:
    """Raise ConfigError unless the typed text is the expected one."""
    if confirmation != expected:
        raise ConfigError(
            f"To {verb}, type {kind} {expected!r} as the confirmation; {confirmation!r} differs."
        )
