"""The authorizer: remembered decisions, and the results of changes."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.security.acls import (
    ANY,
    AccessControlEntry,
    AclBinding,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)
from ottla.security.authorization import Requester, Rules
from ottla.security.principal import Principal
from ottla.server.authorization.authorizer import Authorizer
from tests.unit.server.authorization.conftest import TOPIC, Stores, entry

ANN = Requester(Principal("User", "ann"), "10.0.0.1")
READ = AclOperation.READ


async def authorizer_of(stores: Stores) -> Authorizer:
    """Return an authorizer without super users."""
    return Authorizer(Rules(), await stores.store())


async def test_decisions_follow_the_lists(stores: Stores) -> None:
    """A remembered decision is forgotten when a list changes."""
    authorizer = await authorizer_of(stores)
    assert not authorizer.allows(ANN, READ, ResourceType.TOPIC, "t")
    assert not authorizer.allows_any(ANN, READ, ResourceType.TOPIC)
    assert await authorizer.create([AclBinding(TOPIC, entry())]) == [None]
    assert authorizer.allows(ANN, READ, ResourceType.TOPIC, "t")
    assert authorizer.allows_any(ANN, READ, ResourceType.TOPIC)
    await authorizer.delete([ANY])
    assert not authorizer.allows(ANN, READ, ResourceType.TOPIC, "t")


async def test_long_names_are_not_remembered(stores: Stores) -> None:
    """A client that invents names does not fill the memory; the decision is right."""
    authorizer = await authorizer_of(stores)
    prefix = ResourcePattern(ResourceType.TOPIC, "t", PatternType.PREFIXED)
    await authorizer.create([AclBinding(prefix, entry())])
    for number in range(3):
        name = "x" * 300 + str(number)
        assert not authorizer.allows(ANN, READ, ResourceType.TOPIC, name)
        assert authorizer.allows(ANN, READ, ResourceType.TOPIC, "t" + name)
    assert not authorizer._decisions


@pytest.mark.parametrize(
    ("pattern", "principal", "reason"),
    [
        (ResourcePattern(ResourceType.CLUSTER, "other"), "User:a", "only valid name"),
        (ResourcePattern(ResourceType.TOPIC, ""), "User:a", "empty resource name"),
        (ResourcePattern(ResourceType.TOPIC, "a/b"), "User:a", "invalid resource name: a/b"),
        (ResourcePattern(ResourceType.UNKNOWN, "a"), "User:a", "unknown elements"),
        (TOPIC, "ann", "not a principal such as User:ann"),
    ],
)
async def test_entry_that_is_not_valid(
    stores: Stores, pattern: ResourcePattern, principal: str, reason: str
) -> None:
    """It has the error; the other entries of the request are added."""
    authorizer = await authorizer_of(stores)
    errors = await authorizer.create(
        [AclBinding(pattern, entry(principal)), AclBinding(TOPIC, entry())]
    )
    assert errors[0] is not None
    assert errors[0].code is ErrorCode.INVALID_REQUEST
    assert reason in errors[0].message
    assert errors[1] is None
    assert authorizer.store.lists.entries(TOPIC) == {entry()}


async def test_unknown_entries_are_deleted(stores: Stores) -> None:
    """The result has what they did; those that did nothing are deleted silently."""
    authorizer = await authorizer_of(stores)
    doubtful = entry(permission=PermissionType.UNKNOWN)
    nothing = entry("User:ben", AclOperation.UNKNOWN)
    await authorizer.store.update(TOPIC, lambda _: frozenset({doubtful, nothing}))
    (deleted,) = await authorizer.delete([AclBinding(TOPIC)])
    assert deleted == [(AclBinding(TOPIC, entry(permission=PermissionType.DENY)), None)]
    assert authorizer.store.lists.patterns() == []


async def test_entry_without_a_host_is_not_valid(stores: Stores) -> None:
    """It would concern no host, and look like a damaged one in the tree."""
    authorizer = await authorizer_of(stores)
    (error,) = await authorizer.create([AclBinding(TOPIC, entry()._replace(host=""))])
    assert error is not None
    assert (error.code, error.message) == (ErrorCode.INVALID_REQUEST, "Invalid empty host")
    assert authorizer.store.lists.patterns() == []


async def test_deleted_entry_is_reported_by_the_first_filter(stores: Stores) -> None:
    """A filter without matches reports nothing."""
    authorizer = await authorizer_of(stores)
    prefix = ResourcePattern(ResourceType.TOPIC, "t", PatternType.PREFIXED)
    bindings = [AclBinding(TOPIC, entry()), AclBinding(prefix, entry("User:ben"))]
    await authorizer.create(bindings)
    filters = [
        AclBinding(entry=AccessControlEntry(principal="User:cid")),
        AclBinding(ResourcePattern(ResourceType.TOPIC, "t", PatternType.LITERAL)),
        AclBinding(ResourcePattern(ResourceType.TOPIC, "t", PatternType.ANY)),
    ]
    results = await authorizer.delete(filters)
    assert results == [[], [(bindings[0], None)], [(bindings[1], None)]]
    assert authorizer.store.lists.patterns() == []
