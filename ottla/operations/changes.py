"""A change to a cluster, as the audit log stores it, and the confirmation that some need."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ottla.base.errors import ApiError, ConfigError, ErrorCode, OttlaError

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

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


@dataclass(frozen=True, slots=True)
class PartlyDone(Generic[K]):
    """The changes of an operation on several entities, and the errors of the others."""

    changes: dict[K, Change]
    errors: dict[K, ApiError]


def change_each(keys: Iterable[K], change: Callable[[K], Change]) -> PartlyDone[K]:
    """Change entities one after the other; an ApiError concerns only its entity."""
    done: PartlyDone[K] = PartlyDone({}, {})
    for key in keys:
        try:
            done.changes[key] = change(key)
        except ApiError as error:
            done.errors[key] = error
    return done


_DENIALS = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)


def if_allowed(read: Callable[[], T]) -> T | None:
    """Return the values that a change concerns, or None if the user may not read them.

    A user who may change a resource and not describe it can still change it.
    """
    try:
        return read()
    except ApiError as error:
        if error.code not in _DENIALS:
            raise
        return None


def if_possible(read: Callable[[], T]) -> T | None:
    """Return values that are read after a change, or None: an error would hide the change."""
    try:
        return read()
    except OttlaError:
        return None


def require_confirmation(expected: str, confirmation: str, *, verb: str, kind: str) -> None:
    """Raise ConfigError unless the typed text is the expected one."""
    if confirmation != expected:
        raise ConfigError(
            f"To {verb}, type {kind} {expected!r} as the confirmation; {confirmation!r} differs."
        )
