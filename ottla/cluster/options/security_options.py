"""The options of listeners with SASL, and what they mean for each listener. Pure.

As in Kafka, an option can be set for one listener: `listener.name.NAME.OPTION`. `security` has the
options of TLS, and refuses names that have no effect. The users of PLAIN are in the login
module of `listener.name.NAME.plain.sasl.jaas.config`, or in a file with hashes; the users of SCRAM
are in the coordination tree.

`connections.max.reauth.ms` can also be set for one mechanism of a listener, with the mechanism in
small letters before it.

Not done: GSSAPI; a JAAS file in place of the option.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.errors import ConfigError
from ottla.base.loading import deferred_module
from ottla.base.options import OptionType, Scope, Snapshot, is_digits
from ottla.cluster.options.option_rows import Rows, inert
from ottla.cluster.options.security import tls_options
from ottla.cluster.options.security.listener_values import (
    BETWEEN_BROKERS,
    ListenerValues,
    Named,
)
from ottla.net.tls import PEM
from ottla.security.broker_proof import MECHANISM as BY_SECRET
from ottla.security.exchanges import MECHANISMS, OAUTHBEARER, PLAIN

if TYPE_CHECKING:
    from ottla.net.tls import files
    from ottla.security import jaas, principal_rules
else:
    # Few listeners have TLS, or users or rules in their options.
    files = deferred_module("ottla.net.tls.files")
    jaas = deferred_module("ottla.security.jaas")
    principal_rules = deferred_module("ottla.security.principal_rules")

_broker = Rows(Scope.BROKER, dynamic=False).row
STRING = OptionType.STRING
_JAAS = "sasl.jaas.config"
_SESSION = "connections.max.reauth.ms"
_KEYS = "sasl.oauthbearer.jwks.endpoint.url"
_HANDLER = "sasl.server.callback.handler.class"
_UNSECURED_CHECKS = "unsecuredValidator"
_SKEW = "unsecuredValidatorAllowableClockSkewMs"
_OAUTH_EXAMPLE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
_TOKEN_KEY, _TOKEN_KEY_BEFORE = "delegation.token.secret.key", "delegation.token.master.key"
_USER = "user_"
_USERS = "sasl.plain.users.file"
_BEARER = "sasl.oauthbearer."
_NAMES = "ssl.principal.mapping.rules"
_AS_IS = "DEFAULT"
_BUILDER = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
_SESSION_ROW = _broker(
    _SESSION,
    OptionType.LONG,
    0,
    "How long a client with SASL may use its connection before it authenticates again, in "
    "milliseconds. The connection is closed if a request arrives later. 0 is no limit.",
)


def _reason(name: str) -> str | None:
    if name in ("", _BUILDER):
        return None
    return f"Ottla runs no classes of Java; write {_NAMES} for rules from certificates to users"


ROWS = (
    _broker(
        "sasl.enabled.mechanisms",
        OptionType.LIST,
        [],
        "The SASL mechanisms of listeners with SASL. Kafka: GSSAPI.",
        choices=MECHANISMS,
    ),
    _broker(
        "connection.failed.authentication.delay.ms",
        OptionType.INT,
        100,
        "How long the broker waits before it responds and closes a connection whose client has failed "
        "to authenticate. After several failures, also the first delay before the next password "
        "is checked; 0 disables both.",
        minimum=0,
    ),
    _SESSION_ROW,
    _broker(
        "sasl.server.max.receive.size",
        OptionType.INT,
        65_536,
        "The largest request of a connection that is not authenticated yet, in bytes. Kafka: 524288.",
        minimum=1,
    ),
    _broker(
        _USERS,
        STRING,
        "",
        "Ottla's own: a file with the users of PLAIN and salted hashes of their passwords, which "
        "`ottla security user --file` writes; in place of plain.sasl.jaas.config. It is read again "
        "after a change.",
    ),
    _broker(
        _KEYS,
        STRING,
        None,
        "The public keys of those that issue tokens of OAUTHBEARER: the address of a JWKS document, "
        "with https://, http:// or file:///. A file is read again after a change.",
    ),
    _broker(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        OptionType.LONG,
        3_600_000,
        "How often public keys are fetched over HTTP, in milliseconds. They are also fetched soon after "
        "a token with an unknown key.",
        minimum=1,
    ),
    _broker(
        "sasl.oauthbearer.expected.audience",
        OptionType.LIST,
        [],
        "The audiences of tokens that are accepted. Without one, tokens for an audience are refused.",
    ),
    _broker(
        "sasl.oauthbearer.expected.issuer",
        STRING,
        None,
        "The issuer of tokens that are accepted. Needed with sasl.oauthbearer.jwks.endpoint.url.",
    ),
    _broker(
        "sasl.oauthbearer.clock.skew.seconds",
        OptionType.INT,
        30,
        "How much the clock of the issuer of a token may differ from the broker's, in seconds.",
        minimum=0,
    ),
    _broker(
        "sasl.oauthbearer.sub.claim.name",
        STRING,
        "sub",
        "The claim of a token that has the name of the user.",
    ),
    _broker(
        _TOKEN_KEY,
        OptionType.PASSWORD,
        None,
        "The key of delegation tokens, the same on every broker. Without it, no tokens are issued.",
        sensitive=True,
    ),
    _broker(
        _TOKEN_KEY_BEFORE,
        OptionType.PASSWORD,
        None,
        "The former name of delegation.token.secret.key, for brokers that do not have that option.",
        sensitive=True,
    ),
    _broker(
        "delegation.token.max.lifetime.ms",
        OptionType.LONG,
        604_800_000,
        "How long a delegation token can be renewed, in milliseconds.",
        minimum=1,
    ),
    _broker(
        "delegation.token.expiry.time.ms",
        OptionType.LONG,
        86_400_000,
        "How long a delegation token can be used before it must be renewed, in milliseconds.",
        minimum=1,
    ),
    _broker(
        "delegation.token.expiry.check.interval.ms",
        OptionType.LONG,
        3_600_000,
        "How often expired delegation tokens are removed, in milliseconds.",
        minimum=1,
    ),
    _broker(
        "allow.insecure.listeners",
        OptionType.BOOLEAN,
        False,
        "Ottla's own: start with listeners that are not secure, and log a warning. These are listeners "
        "beyond loopback without TLS and SASL, or with PLAIN and without TLS, and listeners that accept "
        "tokens without a signature, or check them by keys from an address without https.",
    ),
    _broker(
        "inter.broker.authentication",
        STRING,
        "secret",
        "How brokers prove their identity to each other: by the secret in the coordination tree, or "
        "not at all (none). Set it to none only if Apache Kafka brokers are in the same cluster, on "
        "a network that only brokers can reach.",
        choices=("secret", "none"),
    ),
    _broker(
        "inter.broker.secret.generation",
        OptionType.INT,
        1,
        "Ottla's own: a higher number replaces the secret of inter.broker.authentication by a random "
        "one, for all brokers. `ottla cluster rotate-secret` raises it.",
        minimum=1,
        dynamic=True,
    ),
    _broker(
        "inter.broker.secret.overlap.ms",
        OptionType.LONG,
        600_000,
        "Ottla's own: how long a broker accepts the former secret after it has learned of a new one, in "
        "milliseconds. Then it disconnects brokers that use it.",
        minimum=0,
    ),
    _broker(
        "inter.broker.accepted.listeners",
        OptionType.LIST,
        [],
        "Ottla's own: further listeners on which other brokers are accepted, besides "
        "inter.broker.listener.name. For the time in which that option is changed, broker by broker.",
    ),
    _broker(
        BETWEEN_BROKERS,
        STRING,
        BY_SECRET,
        "How brokers log in on the listener for brokers: OTTLA-BROKER, by the secret in the "
        "coordination tree; or SCRAM, as the user of listener.name.NAME.MECHANISM.sasl.jaas.config, "
        "the same on every broker. Kafka: GSSAPI.",
        choices=(BY_SECRET, "SCRAM-SHA-256", "SCRAM-SHA-512"),
    ),
    *tls_options.ROWS,
    _broker(
        _NAMES,
        STRING,
        _AS_IS,
        "Rules from the subject of a client's certificate to its user, such as "
        "RULE:^CN=(.*?),OU=Users.*$/$1/L,DEFAULT. The first one that matches decides.",
    ),
    _broker(
        "principal.builder.class",
        STRING,
        "",
        inert("no class of Java finds the user of a client, and only Kafka's default is accepted"),
        check=_reason,
    ),
)
_ROWS = {row.name: row for row in ROWS}
_PREFIXES = ("ssl.", "sasl.enabled", "sasl.plain.", _BEARER, _SESSION)
_PER_LISTENER = frozenset(row.name for row in ROWS if row.name.startswith(_PREFIXES))


class BearerOptions(NamedTuple):
    """The rules by which tokens of OAUTHBEARER are checked.

    `module` has the options of the login module, for tokens without a signature. The others are for
    tokens with one, whose keys are in a file (`keys_path`), or at `keys_url`, whose certificate one
    of `trusted` must have signed (None: an authority of the system).
    """

    module: Mapping[str, str] = {}
    keys_path: str = ""
    audiences: tuple[str, ...] = ()
    issuer: str = ""
    clock_skew_seconds: int = 0
    principal_claim: str = ""
    keys_url: str = ""
    refresh_ms: int = 0
    trusted: "files.Store | None" = None


class ListenerSecurity(NamedTuple):
    """The mechanisms of a listener with SASL, the passwords of PLAIN by user, and its TLS.

    `session_ms` has the longest session of mechanisms that have a limit, in milliseconds. `names`
    are the rules from the subjects of certificates to users, None if each subject is a user. The
    users of PLAIN are in the file at `users_path`, if it is not empty, and not in `passwords`.
    """

    mechanisms: tuple[str, ...] = ()
    passwords: Mapping[str, str] = {}
    tls: "files.TlsFiles | None" = None
    session_ms: Mapping[str, int] = {}
    bearer: BearerOptions | None = None
    names: "principal_rules.Rules | None" = None
    users_path: str = ""


def is_listener_option(option: str) -> bool:
    """Return True for an option that can be set for one listener, such as ssl.client.auth.

    The option may have a mechanism before it, as in plain.sasl.jaas.config.
    """
    mechanism, _, rest = option.partition(".")
    if option in _PER_LISTENER or mechanism.upper() not in MECHANISMS:
        return option in _PER_LISTENER
    is_bearer = mechanism.upper() == OAUTHBEARER
    return rest in (_JAAS, _SESSION) or (
        is_bearer and (rest == _HANDLER or (rest in _PER_LISTENER and rest.startswith(_BEARER)))
    )


def security_of(options: Snapshot, listener: Named) -> ListenerSecurity:
    """Return how a listener is secured; ConfigError if an option is wrong or missing."""
    values = _Values(options, listener)
    _refuse_unused(values, listener)
    mechanisms: tuple[str, ...] = ()
    if listener.protocol.startswith("SASL"):
        mechanisms = values.mechanisms()
    has_users = PLAIN in mechanisms
    users_path = values.users_path() if has_users else ""
    passwords = values.passwords() if has_users and not users_path else {}
    tls = tls_options.tls_of(values) if listener.protocol.endswith("SSL") else None
    bearer = values.bearer() if OAUTHBEARER in mechanisms else None
    names = None if tls is None else values.names()
    return ListenerSecurity(
        mechanisms, passwords, tls, values.session_ms(mechanisms), bearer, names, users_path
    )


def _refuse_unused(values: ListenerValues, listener: Named) -> None:
    """Raise ConfigError for an option of TLS or SASL that is set for a listener without it."""
    for name in values.options.explicit:
        option = name.removeprefix(values.prefix)
        if option == name or not is_listener_option(option):
            continue
        needed = "SSL" if option.startswith("ssl.") else "SASL"
        if needed not in listener.protocol:
            raise values.refusal(
                name,
                f"is set, which has no effect there: remove it, or give the listener a protocol with "
                f"{needed} in listener.security.protocol.map",
            )


def refuse_unused(options: Snapshot, protocols: Iterable[str]) -> None:
    """Raise ConfigError if clients need a certificate, but no listener has TLS."""
    client_auth = options.explicit.get("ssl.client.auth", "none")
    if client_auth != "none" and not any(protocol.endswith("SSL") for protocol in protocols):
        raise ConfigError(
            f"The security option ssl.client.auth={client_auth} would have no effect: no listener has "
            "the protocol SSL or SASL_SSL. Set listener.security.protocol.map, or remove the option."
        )


def token_secret_key(options: Snapshot) -> str:
    """Return the secret key of delegation tokens; empty if the broker issues none."""
    name = _TOKEN_KEY_BEFORE if options[_TOKEN_KEY] is None else _TOKEN_KEY
    return options.text(name)


class _Values(ListenerValues):
    """The options of SASL and of certificates of one listener."""

    def mechanisms(self) -> tuple[str, ...]:
        name = "sasl.enabled.mechanisms"
        found = self.strings(name)
        for mechanism in found:
            if mechanism not in MECHANISMS:
                raise self.refusal(name, f"has {mechanism}: use {', '.join(MECHANISMS)}")
        if not found:
            raise self.refusal(
                name, f"is not set: set it to one or more of {', '.join(MECHANISMS)}"
            )
        return tuple(found)

    def users_path(self) -> str:
        path, name = self.text(_USERS), f"{self.prefix}plain.{_JAAS}"
        if path and self.own(f"plain.{_JAAS}") is not None:
            raise self.refusal(
                name, f"and {_USERS} both have the users of PLAIN: remove one of them"
            )
        return path

    def passwords(self) -> dict[str, str]:
        name = f"{self.prefix}plain.{_JAAS}"
        text = self.own(f"plain.{_JAAS}")
        if text is None:
            raise self.refusal(name, f"is not set: set it to {jaas.EXAMPLE}")
        try:
            module = jaas.parse_module(text)
        except ValueError as error:
            raise self.refusal(name, f"cannot be read: {error}") from error
        found = {
            key.removeprefix(_USER): password
            for key, password in module.options.items()
            if key.startswith(_USER)
        }
        if not found:
            raise self.refusal(name, f"has no user: set it to {jaas.EXAMPLE}")
        return found

    def bearer(self) -> BearerOptions:
        url = self._of_bearer(_KEYS)
        if url:
            return self._signed(url)
        if self.own(f"oauthbearer.{_HANDLER}") is not None:
            raise self.refusal(_KEYS, "is not set: name a file of keys, or their address")
        name = f"{self.prefix}oauthbearer.{_JAAS}"
        module = self._module(name)
        if module is None:
            raise self.refusal(
                name,
                f"is not set: set {_KEYS}; or, for tokens without a signature, "
                f"which everyone can write, set it to {_OAUTH_EXAMPLE}",
            )
        skew = module.get(_SKEW, "0")
        if not is_digits(skew, 18):
            raise self.refusal(name, f"has {_SKEW}={skew}: write milliseconds")
        return BearerOptions(module)

    def _module(self, name: str) -> Mapping[str, str] | None:
        """Return the options of the login module of OAUTHBEARER; None if no login module is
        configured.
        """
        text = self.own(f"oauthbearer.{_JAAS}")
        if text is None:
            return None
        try:
            return jaas.parse_module(text).options
        except ValueError as error:
            raise self.refusal(name, f"cannot be read: {error}") from error

    def _trusted_of_keys(self) -> "files.Store | None":
        """Return the trust store for the address of the keys, which the login module names."""
        name = f"{self.prefix}oauthbearer.{_JAAS}"
        module = self._module(name) or {}
        for option in module:
            if option.startswith(_UNSECURED_CHECKS):
                raise self.refusal(
                    name, f"has {option}, which has no effect with {_KEYS}: remove one of them"
                )
        path = module.get("ssl.truststore.location")
        if path is None:
            return None
        kind = module.get("ssl.truststore.type", PEM).upper()
        if kind not in files.KINDS:
            raise self.refusal(
                name, f"has ssl.truststore.type={kind}: use {' or '.join(files.KINDS)}"
            )
        return files.Store(path, kind, module.get("ssl.truststore.password", ""))

    def _signed(self, url: str) -> BearerOptions:
        is_file = url.startswith("file:///")
        if not is_file and not url.startswith(("https://", "http://")):
            raise self.refusal(_KEYS, f"is {url}: it must begin with https:// or file:///")
        issuer = self._of_bearer("sasl.oauthbearer.expected.issuer")
        if not issuer:
            raise self.refusal(
                "sasl.oauthbearer.expected.issuer",
                f"is not set, and with {_KEYS} it must be: an identity provider may sign tokens of "
                "several issuers with the same keys",
            )
        audiences = self._of_bearer("sasl.oauthbearer.expected.audience").split(",")
        return BearerOptions(
            keys_path=url.removeprefix("file://") if is_file else "",
            audiences=tuple(part.strip() for part in audiences if part.strip()),
            issuer=issuer,
            clock_skew_seconds=self._number_of_bearer("sasl.oauthbearer.clock.skew.seconds"),
            principal_claim=self._of_bearer("sasl.oauthbearer.sub.claim.name"),
            keys_url="" if is_file else url,
            refresh_ms=0
            if is_file
            else self._number_of_bearer("sasl.oauthbearer.jwks.endpoint.refresh.ms"),
            trusted=self._trusted_of_keys(),
        )

    def _number_of_bearer(self, name: str) -> int:
        row = dataclasses.replace(_ROWS[name], name=self.prefix + name)
        return int(row.parse(self._of_bearer(name)))

    def _of_bearer(self, name: str) -> str:
        """Return the text of an option of OAUTHBEARER, which may have the mechanism before it."""
        own = self.own(f"oauthbearer.{name}") or self.own(name)
        return own.strip() if own else _ROWS[name].render(self.options[name]) or ""

    def session_ms(self, mechanisms: Iterable[str]) -> dict[str, int]:
        limits = {name: self._session_ms(name) for name in mechanisms}
        return {name: limit_ms for name, limit_ms in limits.items() if limit_ms > 0}

    def _session_ms(self, mechanism: str) -> int:
        for name in (f"{mechanism.lower()}.{_SESSION}", _SESSION):
            text = self.own(name)
            if text is not None:
                row = dataclasses.replace(_SESSION_ROW, name=self.prefix + name)
                return int(row.parse(text))
        return self.options.integer(_SESSION)

    def names(self) -> "principal_rules.Rules | None":
        text = self.text(_NAMES)
        if text == _AS_IS:
            return None
        try:
            return principal_rules.parse_rules(text)
        except ValueError as error:
            raise self.refusal(_NAMES, f"cannot be read: {error}") from error
