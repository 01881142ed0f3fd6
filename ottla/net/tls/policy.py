"""The versions and the cipher suites of TLS, by the names of Java's JSSE that Kafka's options use.

The suites come from the local OpenSSL, whose names are accepted as well. Names that it does not
have, or that do not encrypt, are a ValueError: a connection never uses a weaker suite than one of
those that are named.

Not done: single suites of TLS 1.3, among which Python's ssl cannot choose.
"""

import functools
import re
import ssl
from collections.abc import Mapping, Sequence

from ottla.net.tls import VERSION_NAMES
from ottla.net.tls.files import Policy

VERSIONS: Mapping[str, ssl.TLSVersion] = dict(
    zip(VERSION_NAMES, (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3), strict=True)
)
"""The versions by their names."""
_OLD, _NEW = VERSIONS
_ANY_VERSION = "TLS"
# Suites that prove nothing or encrypt nothing, and those that need secrets of their own.
_USABLE = "ALL:!aNULL:!eNULL:!PSK:!SRP:@SECLEVEL=2"
# A signal of clients for secure renegotiation (RFC 5746), which OpenSSL always sends.
_SIGNAL = "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"
_LIBRARY = " ".join(ssl.OPENSSL_VERSION.split()[:2])
_JAVA = re.compile(r"(?:TLS|SSL)_(?P<exchange>.+)_WITH_(?P<cipher>.+)")
_CIPHERS = (
    (re.compile(r"(AES|ARIA|CAMELLIA)_(\d+)_"), r"\1\2-"),
    (re.compile(r"^3DES_EDE_CBC"), "DES-CBC3"),
    # OpenSSL does not name what all suites with a name of this form have.
    (re.compile(r"^((?:AES|CAMELLIA)\d+)-CBC_"), r"\1-"),
    (re.compile(r"(?<=CHACHA20_POLY1305)_SHA256"), ""),
    (re.compile(r"CCM_8$"), "CCM8"),
)


def apply(policy: Policy, context: ssl.SSLContext) -> None:
    """Restrict a context to versions and suites; ssl.SSLError if it supports none of the suites."""
    context.minimum_version = VERSIONS[policy.versions[0]]
    context.maximum_version = VERSIONS[policy.versions[-1]]
    if policy.suites:
        context.set_ciphers(":".join(policy.suites))


def versions_of(enabled: Sequence[str], protocol: str) -> tuple[str, ...]:
    """Return the versions of ssl.enabled.protocols (all if empty) up to the version of
    ssl.protocol.

    ValueError names a version that cannot be used.
    """
    for name in enabled:
        if name not in VERSIONS:
            raise _unknown_version(name)
    if protocol not in (_ANY_VERSION, *VERSIONS):
        raise _unknown_version(protocol)
    newest = _NEW if protocol == _ANY_VERSION else protocol
    chosen = enabled or tuple(VERSIONS)
    versions = tuple(name for name in VERSIONS if name in chosen and name <= newest)
    if not versions:
        raise ValueError(f"none of {', '.join(chosen)} is used with ssl.protocol={protocol}")
    return versions


def policy_of(versions: tuple[str, ...], suites: Sequence[str]) -> Policy:
    """Return the policy of the suites of ssl.cipher.suites, which are all if the list is empty.

    ValueError names a suite that cannot be used, and the reason.
    """
    named = [name for name in suites if name != _SIGNAL]
    if not named:
        return Policy(versions)
    local = _local_suites()
    new = [name for name in named if local.get(name) == _NEW]
    old = [_openssl_name(name) for name in named if name not in new]
    all_new = sorted(name for name, version in local.items() if version == _NEW)
    if new and set(new) != set(all_new):
        raise ValueError(
            f"of the suites of {_NEW} only {', '.join(new)} is named, and Python cannot choose among "
            f"them: name all of them ({', '.join(all_new)}), or none, which disables {_NEW}"
        )
    is_used = {_OLD: bool(old), _NEW: bool(new)}
    used = tuple(version for version in versions if is_used[version])
    if not used:
        raise ValueError(f"no suite is for {' or '.join(versions)}, the versions that are enabled")
    return Policy(used, tuple(old))


def _unknown_version(name: str) -> ValueError:
    return ValueError(f"{_LIBRARY} does not offer {name}: use {', '.join(VERSIONS)}")


@functools.cache
def _local_suites() -> Mapping[str, str]:
    """Return the usable suites of the local OpenSSL by its names, with their versions of TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers(_USABLE)
    return {
        str(suite["name"]): _NEW if suite["protocol"] == _NEW else _OLD
        for suite in context.get_ciphers()
    }


def _openssl_name(name: str) -> str:
    """Return OpenSSL's name of a suite of TLS 1.2; ValueError if it cannot be used."""
    match = _JAVA.fullmatch(name)
    found = name if match is None else _translated(match["exchange"], match["cipher"])
    if found not in _local_suites():
        raise ValueError(f"{_LIBRARY} has no suite {name} that authenticates and encrypts")
    return found


def _translated(exchange: str, cipher: str) -> str:
    for pattern, replacement in _CIPHERS:
        cipher = pattern.sub(replacement, cipher)
    words = [*(exchange.split("_") if exchange != "RSA" else ()), *cipher.split("_")]
    return "-".join(words)
