"""The options of the authorizer."""

import pytest

from ottla.base.errors import ConfigError
from ottla.cluster.options.authorization_options import AUTHORIZER, rules_of
from ottla.cluster.options.option_tables import parse_broker_settings
from ottla.security.authorization import Rules
from ottla.security.principal import Principal


def rules(**settings: str) -> Rules | None:
    """Return the rules of a configuration with dots as underscores."""
    named = {name.replace("_", "."): text for name, text in settings.items()}
    return rules_of(parse_broker_settings(named).snapshot)


def test_there_is_no_authorizer_by_default() -> None:
    """Super users alone do not configure one."""
    assert rules() is None
    assert rules(super_users="User:a", authorizer_class_name="") is None


@pytest.mark.parametrize("name", ["super.users", "allow.everyone.if.no.acl.found"])
def test_rules_without_an_authorizer_are_refused(name: str) -> None:
    """The administrator believes that there is one; an authorizer that is empty is deliberate."""
    value = "true" if name.startswith("allow") else "User:ann"
    with pytest.raises(ConfigError, match=f"{name} would have no effect.*Set authorizer.class"):
        parse_broker_settings({name: value})
    parse_broker_settings({name: value, "authorizer.class.name": ""})


def test_super_users_are_separated_by_semicolons() -> None:
    """Names of certificates contain commas."""
    configured = rules(
        authorizer_class_name=AUTHORIZER,
        super_users="User:CN=a,O=x; User:b",
        allow_everyone_if_no_acl_found="true",
    )
    super_users = frozenset({Principal("User", "CN=a,O=x"), Principal("User", "b")})
    assert configured == Rules(super_users, allows_if_no_acl=True)


def test_other_classes_are_refused() -> None:
    """A list that is not enforced would be worse than none."""
    with pytest.raises(ConfigError, match=f"write {AUTHORIZER} for its own authorizer"):
        rules(authorizer_class_name="io.example.OtherAuthorizer")


@pytest.mark.parametrize(
    "name",
    [
        "kafka.security.auth.SimpleAclAuthorizer",
        "kafka.security.authorizer.AclAuthorizer",
        "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    ],
)
def test_names_of_kafkas_authorizers_are_understood(name: str) -> None:
    """Files of Apache Kafka before 2.4, up to 3.9, and with KRaft have them."""
    assert rules(authorizer_class_name=name) == Rules(frozenset())


def test_super_user_without_a_type_is_refused() -> None:
    """The error has the option's name and value."""
    with pytest.raises(ConfigError, match=r"Invalid value ann for configuration super\.users"):
        rules(authorizer_class_name=AUTHORIZER, super_users="ann")
