"""References to secrets in options of the command line, so that the secrets are not on it.

Every user of a machine can read the command lines of its processes. The syntax follows Kafka's
config providers: `${env:NAME}` is a variable of the environment, `${file:PATH:KEY}` a value of a
properties file, `${directory:PATH:FILE}` the content of a file, as Kubernetes mounts secrets.
"""

import os
import re
from pathlib import Path

from ottla.base.errors import ConfigError
from ottla.client.config.properties import parse_properties
from ottla.tools.text_files import read_text

_REFERENCE = re.compile(r"\$\{(env|file|directory):([^}]*)\}")
_SECRET = re.compile(
    r"(?:password|passwd|secret|jaas\.config|credentials|user\.info|\.key)$",
    re.IGNORECASE,
)


def resolve(name: str, text: str) -> str:
    """Return the value of an option with its references replaced; ConfigError names a wrong one."""
    return _REFERENCE.sub(lambda found: _value(name, found[1], found[2]), text)


def is_exposed(name: str, text: str) -> bool:
    """Return True if the value of a secret option is on the command line itself."""
    return bool(text) and _SECRET.search(name) is not None and _REFERENCE.search(text) is None


def warning(name: str) -> str:
    """Return the sentence about an exposed secret."""
    return (
        f"Warning: every user of this machine can read {name} in the list of processes. Write "
        f"{name}='${{env:NAME}}' or '${{file:PATH:KEY}}', or set it in a file."
    )


def _value(name: str, provider: str, reference: str) -> str:
    if provider == "env":
        value = os.environ.get(reference)
        if value is None:
            raise ConfigError(f"{name}: the environment has no variable {reference!r}")
        return value
    path, colon, key = reference.rpartition(":")
    if not colon or not path or not key:
        raise ConfigError(
            f"{name}: '${{{provider}:{reference}}}' is not of the form ${{{provider}:PATH:KEY}}"
        )
    try:
        if provider == "directory":
            return _content(name, path, key)
        values = parse_properties(read_text(path), path)
    except OSError as error:
        raise ConfigError(f"{name}: {path} cannot be read: {error.strerror or error}") from error
    if key not in values:
        raise ConfigError(f"{name}: {path} has no value {key!r}")
    return values[key]


def _content(name: str, folder: str, file: str) -> str:
    if Path(file).name != file:
        raise ConfigError(f"{name}: {file!r} is not the name of a file in {folder}")
    return read_text(Path(folder) / file).removesuffix("\n")
