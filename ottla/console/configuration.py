"""The optional file `console.toml` beside the console's data: what no user may decide in a browser.

[alerts]
# Networks that alert channels may reach although they are loopback, link-local or reserved.
allowed_networks = ["127.0.0.0/8"]
[server]
# Listen on an address that others can reach, although the console does not encrypt (--insecure).
allow_insecure = true
[oidc]
# Users of an identity provider may log in; all names are in docs/console.md.
issuer = "https://login.example.com"
client_id = "ottla-console"
url = "https://console.example.com"
"""

import ipaddress
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ottla.base.errors import ConfigError
from ottla.console.alerts.addresses import Network, parse_networks
from ottla.console.oidc.settings import OidcSettings, parse_oidc

FILE_NAME = "console.toml"
_NETWORKS = "allowed_networks"
_INSECURE = "allow_insecure"
_NAMES = {"alerts": _NETWORKS, "server": _INSECURE}
_OIDC, _SECRET_FILE = "oidc", "client_secret_file"
_LOCALHOST = "localhost"


class Configuration(NamedTuple):
    """The values of the file."""

    allowed_networks: tuple[Network, ...] = ()
    allows_insecure: bool = False
    oidc: OidcSettings | None = None


def read_configuration(folder: Path) -> Configuration:
    """Return the values of the file; the defaults if there is no file. ConfigError if it is
    malformed or has an unknown name.
    """
    path = folder / FILE_NAME
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return Configuration()
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is malformed: {error}") from None
    _check_names(path, document)
    networks = document.get("alerts", {}).get(_NETWORKS, [])
    if not isinstance(networks, list) or not all(isinstance(item, str) for item in networks):
        raise ConfigError(f"{path}: {_NETWORKS} must be an array of texts")
    allows_insecure = document.get("server", {}).get(_INSECURE, False)
    if not isinstance(allows_insecure, bool):
        raise ConfigError(f"{path}: {_INSECURE} must be true or false")
    oidc = None if _OIDC not in document else _read_oidc(path, document[_OIDC])
    return Configuration(parse_networks(networks), allows_insecure, oidc)


def _read_oidc(path: Path, table: Any) -> OidcSettings:
    """Return the identity provider; its secret is in a file of its own."""
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: {_OIDC} must be a table")
    file, secret = table.get(_SECRET_FILE, ""), ""
    if isinstance(file, str) and file:
        try:
            secret = (path.parent / file).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: {_OIDC}.{_SECRET_FILE} cannot be read: {error}") from None
    return parse_oidc(table, secret)


def _check_names(path: Path, document: Mapping[str, Any]) -> None:
    for table, values in document.items():
        if table == _OIDC:
            continue
        known = _NAMES.get(table)
        if known is None or not isinstance(values, dict) or set(values) - {known}:
            names = ", ".join(f"{name}.{value}" for name, value in _NAMES.items())
            raise ConfigError(f"{path} has an unknown name: only {names} and {_OIDC} exist")


def check_address(host: str, *, allows_insecure: bool) -> str:
    """Return the warning about an address that the console listens on; empty for loopback.

    The console does not encrypt: ConfigError if others can reach the address, unless the operator
    allows that.
    """
    if is_loopback(host):
        return ""
    danger = (
        f"the console does not encrypt: on {host}, everyone between a browser and it can read passwords "
        "and sessions"
    )
    if allows_insecure:
        return f"{danger}. Let browsers reach it through a proxy with TLS only"
    raise ConfigError(
        f"{danger}. Put a proxy with TLS in front of 127.0.0.1; or, if the network between them is "
        "trusted, add --insecure (with `ottla up`: --console-insecure)"
    )


def is_loopback(host: str) -> bool:
    """Return True if no other machine can reach an address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == _LOCALHOST
