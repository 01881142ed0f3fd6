"""The users of the console, their roles, the masking rules, and a user's own account."""

from collections.abc import Mapping
from typing import Any

from ottla.base.errors import ConfigError
from ottla.console.accounts.masking import TARGETS
from ottla.console.accounts.passwords import MIN_LENGTH, one_time_password
from ottla.console.accounts.rights import Right
from ottla.console.accounts.roles import Role, parse_role
from ottla.console.accounts.users import AccountError
from ottla.console.model.messages.masking import MaskingRule
from ottla.console.page import Action, Done, Page, View
from ottla.operations.changes import Change, require_confirmation


def show_users(view: View) -> Mapping[str, Any]:
    """Return the users and the masking rules."""
    return {
        "users": view.console.users.all(),
        "roles": [role.label for role in Role],
        "rules": view.console.masking.all(),
        "targets": TARGETS,
        "rights": view.console.rights.all(),
        "right_roles": [Role.VIEWER.label, Role.EDITOR.label],
    }


def show_account(view: View) -> Mapping[str, Any]:
    """Return the user's own account."""
    user = view.session.user
    asks_old = view.console.users.needs_old_password(user)
    return {"user": user, "min_length": MIN_LENGTH, "asks_old": asks_old}


def create_user(view: View) -> Done:
    """Create a user with a one-time password."""
    name, role = view.form.required("name"), _role(view)
    password = one_time_password()
    view.console.users.create(name, password, role)
    sentence = view.say(
        "User {name} is created with the one-time password {password}", name=name, password=password
    )
    return Done(
        sentence, change=Change("", "console-user.create", name, after={"role": role.label})
    )


def change_role(view: View) -> Done:
    """Give a user another role; its sessions end."""
    name, role = view.form.required("name"), _role(view)
    user = view.console.users.find(name)
    before = {"role": user.role.label} if user else {}
    view.console.users.set_role(name, role)
    view.console.queries.cancel(name)
    view.console.sessions.close_all(name, except_key=view.session.key)
    sentence = view.say("User {name} has the role {role} now.", name=name, role=role.label)
    change = Change("", "console-user.role", name, before, {"role": role.label})
    return Done(sentence, change=change)


def reset_password(view: View) -> Done:
    """Give a user a one-time password; its sessions end."""
    name, password = view.form.required("name"), one_time_password()
    view.console.users.set_password(name, password, must_change=True)
    view.console.sessions.close_all(name, except_key=view.session.key)
    sentence = view.say(
        "The one-time password of {name} is {password}", name=name, password=password
    )
    return Done(sentence, change=Change("", "console-user.reset-password", name))


def delete_user(view: View) -> Done:
    """Delete a user, with the name as the confirmation."""
    name = view.form.required("name")
    if name == view.session.user.name:
        raise AccountError("you cannot delete yourself")
    confirmation = view.form.get("confirmation", "")
    require_confirmation(name, confirmation, verb="delete the user", kind="the name")
    view.console.users.delete(name)
    view.console.queries.cancel(name)
    change = Change("", "console-user.delete", name)
    return Done(view.say("User {name} is deleted.", name=name), change=change)


def change_password(view: View) -> Done:
    """Change the user's own password; other sessions of the user end.

    The one-time password, which the user has just typed, is not required.
    """
    users, name = view.console.users, view.session.user.name
    if users.needs_old_password(view.session.user) and not users.is_password(
        name, view.form.get("old", "")
    ):
        raise AccountError("the current password is wrong")
    if view.form.get("new", "") != view.form.get("again", ""):
        raise AccountError("the new passwords differ")
    view.console.users.set_password(name, view.form.get("new", ""))
    view.console.sessions.close_all(name, except_key=view.session.key)
    change = Change("", "console-user.password", name)
    return Done(view.say("Your password is changed."), "/", change)


def add_rule(view: View) -> Done:
    """Add a masking rule."""
    form = view.form
    rule = MaskingRule(
        form.required("topics"),
        form.text("target", "value"),
        form.text("path"),
        form.text("pattern"),
    )
    view.console.masking.add(rule)
    after = {"target": rule.target, "path": rule.path, "pattern": rule.pattern}
    return Done(
        view.say("The masking rule is added."),
        change=Change("", "mask.add", rule.topics, {}, after),
    )


def delete_rule(view: View) -> Done:
    """Delete a masking rule."""
    number = view.form.integer("rule")
    topics = [stored.rule.topics for stored in view.console.masking.all() if stored.id == number]
    view.console.masking.delete(number)
    change = Change("", "mask.delete", topics[0] if topics else "")
    return Done(view.say("The masking rule is deleted."), change=change)


def add_right(view: View) -> Done:
    """Restrict a user to a cluster and topics, or add to what the user may do."""
    form, user = view.form, view.form.required("name")
    cluster = form.text("right_cluster")
    if cluster:
        view.console.clusters.get(cluster)
    right = Right(cluster, form.text("right_topics"), _role(view))
    view.console.rights.add(user, right)
    view.console.queries.cancel(user)
    after = {"cluster": cluster or "all", "topics": right.topics or "all", "role": right.role.label}
    change = Change("", "right.add", user, {}, after)
    return Done(view.say("The right of {name} is added.", name=user), change=change)


def delete_right(view: View) -> Done:
    """Delete a right; a user without rights has one role everywhere again."""
    stored = view.console.rights.delete(view.form.integer("right"))
    view.console.queries.cancel(stored.user)
    right = stored.right
    before = {"cluster": right.cluster or "all", "topics": right.topics or "all"}
    change = Change("", "right.delete", stored.user, {**before, "role": right.role.label})
    return Done(view.say("The right of {name} is deleted.", name=stored.user), change=change)


def _role(view: View) -> Role:
    try:
        return parse_role(view.form.text("role"))
    except ValueError as error:
        raise ConfigError(str(error)) from None


PAGES = (
    Page(
        "/users",
        "users.html",
        show_users,
        "users",
        actions={
            "create": Action(create_user, "console-user.create", "name", Role.ADMIN),
            "role": Action(change_role, "console-user.role", "name", Role.ADMIN),
            "reset": Action(reset_password, "console-user.reset-password", "name", Role.ADMIN),
            "delete": Action(delete_user, "console-user.delete", "name", Role.ADMIN),
            "add-rule": Action(add_rule, "mask.add", "topics", Role.ADMIN),
            "delete-rule": Action(delete_rule, "mask.delete", "rule", Role.ADMIN),
            "add-right": Action(add_right, "right.add", "name", Role.ADMIN),
            "delete-right": Action(delete_right, "right.delete", "right", Role.ADMIN),
        },
        role=Role.ADMIN,
        is_global=True,
    ),
    Page(
        "/account",
        "account.html",
        show_account,
        actions={
            "password": Action(change_password, "console-user.password", role=Role.VIEWER),
        },
        is_global=True,
    ),
)
