"""The options of Kafka's clients that a command gets from a properties file: TLS and SASL.

librdkafka, Spark and the blocking connections each get them in their own form.
"""

import re
from typing import TYPE_CHECKING

from ottla.base.errors import ConfigError
from ottla.base.loading import deferred_module
from ottla.client.brokers import Brokers
from ottla.client.config.access import ClusterAccess, connection_options
from ottla.client.config.properties import parse_properties
from ottla.client.security.options import SECURITY_OPTIONS, security_of, security_options
from ottla.tools.text_files import read_text

# Only a file with other options needs it.
if TYPE_CHECKING:
    import difflib
else:
    difflib = deferred_module("difflib")

# A name that is so similar to an option of connections is a misspelled one, except these of
# librdkafka.
_NAME = re.compile(r"[\w.-]+")
_SIMILAR = 0.84
_OTHERS = frozenset({"ssl.crl.location", "ssl.crl.pem", "ssl.certificate"})


def read_options(path: str) -> dict[str, str]:
    """Return the options of Kafka's clients in a file.

    Raises ConfigError if it cannot be read or is of another format, or if an option of TLS or SASL
    is misspelled: the connection would be another one than the user expects.
    """
    try:
        options = parse_properties(read_text(path), path, needs_values=False)
    except OSError as error:
        raise ConfigError(
            f"the options of clients in {path!r} cannot be read: {error.strerror}: name a properties "
            "file with --command-config, or create the profile again"
        ) from error
    for name in options:
        # As in Java, unknown options are ignored; but a file of another format is a mistake.
        if _NAME.fullmatch(name) is None:
            raise ConfigError(
                f"{path}: {name!r} is not the name of an option: name a properties file, with "
                "lines like security.protocol=SSL"
            )
    for name in options.keys() - SECURITY_OPTIONS.keys() - _OTHERS:
        near = difflib.get_close_matches(name, SECURITY_OPTIONS, 1, _SIMILAR)
        if near:
            raise ConfigError(
                f"{path}: {name!r} is not an option of clients: did you mean {near[0]!r}?"
            )
    return options


def configure(brokers: Brokers, path: str) -> None:
    """Connect to the brokers with the options of a file; before the first connection.

    Only options of connections have an effect. Raises ConfigError with the name of a wrong one.
    """
    options = connection_options(read_options(path))
    if options.client_id is not None:
        brokers.client_id = options.client_id
    brokers.security = options.security
    brokers.settings = options.librdkafka


def access_with(bootstrap: str, path: str) -> ClusterAccess:
    """Return the access to a cluster with the options of a file, or without any if `path` is "".

    Raises ConfigError with the name of a wrong one.
    """
    if not path:
        return ClusterAccess(bootstrap)
    options = security_options(read_options(path))
    security_of(options)
    return ClusterAccess(bootstrap, options)


def access_of(brokers: Brokers) -> ClusterAccess:
    """Return the access to a cluster with the options that `configure` has read."""
    return ClusterAccess(brokers.bootstrap, security_options(brokers.settings))
