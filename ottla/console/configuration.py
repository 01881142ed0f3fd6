"""The optional file `console.toml` beside the console's data: what no user may decide in a browser.

[alerts]
# Networks that alert channels may reach although they are loopback, link-local or reserved.
allowed_networks = ["127.0.0.0/8"]
"""

import tomllib
from pathlib import Path

from ottla.base.errors import ConfigError
from ottla.console.alerts.addresses import Network, parse_networks

FILE_NAME = "console.toml"
_NETWORKS = "allowed_networks"


def read_allowed_networks(folder: Path) -> tuple[Network, ...]:
    """Return the allowed networks of the file; none if there is no file. ConfigError if it is
    malformed or has an unknown name.
    """
    path = folder / FILE_NAME
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return ()
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is malformed: {error}") from None
    alerts = document.get("alerts", {})
    if set(document) - {"alerts"} or not isinstance(alerts, dict) or set(alerts) - {_NETWORKS}:
        raise ConfigError(f"{path} has an unknown name: only alerts.{_NETWORKS} exists")
    networks = alerts.get(_NETWORKS, [])
    if not isinstance(networks, list) or not all(isinstance(item, str) for item in networks):
        raise ConfigError(f"{path}: {_NETWORKS} must be an array of texts")
    return parse_networks(networks)
