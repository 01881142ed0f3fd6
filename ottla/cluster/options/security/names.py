"""Which names are options of security, and the refusal of those that a broker does not honour.

An unknown option is a warning, because files written for Kafka have options of plug-ins. With an
option of security that would be a hole: the administrator believes, for example, that clients need
a certificate. So a broker with a security option that has no effect does not start. Pure.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from ottla.base.errors import ConfigError
from ottla.base.loading import deferred_module
from ottla.cluster.options.security.listener_values import PREFIX, prefix_of

if TYPE_CHECKING:
    import difflib
else:
    difflib = deferred_module("difflib")

# A name that begins like one of these, or with one of them mistyped, is an option of security.
_FAMILIES = (
    "authorizer.",
    "config.providers",
    "delegation.token.",
    PREFIX,
    "password.encoder.",
    "principal.",
    "sasl.",
    "security.",
    "ssl.",
    "super.users",
    "zookeeper.ssl.",
)
_OTHERS = (
    "allow.everyone.",
    "allow.insecure.",
    "connection.failed.authentication.",
    "connections.max.reauth.",
    "inter.broker.authentication",
    "inter.broker.secret.",
    "listener.security.",
    "zookeeper.set.acl",
)
_CUTOFF, _NAME_CUTOFF = 0.85, 0.75
# Options have shorter names. Clients choose longer ones, of which a comparison would take long.
_NAME_MAX = 100
_JAVA = "Ottla runs no classes of Java. Remove it"
_BROKERS = (
    "brokers prove their identity by the secret of the cluster (inter.broker.authentication). "
    "Remove it"
)
_PEM_TEXTS = "stores are files: write the text to a file, and name that"
_NO_TOKENS = "only clients fetch tokens. Remove it"
# The beginnings of Kafka's names, the reason why they have no effect, and what to do.
_UNSUPPORTED = {
    "config.providers": "values are read as they are written. Write the values themselves",
    "password.encoder.": "the metadata has no encrypted passwords. Remove it",
    "sasl.client.callback.handler.class": _BROKERS,
    "sasl.jaas.config": (
        "it is needed for a mechanism of a listener: write "
        "listener.name.NAME.MECHANISM.sasl.jaas.config"
    ),
    "sasl.kerberos.": "Ottla does not support GSSAPI. Remove it, and use SCRAM-SHA-512",
    "sasl.login.": _BROKERS,
    "sasl.mechanism.": _BROKERS,
    "sasl.oauthbearer.assertion.": _NO_TOKENS,
    "sasl.oauthbearer.client.": _NO_TOKENS,
    "sasl.oauthbearer.header.": _NO_TOKENS,
    "sasl.oauthbearer.jwks.endpoint.retry.": "the times between retries are fixed. Remove it",
    "sasl.oauthbearer.jwt.": _JAVA,
    "sasl.oauthbearer.scope": "the scope of a token is not checked. Remove it",
    "sasl.oauthbearer.token.endpoint.url": _NO_TOKENS,
    "sasl.server.callback.handler.class": _JAVA,
    "security.providers": _JAVA,
    "ssl.allow.": "certificates may change their names. Remove it",
    "ssl.engine.factory.class": _JAVA,
    "ssl.keymanager.algorithm": _JAVA,
    "ssl.keystore.certificate.chain": _PEM_TEXTS + " as ssl.keystore.location",
    "ssl.keystore.key": _PEM_TEXTS + " as ssl.keystore.location",
    "ssl.provider": _JAVA,
    "ssl.secure.random.implementation": _JAVA,
    "ssl.trustmanager.algorithm": _JAVA,
    "ssl.truststore.certificates": _PEM_TEXTS + " as ssl.truststore.location",
    "zookeeper.ssl.cipher.suites": "the suites cannot be chosen. Remove it",
    "zookeeper.ssl.crl.enable": "revoked certificates are not looked up. Remove it",
    "zookeeper.ssl.enabled.protocols": "TLSv1.2 and TLSv1.3 are used. Remove it",
    "zookeeper.ssl.ocsp.enable": "revoked certificates are not looked up. Remove it",
    "zookeeper.ssl.protocol": "TLSv1.2 and TLSv1.3 are used. Remove it",
}

Known = Collection[str]


def is_security_option(name: str, known: Known) -> bool:
    """Return True if an option concerns security, also one with a typing error.

    `known` has the names of the broker's options.
    """
    text = name.lower()
    if text.startswith((*_FAMILIES, *_OTHERS)):
        return True
    if text in known:
        return False
    if any(_resembles(text, family) for family in _FAMILIES):
        return True
    meant = nearest(text, known)
    return meant is not None and meant.startswith((*_FAMILIES, *_OTHERS))


def _resembles(name: str, family: str) -> bool:
    """Return True if a name begins with a mistyped family."""
    parts = family.rstrip(".").split(".")
    head = ".".join(name.split(".", len(parts))[: len(parts)])
    return (
        len(head) <= _NAME_MAX
        and difflib.SequenceMatcher(None, head, ".".join(parts)).ratio() >= _CUTOFF
    )


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that is most similar to a mistyped one; None if none is similar."""
    if len(name) > _NAME_MAX:
        return None
    matches = difflib.get_close_matches(name, list(names), n=1, cutoff=_NAME_CUTOFF)
    return matches[0] if matches else None


