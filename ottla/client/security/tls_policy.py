"""The versions and cipher suites of TLS of a client: for its own connections, and for librdkafka.

librdkafka has the names of suites, in OpenSSL's format, and no option for versions.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ottla.base.errors import ConfigError
from ottla.base.loading import deferred_module

# Scripts start faster without them.
if TYPE_CHECKING:
    import ssl

    from ottla.net.tls import files, policy
else:
    files = deferred_module("ottla.net.tls.files")
    policy = deferred_module("ottla.net.tls.policy")

ENABLED, NEWEST, SUITES = "ssl.enabled.protocols", "ssl.protocol", "ssl.cipher.suites"
POLICY_OPTIONS = {
    ENABLED: "The versions of TLS that are used; TLSv1.2,TLSv1.3.",
    NEWEST: "The newest version of TLS that is used, or TLS; TLSv1.3.",
    SUITES: "Cipher suites by the names of Java, or a list in OpenSSL's format.",
}
_OLDEST = "TLSv1.2"
_OF_JAVA = ("TLS_", "SSL_")

Options = Mapping[str, Any]


def policy_of(options: Options) -> "files.Policy | None":
    """Return the versions and suites of a client; None if its options name none.

    Raises ConfigError for a name that cannot be honoured.
    """
    if not any(options.get(name) for name in POLICY_OPTIONS):
        return None
    suites = _items(options.get(SUITES))
    is_openssl = bool(suites) and not suites[0].startswith(_OF_JAVA)
    name = ENABLED
    try:
        versions = policy.versions_of(_items(options.get(ENABLED)), _newest(options))
        name = SUITES
        if is_openssl:
            # As librdkafka expects them, with signs between the suites.
            return files.Policy(versions, tuple(suites))
        return policy.policy_of(versions, suites)
    except ValueError as error:
        raise ConfigError(f"{name} cannot be honoured: {error}") from error


def restrict(context: "ssl.SSLContext", options: Options) -> None:
    """Restrict a context to the versions and suites of a client; ConfigError if the suites cannot
    be used.
    """
    chosen = policy_of(options)
    if chosen is None:
        return
    try:
        policy.apply(chosen, context)
    except OSError as error:
        raise ConfigError(f"{SUITES} cannot be honoured: {error}") from error


def librdkafka_policy(options: Options) -> dict[str, str]:
    """Return the suites for librdkafka; ConfigError if it would use an older version of TLS.

    Not done: librdkafka uses TLSv1.3 with all of its suites, also if it is not enabled.
    """
    is_encrypted = str(options.get("security.protocol", "")).upper().endswith("SSL")
    chosen = policy_of(options) if is_encrypted else None
    if chosen is None:
        return {}
    if _OLDEST not in chosen.versions:
        name = ENABLED if options.get(ENABLED) else SUITES
        raise ConfigError(
            f"{name} excludes {_OLDEST}, which librdkafka cannot do: producers and consumers use it if "
            f"the brokers offer it. Set ssl.enabled.protocols=TLSv1.3 on the brokers' listener, and "
            f"remove {name}"
        )
    return {SUITES: ":".join(chosen.suites)} if chosen.suites else {}


def _newest(options: Options) -> str:
    return str(options.get(NEWEST) or "TLS")


def _items(value: Any) -> list[str]:
    parts = value if isinstance(value, list | tuple) else str(value or "").split(",")
    return [text for part in parts if (text := str(part).strip())]
