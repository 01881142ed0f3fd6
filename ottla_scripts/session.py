"""The cluster of a script: `--bootstrap-server`, and the file of `--command-config`."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from ottla.base.errors import ApiError, ConfigError, ErrorCode, OttlaError
from ottla.base.loading import deferred_module
from ottla.client.brokers import Brokers, Controllers
from ottla.client.config.names import Role
from ottla.client.config.properties import parse_properties
from ottla.client.config.refused_options import UnknownOption
from ottla.client.errors import HandshakeFailed
from ottla.client.security.options import security_of
from ottla.tools.measuring.unreachable import repeated_warning
from ottla.tools.text_files import read_text
from ottla_scripts.exits import NoSuchFile, RejectedOption, UsageError
from ottla_scripts.flags import Options
from ottla_scripts.printing import err

# Only scripts that move records need the first, only those with a file the second.
if TYPE_CHECKING:
    from ottla.client import transport
    from ottla_scripts import definitions
else:
    transport = deferred_module("ottla.client.transport")
    definitions = deferred_module("ottla_scripts.definitions")

T = TypeVar("T")
_ADDRESS = re.compile(r"(?:\w+://)?\[?[0-9a-zA-Z\-%._:]*\]?:[0-9]+")

_APACHES_WORDS = "we wanted an endpoint of type CONTROLLER"
_NO_CONTROLLERS = "Use --bootstrap-server: Ottla's cluster has no KRaft controllers."


def read_client_file(name: str | None, *, keeps_spaces: bool = False) -> dict[str, str]:
    """Return the entries of a properties file, none for None. Raises NoSuchFile."""
    try:
        return read_properties(name, keeps_spaces=keeps_spaces) if name else {}
    except FileNotFoundError as error:
        raise NoSuchFile(name) from error


def read_properties(name: str, *, keeps_spaces: bool = False) -> dict[str, str]:
    """Return the entries of a Java properties file; with `keeps_spaces`, values may end with
    spaces.
    """
    return parse_properties(read_text(name), name, needs_values=False, keeps_spaces=keeps_spaces)


def check_bootstrap(text: str) -> None:
    """Raise UsageError unless every address has a port (ToolsUtils.validateBootstrapServer)."""
    if not text.strip():
        raise UsageError("Error while validating the bootstrap address\n")
    # A comma at the end is an error of the Java client.
    if not all(_ADDRESS.fullmatch(part.strip()) for part in text.rstrip(",").split(",")):
        raise UsageError("Please provide valid host:port like host1:9091,host2:9092\n ")


def unreachable_warning(bootstrap: str) -> Callable[[], None]:
    """Return a function that warns on standard error, at most every five seconds."""
    text = f"WARN Connection to {bootstrap} could not be established: waiting for a broker."
    return repeated_warning(err, text)


def log_handshake(error: OttlaError) -> None:
    """Write the reason of a failed handshake to standard error.

    The Java client's message lacks the reason, which its log has.
    """
    if isinstance(error, HandshakeFailed):
        err(f"ERROR Connection to node failed authentication due to: {error}")


def open_tolerantly(opened: Callable[[Mapping[str, str]], T], settings: Mapping[str, str]) -> T:
    """Return a client of librdkafka without the options that it lacks, which are named.

    As Java's clients do: one file may serve several programs.
    """
    while True:
        try:
            return opened(settings)
        except UnknownOption as error:
            err(f"WARN The option {error.name} is not known, and is ignored.")
            settings = {name: text for name, text in settings.items() if name != error.name}


def client_settings(options: Options, prefix: str = "") -> dict[str, str]:
    """Return the entries of --command-config. Raises NoSuchFile."""
    return read_client_file(options[f"{prefix}command-config"])


def check_addresses(text: str) -> None:
    """Raise RejectedOption if there is an empty address, as the Java client does."""
    if text and not all(part.strip() for part in text.split(",")):
        raise RejectedOption("Configuration 'bootstrap.servers' values must not be empty.")


def _check_options(settings: Mapping[str, str]) -> None:
    try:
        definitions.check_options(Role.ADMIN, settings)
    except ConfigError as error:
        raise RejectedOption(str(error)) from error


@contextmanager
def cluster(
    options: Options, *, client_id: str = "adminclient-1", bootstrap: str | None = None
) -> Iterator[Brokers]:
    """Connect to the brokers of --bootstrap-server, the controllers of --bootstrap-controller, or
    the brokers at other addresses.
    """
    settings = client_settings(options) if "command-config" in options else {}
    controllers = options["bootstrap-controller"] if bootstrap is None else None
    if controllers is None:
        check_addresses(bootstrap or str(options["bootstrap-server"]))
    brokers = (
        Brokers(bootstrap or str(options["bootstrap-server"]))
        if controllers is None
        else Controllers(str(controllers))
    )
    brokers.client_id = settings.get("client.id", client_id)
    if settings:
        _check_options(settings)
    brokers.security = security_of(settings)
    with brokers:
        try:
            yield brokers
        except ApiError as error:
            is_ours = _APACHES_WORDS not in str(error)
            if error.code is ErrorCode.MISMATCHED_ENDPOINT_TYPE and is_ours:
                raise ApiError(error.code, f"{error} {_NO_CONTROLLERS}") from error
            raise
        except HandshakeFailed as error:
            log_handshake(error)
            raise