def canonical(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings with the options of single listeners in small letters.

    The names of listeners are in capital letters elsewhere, and are often written so here. Raises
    ConfigError if two spellings of one name have different values.
    """
    spelled: dict[str, str] = {}
    result: dict[str, str] = {}
    for name, text in settings.items():
        key = canonical_name(name)
        if result.setdefault(key, text) != text:
            raise ConfigError(
                f"{spelled[key]} and {name} set the same option to different values: remove one"
            )
        spelled[key] = name
    return result


def canonical_name(name: str) -> str:
    """Return the name of an option, in small letters if it is one of a single listener."""
    lowered = name.lower()
    return lowered if lowered.startswith(PREFIX) else name


def listener_of(name: str, listeners: Iterable[str]) -> str | None:
    """Return the listener that the prefix of an option names; None if it names none."""
    found = [listener for listener in listeners if name.startswith(prefix_of(listener))]
    return max(found, key=len, default=None)


def refuse(
    names: Iterable[str],
    known: Known,
    listeners: Collection[str],
    is_listener_option: Callable[[str], bool],
) -> None:
    """Raise ConfigError for an option of security that would have no effect.

    `known` are the broker's options. `is_listener_option` returns True for the name, without its
    prefix, of an option that a single listener can have.
    """
    for name in names:
        if name in known or not is_security_option(name, known):
            continue
        if not name.startswith(PREFIX):
            raise refusal(name, known)
        listener = listener_of(name, listeners)
        if listener is None:
            raise _without_effect(name, _unknown_listener(name, listeners))
        prefix = prefix_of(listener)
        option = name.removeprefix(prefix)
        if not is_listener_option(option):
            raise _without_effect(name, _reason_of(option, known, prefix))


def refusal(name: str, known: Known) -> ConfigError:
    """Return the error for an option of security that is not honoured."""
    return _without_effect(name, _reason_of(name.lower(), known))


def _without_effect(name: str, reason: str) -> ConfigError:
    return ConfigError(f"The security option {name} would have no effect: {reason}.")


def _unknown_listener(name: str, listeners: Collection[str]) -> str:
    meant = nearest(name, [prefix_of(listener) + _rest(name) for listener in listeners])
    hint = f"did you mean {meant}? Correct or remove it" if meant else "correct or remove it"
    return f"its prefix names none of the listeners {', '.join(sorted(listeners))}; {hint}"


def _rest(name: str) -> str:
    """Return what follows a listener's name without dots."""
    return name.removeprefix(PREFIX).partition(".")[2]


def _reason_of(name: str, known: Known, prefix: str = "") -> str:
    for beginning, reason in _UNSUPPORTED.items():
        if name.startswith(beginning):
            return reason
    options = [option for option in known if is_security_option(option, known)]
    if prefix and name in known:
        return f"it cannot be set for a single listener: write {name}"
    meant = nearest(name, options)
    if meant is not None:
        return f"there is no such option; did you mean {prefix}{meant}? Correct or remove it"
    family = next((family for family in _FAMILIES if _resembles(name, family)), None)
    hint = f" Did you mean one that begins with {family}?" if family is not None else ""
    return f"there is no such option.{hint} Correct or remove it; docs/options.md lists all options"
