"""How brokers log in to each other: by the secret of the cluster, or as a user of SCRAM. Pure.

With SCRAM all brokers have the same user, because the login proves that a peer is a broker, and not
which one.

Not done: GSSAPI, PLAIN and OAUTHBEARER between brokers; a user for each broker; sessions that end
(connections.max.reauth.ms); a change between OTTLA-BROKER and SCRAM while brokers run.
"""

from collections.abc import Collection
from typing import NamedTuple

from ottla.base.errors import ConfigError
from ottla.base.options import Snapshot
from ottla.cluster.options.security.listener_values import (
    BETWEEN_BROKERS,
    ListenerValues,
    Named,
)
from ottla.security import jaas
from ottla.security.broker_proof import MECHANISM as BY_SECRET

_PROOF = "inter.broker.authentication"
_MODULE = "ScramLoginModule"
_EXAMPLE = (
    f'org.apache.kafka.common.security.scram.{_MODULE} required username="broker" password="...";'
)


class BrokerLogin(NamedTuple):
    """The user as which the brokers log in to each other."""

    mechanism: str
    user: str
    password: str


def login_of(
    options: Snapshot, listener: Named, mechanisms: Collection[str], limited: Collection[str]
) -> BrokerLogin | None:
    """Return the login of SCRAM on the listener for brokers; None if they use the secret.

    `mechanisms` are the listener's, and `limited` those whose sessions end. Raises
    ConfigError if an option is wrong or missing.
    """
    mechanism = options.text(BETWEEN_BROKERS)
    if mechanism == BY_SECRET:
        return None
    if not listener.protocol.startswith("SASL"):
        raise ConfigError(
            f"{BETWEEN_BROKERS}={mechanism} would have no effect: the listener {listener.name} for brokers has the "
            f"protocol {listener.protocol}. Give it SASL_SSL in listener.security.protocol.map, or "
            f"remove {BETWEEN_BROKERS}"
        )
    if _PROOF in options.explicit:
        raise ConfigError(
            f"{_PROOF}={options.text(_PROOF)} contradicts {BETWEEN_BROKERS}={mechanism}: brokers log in by one "
            "of them. Remove the other one"
        )
    values = ListenerValues(options, listener)
    if mechanism not in mechanisms:
        raise values.refusal(
            "sasl.enabled.mechanisms",
            f"lacks {mechanism} of {BETWEEN_BROKERS}: add it, because brokers log in so",
        )
    if mechanism in limited:
        own = f"{values.prefix}{mechanism.lower()}.connections.max.reauth.ms"
        raise values.refusal(
            "connections.max.reauth.ms",
            f"ends sessions of {mechanism}, which brokers do not renew: set {own}=0",
        )
    return _login(values, mechanism)


def _login(values: ListenerValues, mechanism: str) -> BrokerLogin:
    option = f"{mechanism.lower()}.sasl.jaas.config"
    name, text = values.prefix + option, values.own(option)
    if text is None:
        raise values.refusal(name, f"is not set: set it to {_EXAMPLE}")
    try:
        module = jaas.parse_module(text)
    except ValueError as error:
        raise values.refusal(name, f"cannot be read: {error}") from error
    user, password = module.options.get("username", ""), module.options.get("password", "")
    if not module.name.endswith(f".{_MODULE}") or not user or not password:
        raise values.refusal(
            name, f"has no {_MODULE} with username and password: set it to {_EXAMPLE}"
        )
    if module.options.get("tokenauth", "").lower() == "true":
        raise values.refusal(name, "has a delegation token: brokers need a user")
    return BrokerLogin(mechanism, user, password)
