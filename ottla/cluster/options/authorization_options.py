"""The options of the authorizer, by the names of Kafka's AclAuthorizer. Pure."""

from typing import TYPE_CHECKING

from ottla.base.errors import ConfigError
from ottla.base.loading import deferred_module
from ottla.base.options import OptionType, Scope, Snapshot
from ottla.cluster.options.option_rows import Rows

if TYPE_CHECKING:
    from ottla.security import authorization
else:
    # Few brokers have an authorizer.
    authorization = deferred_module("ottla.security.authorization")

AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
_AUTHORIZERS = (
    AUTHORIZER,
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.auth.SimpleAclAuthorizer",
)
"""Kafka's own authorizers since 0.9, which decide by the same rules."""

_CLASS = "authorizer.class.name"
_SUPER_USERS = "super.users"
_EVERYONE = "allow.everyone.if.no.acl.found"
_broker = Rows(Scope.BROKER, dynamic=False).row


def _reason(name: str) -> str | None:
    if name in ("", *_AUTHORIZERS):
        return None
    return (
        f"Ottla runs no classes of Java; write {AUTHORIZER} for its own authorizer, which stores and "
        "applies access control lists as that class does"
    )


ROWS = (
    _broker(
        _CLASS,
        OptionType.STRING,
        "",
        f"The authorizer: {AUTHORIZER}, or Kafka's names of the same rules before and after it "
        "(SimpleAclAuthorizer, StandardAuthorizer); or none (empty).",
        check=_reason,
    ),
    _broker(
        _SUPER_USERS,
        OptionType.STRING,
        "",
        "The principals that may do everything, such as User:admin;User:CN=broker. Separated by "
        "semicolons.",
    ),
    _broker(
        _EVERYONE,
        OptionType.BOOLEAN,
        False,
        "Whether everyone may use a resource that no access control list concerns.",
    ),
)


def rules_of(options: Snapshot) -> "authorization.Rules | None":
    """Return the rules of the authorizer, None without one; raises ConfigError."""
    if not options.text(_CLASS):
        _refuse_unused(options)
        return None
    text = options.text(_SUPER_USERS)
    try:
        return authorization.Rules.parse(text, allows_if_no_acl=options.boolean(_EVERYONE))
    except ValueError as error:
        raise ConfigError(
            f"Invalid value {text} for configuration {_SUPER_USERS}: {error}"
        ) from error


def _refuse_unused(options: Snapshot) -> None:
    """Raise ConfigError for rules without an authorizer, unless the file disables that by name."""
    if _CLASS in options.explicit:
        return
    for name in (_SUPER_USERS, _EVERYONE):
        if options[name] and name in options.explicit:
            raise ConfigError(
                f"The security option {name} would have no effect: without {_CLASS}, everyone may do "
                f"everything. Set {_CLASS}={AUTHORIZER}, or remove {name}."
            )
