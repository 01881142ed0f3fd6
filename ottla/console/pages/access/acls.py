"""The ACLs and SCRAM users of a cluster."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.console.accounts.roles import Role
from ottla.console.fields import Fields
from ottla.console.model.acls_users_quotas import (
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RESOURCE_TYPES,
    Acl,
    create_acl,
    delete_acl,
    delete_credential,
    last_allowing,
    list_acls,
    list_users,
    read_support,
    set_password,
)
from ottla.console.page import Action, Done, Page, View
from ottla.console.pages.access.acl_templates import TEMPLATES, add_template, show_template

# The most used ones first.
_OPERATIONS = (*OPERATIONS[1:], OPERATIONS[0])
_PERMISSIONS = PERMISSIONS[::-1]
_MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256")
_FIELDS = (
    "resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission",
)  # fmt: skip


def show(view: View) -> Mapping[str, Any]:
    """Return the ACLs and users, as far as the cluster has them."""
    support = read_support(view.cluster)
    acls, reason = [], ""
    if support.acls:
        try:
            acls = list_acls(view.cluster)
        except ApiError as error:
            if error.code is not ErrorCode.SECURITY_DISABLED:
                raise
            reason = str(error)
    text = view.query.text("q").lower()
    return {
        "support": support,
        "acls": [acl for acl in acls if text in " ".join(map(str, _values(acl))).lower()],
        "last_acls": last_allowing(acls),
        "fields_of": asdict,
        "reason": reason,
        "users": list_users(view.cluster) if support.users else [],
        "q": view.query.text("q"),
        "resources": RESOURCE_TYPES,
        "patterns": PATTERN_TYPES,
        "operations": _OPERATIONS,
        "permissions": _PERMISSIONS,
        "mechanisms": _MECHANISMS,
        "templates": TEMPLATES,
        "template_rows": [],
    }


def add(view: View) -> Done:
    """Create an ACL."""
    return Done(view.say("The ACL is created."), change=create_acl(view.cluster, _acl(view.form)))


def remove(view: View) -> Done:
    """Delete an ACL, with its principal as the confirmation."""
    confirmation = view.form.text("confirmation")
    change = delete_acl(view.cluster, _acl(view.form), confirmation=confirmation)
    return Done(view.say("The ACL is deleted."), change=change)


def save_user(view: View) -> Done:
    """Create a SCRAM user, or change a password."""
    user, mechanism = view.form.required("user"), view.form.required("mechanism")
    if mechanism not in _MECHANISMS:
        raise ConfigError(f"unknown mechanism {mechanism!r}: use {', '.join(_MECHANISMS)}")
    password = view.form.get("password", "")
    if not password:
        raise ConfigError("field 'password' is empty: fill it in")
    iterations = view.form.integer("iterations", 4096, least=4096)
    change = set_password(view.cluster, user, password, mechanism=mechanism, iterations=iterations)
    return Done(view.say("The password of {name} is set.", name=user), change=change)


def remove_user(view: View) -> Done:
    """Delete one mechanism of a SCRAM user, with the user's name as the confirmation."""
    user, mechanism = view.form.required("user"), view.form.required("mechanism")
    confirmation = view.form.text("confirmation")
    change = delete_credential(view.cluster, user, mechanism, confirmation=confirmation)
    return Done(view.say("The credential of {name} is deleted.", name=user), change=change)


def _acl(form: Fields) -> Acl:
    values = {name: form.text(name) for name in _FIELDS}
    if values["resource_type"] == "cluster":
        values["resource_name"] = values["resource_name"] or "kafka-cluster"
    for name, value in values.items():
        if not value:
            raise ConfigError(f"field {name!r} is empty: fill it in")
    return Acl(**values)


def _values(acl: Acl) -> tuple[str, ...]:
    return tuple(getattr(acl, name) for name in _FIELDS)


PAGES = (
    Page(
        "/acls",
        "acls.html",
        show,
        "acls",
        actions={
            "add-acl": Action(add, "acl.create", "principal", Role.ADMIN),
            "show-template": Action(show_template, role=Role.ADMIN, is_preview=True),
            "add-template": Action(add_template, "acl.create", "principal", Role.ADMIN),
            "delete-acl": Action(remove, "acl.delete", "principal", Role.ADMIN),
            "save-user": Action(save_user, "user.set-password", "user", Role.ADMIN),
            "delete-user": Action(remove_user, "user.delete-credential", "user", Role.ADMIN),
        },
    ),
)
