"""The client quotas of a cluster."""

from collections.abc import Mapping
from typing import Any

from ottla.base.errors import ConfigError
from ottla.console.accounts.roles import Role
from ottla.console.fields import Fields
from ottla.console.model.acls_users_quotas import alter_quota, list_quotas, read_support
from ottla.console.page import Action, Done, Page, View

_KINDS = ("user", "client-id", "ip")
LIMITS = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
)
_DEFAULT = "(default)"


def show(view: View) -> Mapping[str, Any]:
    """Return the limits of all entities."""
    support = read_support(view.cluster)
    return {
        "support": support,
        "quotas": list_quotas(view.cluster) if support.quotas else [],
        "kinds": _KINDS,
        "limits": LIMITS,
        "default": _DEFAULT,
    }


def save(view: View) -> Done:
    """Set the limits that are filled in, and remove those that are empty."""
    limits = {name: _limit(view.form, name) for name in LIMITS if name in view.form}
    change = alter_quota(view.cluster, _entity(view.form), limits)
    return Done(view.say("The quota is saved."), change=change)


def remove(view: View) -> Done:
    """Remove all limits of an entity."""
    names = view.form.text("names").split(",")
    limits: dict[str, float | None] = dict.fromkeys(filter(None, names))
    change = alter_quota(view.cluster, _entity(view.form), limits)
    return Done(view.say("The quota is deleted."), change=change)


def _entity(form: Fields) -> dict[str, str | None]:
    """Return the parts of an entity; the word `(default)` is Kafka's default entity."""
    entity = {
        kind: None if form.text(kind) == _DEFAULT else form.text(kind)
        for kind in _KINDS
        if form.text(kind)
    }
    if not entity:
        raise ConfigError("a quota needs a user, a client id or an IP address")
    if "ip" in entity and len(entity) > 1:
        raise ConfigError("a quota is for an IP address, or for users and client ids")
    return entity


def _limit(form: Fields, name: str) -> float | None:
    text = form.text(name)
    if not text:
        return None
    try:
        limit = float(text)
    except ValueError:
        raise ConfigError(f"limit {name!r} is {text!r}: a number is needed") from None
    if not 0 < limit < float("inf"):
        raise ConfigError(f"limit {name!r} is {text}: a positive number is needed")
    return limit


PAGES = (
    Page(
        "/quotas",
        "quotas.html",
        show,
        "quotas",
        actions={
            "save": Action(save, "quota.alter", role=Role.ADMIN),
            "delete": Action(remove, "quota.alter", role=Role.ADMIN),
        },
    ),
)
