"""A change to a cluster, as the audit log stores it, and the confirmation that some need."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.base.errors import ConfigError

MASKED = "******"
"""The text of a sensitive value."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change that has been made.

    `action` is `noun.verb`, such as "topic.create"; `resource` names the entity, such as "orders"
    or "orders-0". `before` and `after` contain only the values that differ, as text; a sensitive
    value is "******".
    """

    cluster: str
    action: str
    resource: str
    before: Mapping[str, str] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def require_confirmation(expected: str, confirmation: str, *, verb: str, kind: str) -> None:
    """Raise ConfigError unless the typed text is the expected one, a `kind` such as "its name"."""
    if confirmation != expected:
        raise ConfigError(
            f"To {verb}, type {kind} {expected!r} as the confirmation; {confirmation!r} differs."
        )
