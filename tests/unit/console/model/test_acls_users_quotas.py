"""ACLs whose deletion leaves no other one that allows the same."""

import pytest

from ottla.console.model.acls_users_quotas import (
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RESOURCE_TYPES,
    Acl,
    last_allowing,
)


def acl(
    operation: str,
    name: str = "orders",
    pattern: str = "literal",
    permission: str = "allow",
    principal: str = "User:ann",
) -> Acl:
    return Acl("topic", name, pattern, principal, "*", operation, permission)


ANN = acl("read")


@pytest.mark.parametrize(
    "other",
    [
        acl("read", principal="User:bob"),
        acl("all"),
        acl("read", "*"),
        acl("read", "ord", "prefixed"),
        acl("read", "orders", "prefixed"),
    ],
    ids=str,
)
def test_an_acl_that_another_one_covers_is_not_the_last(other: Acl) -> None:
    """The other one has the same or a wider pattern, and the same operation or all of them."""
    assert ANN not in last_allowing([ANN, other])


@pytest.mark.parametrize(
    "other",
    [
        acl("write"),
        acl("describe"),
        acl("read", "order-lines"),
        acl("read", "orders-eu", "prefixed"),
        acl("read", permission="deny"),
        Acl("group", "orders", "literal", "User:bob", "*", "read", "allow"),
    ],
    ids=str,
)
def test_an_acl_that_no_other_one_covers_is_the_last(other: Acl) -> None:
    """Other operations, resources and permissions allow something else."""
    assert ANN in last_allowing([ANN, other])


def test_operations_allow_others_too() -> None:
    """READ allows DESCRIBE, and not the reverse; a denial is never the last."""
    describe, deny = acl("describe"), acl("read", permission="deny")
    assert last_allowing([ANN, describe, deny]) == {ANN}
    configs = acl("describe-configs")
    assert configs not in last_allowing([configs, acl("alter-configs")])


def test_the_form_offers_the_words_of_the_list() -> None:
    """Each type of resource, pattern, operation and permission of an ACL can be chosen."""
    assert set(RESOURCE_TYPES) == {
        *("topic", "group", "cluster", "transactional-id", "delegation-token", "user")
    }
    assert set(PATTERN_TYPES) == {"literal", "prefixed"}
    assert {"all", "two-phase-commit", "describe-configs"} <= set(OPERATIONS)
    assert set(PERMISSIONS) == {"allow", "deny"}
    shown = [acl(operation) for operation in OPERATIONS]
    assert last_allowing(shown) == {acl("all")}
