"""The role that rights give in a cluster and for a topic."""

import pytest

from ottla.console.accounts.rights import Right, role_in
from ottla.console.accounts.roles import Role

V, E, A = Role.VIEWER, Role.EDITOR, Role.ADMIN
RIGHTS = (Right("live", "orders.*", E), Right("live", "audit", V), Right("test", "", E))


@pytest.mark.parametrize(
    ("cluster", "topic", "role"),
    [
        ("live", "orders", E), ("live", "orders.eu", E), ("live", "my-orders", None),
        ("live", "audit", V), ("live", "payments", None), ("live", None, V),
        ("test", "payments", E), ("test", None, E), ("dev", "orders", None), ("dev", None, None),
        ("", None, V),
    ],
)  # fmt: skip
def test_a_restricted_user_has_the_roles_of_the_entries_only(
    cluster: str, topic: str | None, role: Role | None
) -> None:
    """The pattern is for the whole name; without one, the role is for all of the cluster."""
    assert role_in(V, RIGHTS, cluster, topic) == role
    assert role_in(E, RIGHTS, cluster, topic) == role


def test_admins_and_users_without_entries_are_not_restricted() -> None:
    """Admins could change the entries."""
    assert role_in(A, RIGHTS, "dev", "payments") is A
    for role in (V, E, A):
        assert role_in(role, (), "dev", "payments") is role


def test_a_right_in_all_clusters() -> None:
    """The empty cluster is any."""
    assert role_in(V, [Right("", "logs-.*", E)], "dev", "logs-a") is E
    assert role_in(V, [Right("", "logs-.*", E)], "dev", None) is V
