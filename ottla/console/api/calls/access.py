"""Operations on ACLs, SCRAM users and quotas."""

from ottla.console.accounts.roles import Role
from ottla.console.api.operations import CLUSTER_PATH, Operation
from ottla.console.model import acls_users_quotas as model

_ACLS = f"{CLUSTER_PATH}/acls"
_USERS = f"{CLUSTER_PATH}/users"
_QUOTAS = f"{CLUSTER_PATH}/quotas"

OPERATIONS = (
    Operation("GET", f"{CLUSTER_PATH}/access", Role.VIEWER, model.read_support, "access"),
    Operation("GET", _ACLS, Role.ADMIN, model.list_acls, "access"),
    Operation("POST", _ACLS, Role.ADMIN, model.create_acl, "access"),
    Operation("POST", f"{_ACLS}/delete", Role.ADMIN, model.delete_acl, "access"),
    Operation("GET", _USERS, Role.ADMIN, model.list_users, "access"),
    Operation("PUT", f"{_USERS}/{{user}}", Role.ADMIN, model.set_password, "access"),
    Operation("DELETE", f"{_USERS}/{{user}}", Role.ADMIN, model.delete_credential, "access"),
    Operation("GET", _QUOTAS, Role.ADMIN, model.list_quotas, "access"),
    Operation("PATCH", _QUOTAS, Role.ADMIN, model.alter_quota, "access"),
)
