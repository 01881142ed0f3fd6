"""Opening a client of librdkafka without the options that only plug-ins and other clients read."""

import logging
from collections.abc import Callable
from typing import Any

from ottla.client.config.names import Role
from ottla.client.config.refused_options import UnknownOption
from ottla.client.config.settings import ClientSettings, hint, is_ignored
from ottla.client.errors import ClientError

_log = logging.getLogger("ottla.client")


def open_client(
    role: Role,
    settings: ClientSettings,
    open_native: Callable[[dict[str, Any]], Any],
    properties: dict[str, Any],
) -> Any:
    """Return what `open_native` opens with options of librdkafka; ClientError for a wrong one.

    As in Kafka, options that the client does not use are reported, unless a plug-in may use them.
    """
    while True:
        try:
            return open_native(properties)
        except UnknownOption as error:
            name = error.name
            if not is_ignored(role, settings, name):
                raise ClientError(f"{error}{hint(role, name)}") from error
            if not settings.has_plug_ins:
                _log.warning("the option %s is not used by the %s", name, role.value)
        properties = {key: value for key, value in properties.items() if key != name}
