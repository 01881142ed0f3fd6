"""The profiles of a user: names for clusters, kept in a file of the user's configuration folder.

The address of a command comes from --bootstrap, else from OTTLA_BOOTSTRAP, else from the profile in
OTTLA_PROFILE or the one that `ottla profile use` chose; otherwise the default applies. A profile
may name a file with options of Kafka's clients, which is used together with its address only. The
scripts of Apache Kafka use no profiles, as there.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ottla.base.errors import ConfigError
from ottla.client.bootstrap import DEFAULT_BOOTSTRAP, parse_bootstrap
from ottla.client.security.private_files import write_private

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_VARIABLE = "OTTLA_PROFILE"


@dataclass(frozen=True, slots=True)
class Profiles:
    """All profiles: the address of each, the current one ("" if none is in use), the files of the
    profiles that have one, and the names of those with which `ottla produce` creates no topic.
    """

    addresses: Mapping[str, str]
    current: str = ""
    configs: Mapping[str, str] = field(default_factory=dict)
    without_creation: frozenset[str] = frozenset()


def path() -> Path:
    """Return the file of the profiles; OTTLA_CONFIG_DIR and XDG_CONFIG_HOME move it."""
    folder = os.environ.get("OTTLA_CONFIG_DIR")
    if folder:
        return Path(folder, "profiles.json")
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home, "ottla", "profiles.json")


def read() -> Profiles:
    """Return the profiles; ConfigError if the file is damaged."""
    file = path()
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        addresses, configs = content["profiles"], content.get("configs", {})
        current = content.get("current", "")
        without_creation = content.get("without_creation", [])
        texts = [*addresses.values(), *configs.values(), current, *without_creation]
        if not all(isinstance(text, str) for text in texts):
            raise TypeError
        return Profiles(addresses, current, configs, frozenset(without_creation))
    except FileNotFoundError:
        return Profiles({})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ConfigError(f"{file} is damaged: remove it, and create the profiles again") from None


def write(profiles: Profiles) -> None:
    """Replace the file; it is readable by its owner only."""
    file = path()
    file.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "current": profiles.current,
        "profiles": dict(profiles.addresses),
        "configs": dict(profiles.configs),
        "without_creation": sorted(profiles.without_creation),
    }
    write_private(file, json.dumps(content, indent=2) + "\n")


def check_name(name: str) -> str:
    """Return a valid name; ConfigError says which names are."""
    if _NAME.fullmatch(name) is None:
        raise ConfigError(
            f"{name!r} is not a name for a profile: use letters, digits, '-', '_', '.'"
        )
    return name


def check_known(profiles: Profiles, name: str) -> None:
    """Raise ConfigError, with the known names, unless the profile exists."""
    if name not in profiles.addresses:
        known = ", ".join(sorted(profiles.addresses)) or "none"
        raise ConfigError(
            f"there is no profile {name!r} (there are: {known}): create it with `ottla profile create "
            f"{name} --bootstrap HOST:PORT`"
        )


def default_bootstrap() -> str:
    """Return the address that a command uses if none is given."""
    profiles = read()
    name = _chosen(profiles)
    if not name:
        return DEFAULT_BOOTSTRAP
    check_known(profiles, name)
    address = profiles.addresses[name]
    parse_bootstrap(address)
    return address


def default_config() -> str:
    """Return the file with options of Kafka's clients of the profile in use; "" without such a
    file.
    """
    profiles = read()
    return profiles.configs.get(_chosen(profiles), "")


def creates_topics() -> bool:
    """Return False if the profile in use forbids `ottla produce` to create topics."""
    profiles = read()
    return _chosen(profiles) not in profiles.without_creation


def _chosen(profiles: Profiles) -> str:
    return os.environ.get(_VARIABLE, "") or profiles.current
