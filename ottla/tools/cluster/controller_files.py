"""The configuration file of a KRaft controller that is to vote: its id, directory and listeners.

Errors have the sentences of org.apache.kafka.tools.MetadataQuorumCommand.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ottla.base import uuids
from ottla.base.errors import ConfigError
from ottla.base.loading import deferred_module
from ottla.client.admin.apache.quorum import RaftEndpoint

# They import asyncio, and only the file of a new controller needs them.
if TYPE_CHECKING:
    from ottla.storage.files import checkpoints, meta_properties
else:
    checkpoints = deferred_module("ottla.storage.files.checkpoints")
    meta_properties = deferred_module("ottla.storage.files.meta_properties")

_VALID = "Is this a valid controller configuration file?"
_LISTENER = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?\d+)")
_ID_BYTES, _ID_CHARACTERS_MAX = 16, 24
_BASE64 = re.compile(r"[\w-]*=*", re.ASCII)


class ControllerFile(NamedTuple):
    """A controller as its configuration file describes it."""

    node_id: int
    directory_id: bytes
    endpoints: tuple[RaftEndpoint, ...]


def read_controller(properties: Mapping[str, str]) -> ControllerFile:
    """Return the controller; ConfigError if the file is not one of a formatted controller."""
    node_id = _node_id(properties)
    directory_id = _directory_id(_metadata_directory(properties))
    return ControllerFile(node_id, directory_id, _endpoints(properties))


def parse_directory_id(text: str) -> bytes:
    """Return the bytes of a directory id; ConfigError, with Java's sentence, if it is none."""
    if len(text) > _ID_CHARACTERS_MAX:
        raise ConfigError(
            f"Input string with prefix `{text[:_ID_CHARACTERS_MAX]}` is too long to be decoded as "
            "a base64 UUID"
        )
    match = _BASE64.match(text)
    end = match.end() if match else 0
    if end < len(text):
        raise ConfigError(f"Illegal base64 character {ord(text[end]):x}")
    if len(text.rstrip("=")) == 1:
        raise ConfigError("Input byte[] should at least have 2 bytes for base64 bytes")
    try:
        value = base64.urlsafe_b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4))
    except binascii.Error as error:
        raise ConfigError(f"`{text}` is not a base64-encoded UUID") from error
    if len(value) != _ID_BYTES:
        raise ConfigError(
            f"Input string `{text}` decoded as {len(value)} bytes, which is not equal to the "
            f"expected {_ID_BYTES} bytes of a base64-encoded UUID"
        )
    return value


def _node_id(properties: Mapping[str, str]) -> int:
    text = properties.get("node.id")
    if text is None:
        raise ConfigError(f"node.id not found in configuration file. {_VALID}")
    try:
        node_id = int(text)
    except ValueError as error:
        raise ConfigError(f'For input string: "{text}"') from error
    if node_id < 0:
        raise ConfigError(f"node.id was negative in configuration file. {_VALID}")
    if "controller" not in properties.get("process.roles", ""):
        raise ConfigError(
            f"process.roles did not contain 'controller' in configuration file. {_VALID}"
        )
    return node_id


def _metadata_directory(properties: Mapping[str, str]) -> str:
    directory = properties.get("metadata.log.dir")
    if directory is None and "log.dirs" in properties:
        directory = properties["log.dirs"].strip().split(",")[0]
    if directory is None:
        raise ConfigError(f"Neither metadata.log.dir nor log.dirs were found. {_VALID}")
    return directory


def _directory_id(directory: str) -> bytes:
    try:
        owner = meta_properties.parse(
            Path(directory, checkpoints.META_PROPERTIES_FILE).read_bytes()
        )
    except (OSError, ValueError) as error:
        raise ConfigError(f"Unable to read meta.properties from {directory}") from error
    if owner.directory_id is None:
        raise ConfigError(f"No directory id found in {directory}")
    return uuids.parse_uuid(owner.directory_id)


def _endpoints(properties: Mapping[str, str]) -> tuple[RaftEndpoint, ...]:
    addresses: dict[str, RaftEndpoint] = {}
    for option in ("listeners", "advertised.listeners"):
        for text in filter(None, map(str.strip, properties.get(option, "").split(","))):
            match = _LISTENER.fullmatch(text)
            if match is None:
                raise ConfigError(f"Unable to parse {text} to a broker endpoint")
            name = match[1].upper()
            addresses[name] = RaftEndpoint(name, match[2] or "localhost", int(match[3]))
    names = properties.get("controller.listener.names")
    if names is None:
        raise ConfigError(f"controller.listener.names was not found. {_VALID}")
    listed = [name.strip().upper() for name in names.split(",")]
    for name in listed:
        if name not in addresses:
            raise ConfigError(f"Cannot find information about controller listener name: {name}")
    return tuple(dict.fromkeys(addresses[name] for name in listed))
