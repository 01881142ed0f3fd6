"""All quotas that are set: finds the one that limits a client, and those that match a filter. Pure.

Eight kinds of entities can limit a client; for each kind of quota, the most specific one that has
it applies. Follows kafka.server.ClientQuotaManager (precedence) and ClientQuotasImage (filters).
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from ottla.base.errors import ApiError, ErrorCode
from ottla.server.quotas.entities import CLIENT_ID, IP, USER, Entity, Name, Values


class Match(IntEnum):
    """The type of a match in a filter, by the codes of DescribeClientQuotas."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


class Component(NamedTuple):
    """The condition of a filter on one type of entity."""

    kind: str
    match: int
    name: str | None


class Applied(NamedTuple):
    """A limit and who shares it: all clients of `user`, all users of `client_id`, or the two."""

    limit: float
    user: str
    client_id: str


class QuotaBook:
    """The quotas by entity."""

    def __init__(self) -> None:
        self._values: dict[Entity, Values] = {}

    def __bool__(self) -> bool:
        return bool(self._values)

    def set(self, entity: Entity, values: Values) -> bool:
        """Replace an entity's quotas (none if `values` is empty); return True if they changed."""
        if self._values.get(entity, {}) == values:
            return False
        if values:
            self._values[entity] = values
        else:
            del self._values[entity]
        return True

    def clear(self) -> None:
        """Remove all quotas."""
        self._values.clear()

    def limits_clients(self) -> bool:
        """Return True if any client can be limited, except by its address."""
        return any(entity.ip == "" for entity in self._values)

    def applied(self, key: str, user: str, client_id: str) -> Applied | None:
        """Return the limit of a client and the clients that share it; None if no quota applies."""
        for entity, shared_user, shared_client_id in _levels(user, client_id):
            limit = self._values.get(entity, {}).get(key)
            if limit is not None:
                return Applied(limit, shared_user, shared_client_id)
        return None

    def of_ip(self, key: str, ip: str) -> float | None:
        """Return the limit of an address."""
        if not self._values:
            return None
        for name in (ip, None):
            limit = self._values.get(Entity(ip=name), {}).get(key)
            if limit is not None:
                return limit
        return None

    def find(
        self, components: Sequence[Component], *, strict: bool
    ) -> Iterator[tuple[Entity, Values]]:
        """Return the quotas that match a filter; `strict` excludes entities of further types.

        Raises ApiError INVALID_REQUEST or UNSUPPORTED_VERSION if the filter is invalid.
        """
        conditions = _checked(components)
        return (
            (entity, values)
            for entity, values in self._values.items()
            if _matches(entity.names(), conditions, strict)
        )


def _levels(user: str, client_id: str) -> Iterator[tuple[Entity, str, str]]:
    """Yield the entities that can limit a client, the most specific first, and who shares them."""
    if client_id:
        yield Entity(user, client_id), user, client_id
        yield Entity(user, None), user, client_id
    yield Entity(user), user, ""
    if client_id:
        yield Entity(None, client_id), user, client_id
        yield Entity(None, None), user, client_id
    yield Entity(None), user, ""
    if client_id:
        yield Entity(client_id=client_id), "", client_id
        yield Entity(client_id=None), "", client_id


# By type: the exact name, or that any name matches.
_Wanted = dict[str, tuple[Name, bool]]


def _checked(components: Sequence[Component]) -> _Wanted:
    conditions: _Wanted = {}
    for kind, match, name in components:
        if not kind:
            raise _invalid("A component of the filter names no type.")
        if kind in conditions:
            raise _invalid(f"The filter names the type {kind} more than once.")
        if kind not in (USER, CLIENT_ID, IP):
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"There are no quotas of type {kind}.")
        if match not in list(Match):
            raise _invalid(f"Unknown match type {match}.")
        if (name is not None) != (match == Match.EXACT):
            raise _invalid("An exact match needs a name; any other match must have no name.")
        conditions[kind] = name, match == Match.ANY
    if IP in conditions and len(conditions) > 1:
        raise _invalid("A filter of ip cannot be combined with user or client-id.")
    return conditions


def _matches(names: dict[str, Name], conditions: _Wanted, strict: bool) -> bool:
    if strict and len(names) != len(conditions):
        return False
    return all(
        kind in names and (is_any or names[kind] == name)
        for kind, (name, is_any) in conditions.items()
    )


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)
