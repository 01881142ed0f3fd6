"""Deletions of ACLs, users and quotas in a running cluster."""

import pytest

from ottla.base.errors import ConfigError
from ottla.console.model.acls_users_quotas import (
    delete_acl,
    delete_credential,
)
from ottla.operations.survey.connections import ClusterConnection, ClusterSettings
from tests.unit.console.model.test_acls_users_quotas import acl

ANN = acl("read")


def test_deletions_need_the_typed_name() -> None:
    """Another confirmation is refused before any broker is contacted."""
    connection = ClusterConnection(ClusterSettings("dead", "127.0.0.1:1"))
    with pytest.raises(ConfigError, match=r"type its principal 'User:ann' .* 'User:an' differs"):
        delete_acl(connection, ANN, confirmation="User:an")
    with pytest.raises(ConfigError, match="type the user's name 'ann'"):
        delete_credential(connection, "ann", "SCRAM-SHA-512", confirmation="")
    connection.close()
