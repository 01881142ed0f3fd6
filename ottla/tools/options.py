"""Options that commands share: the cluster, --output, topic names with completion, key=value pairs."""

import functools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from ottla.base.errors import ApiError, OttlaError
from ottla.base.loading import deferred, load
from ottla.client.brokers import Brokers
from ottla.client.errors import too_long
from ottla.tools.output import JSON, TABLE, Output, note
from ottla.wire.fields import Message

Function = Callable[..., Any]
# Characters of a request that --explain prints.
_EXPLAINED_MAX = 400
# The password of a delegation token.
_SECRET = re.compile(r"""\bhmac=b(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")

_default_bootstrap = deferred("ottla.tools.profiles", "default_bootstrap")
_default_config = deferred("ottla.tools.profiles", "default_config")
_configure = deferred("ottla.tools.connection.client_config", "configure")
_access_with = deferred("ottla.tools.connection.client_config", "access_with")
_denied = deferred("ottla.tools.connection.denied", "denied")
_is_exposed = deferred("ottla.tools.connection.references", "is_exposed")
_resolve = deferred("ottla.tools.connection.references", "resolve")
_warning = deferred("ottla.tools.connection.references", "warning")
_parse_duration = deferred("ottla.client.config.durations", "parse_duration")
bootstrap = click.option(
    "--bootstrap",
    "-b",
    metavar="HOST:PORT",
    envvar="OTTLA_BOOTSTRAP",
    default=_default_bootstrap,
    show_default="the profile's, or 127.0.0.1:9092",
    show_envvar=True,
    help="The cluster's address.",
)
properties_file = click.Path(exists=True, dir_okay=False, readable=True)
command_config = click.option(
    "--command-config",
    metavar="FILE",
    type=properties_file,
    envvar="OTTLA_COMMAND_CONFIG",
    show_envvar=True,
    help="A properties file with options of Kafka's clients, for TLS and SASL.",
)
output_format = click.option(
    "--output",
    type=click.Choice([TABLE, JSON]),
    default=TABLE,
    show_default=True,
    help="The output format.",
)
explain = click.option(
    "--explain",
    is_flag=True,
    help="Print each request to the brokers on standard error, except the requests of librdkafka, "
    "which writes and reads the records.",
)
# The largest numbers of partitions, brokers and replicas that a request can contain.
INT16_MAX, INT32_MAX = 2**15 - 1, 2**31 - 1
number_of_partition = click.IntRange(min=0, max=INT32_MAX)
file_engine = click.option(
    "--engine",
    type=click.Choice(["process", "spark"]),
    default="process",
    show_default=True,
    help="Read and write files in this process, or with Spark on all cores: for very large topics "
    "and for files at addresses such as s3a://….",
)
yes = click.option("--yes", "-y", is_flag=True, help="Do not ask.")


class FiniteRange(click.FloatRange):
    """A number in a range, without the words `nan` and `inf`, which are numbers for Python."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Convert a text; a usage error quotes what is not a number of the range."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


def connected(function: Function) -> Function:
    """Add --bootstrap, --command-config, --output and --explain to a command, and pass it the
    resulting `Brokers` and `Output`.
    """

    @bootstrap
    @command_config
    @output_format
    @explain
    @functools.wraps(function)
    def run(
        bootstrap: str,
        command_config: str | None,
        output: str,
        explain: bool,
        **option_values: Any,
    ) -> Any:
        with Brokers(bootstrap) as brokers:
            path = command_config or config_of_profile()
            if path:
                _configure(brokers, path)
            with requests_of(brokers, is_explained=explain):
                return function(brokers, Output(output), **option_values)

    return run


@contextmanager
def requests_of(brokers: Brokers, *, is_explained: bool) -> Iterator[None]:
    """Print the requests of a command if they are explained; an error of authorization gets the
    right that is missing.
    """
    request: Message | None = None

    def remember(address: object, sent: Message, version: int) -> None:
        nonlocal request
        request = sent
        if is_explained:
            print_request(address, sent, version)

    brokers.on_request = remember
    try:
        yield
    except ApiError as error:
        if error.code.name.endswith("_AUTHORIZATION_FAILED"):
            raise _denied(error, request, brokers) from error
        raise


def secured(function: Function) -> Function:
    """Add --bootstrap and --command-config to a command; it receives the `ClusterAccess` as access.

    For commands that connect in their own way.
    """

    @bootstrap
    @command_config
    @functools.wraps(function)
    def run(bootstrap: str, command_config: str | None, **option_values: Any) -> Any:
        return function(access=access_from(bootstrap, command_config), **option_values)

    return run


def access_from(bootstrap: str, command_config: str | None) -> Any:
    """Return the `ClusterAccess` with a file of options, or with the file of the profile in use.

    ConfigError names an option that is wrong.
    """
    return _access_with(bootstrap, command_config or config_of_profile())


def config_of_profile(context: click.Context | None = None) -> str:
    """Return the profile's file of options; "" if the profile has no file, or if another address is
    given.

    The secrets of one cluster are not sent to another one. `context` defaults to the context of the
    command that runs.
    """
    source = (context or click.get_current_context()).get_parameter_source("bootstrap")
    return str(_default_config()) if source in (None, ParameterSource.DEFAULT) else ""


def formatted(function: Function) -> Function:
    """Add --output to a command, and pass it the resulting `Output`."""

    @output_format
    @functools.wraps(function)
    def run(output: str, **option_values: Any) -> Any:
        return function(Output(output), **option_values)

    return run


def print_request(address: object, request: Message, version: int) -> None:
    """Print a request on standard error, as --explain does."""
    name, _, fields = _SECRET.sub("hmac=…", repr(request)).partition("(")
    text = f"({fields}" if len(fields) <= _EXPLAINED_MAX else f"({fields[:_EXPLAINED_MAX]}…"
    note(f"{address} <- {name.removesuffix('Request')} v{version} {text}")


def parse_pairs(
    context: click.Context, parameter: click.Parameter, values: Sequence[str]
) -> dict[str, str]:
    """Convert the values of options like `--config key=value` to a dictionary (a click callback)."""
    pairs = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f"{text!r} is not of the form name=value", context, parameter)
        pairs[name.strip()] = value.strip()
    return pairs


def parse_settings(
    context: click.Context, parameter: click.Parameter, values: Sequence[str]
) -> dict[str, str]:
    """Convert the values of options like `-o key=value`, which may refer to secrets.

    A secret that is on the command line itself is used, with a warning (a click callback).
    """
    pairs = parse_pairs(context, parameter, values)
    settings = {}
    for name, text in pairs.items():
        if _is_exposed(name, text):
            note(_warning(name))
        settings[name] = _resolve(name, text) if "${" in text else text
    return settings


def parse_milliseconds(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> int | None:
    """Convert a duration like 15m to milliseconds (a click callback)."""
    if text is None:
        return None
    try:
        return int(_parse_duration(text))
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from error


def parse_positive_milliseconds(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> int | None:
    """Convert a duration that is longer than 0 to milliseconds (a click callback)."""
    value = parse_milliseconds(context, parameter, text)
    if value == 0:
        raise click.BadParameter(f"{text!r} must be longer than 0", context, parameter)
    return value


def writable_topic(_context: click.Context, _parameter: click.Parameter, name: str) -> str:
    """Return the name of a topic to write to; ApiError if it is too long."""
    error = too_long(name)
    if error is not None:
        raise error
    return name


def complete_topic(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete with the cluster's topics."""
    return _complete("topic_names", context, incomplete)


def complete_group(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete with the cluster's groups."""
    return _complete("group_ids", context, incomplete)


def complete_subscription(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete with the cluster's subscriptions to metrics of clients."""
    return _complete("subscription_names", context, incomplete)


def complete_transactional_id(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete with the cluster's transactional ids."""
    return _complete("transactional_ids", context, incomplete)


def complete_profile(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete with the names of profiles."""
    try:
        names = sorted(load("ottla.tools.profiles", "read")().addresses)
    except OttlaError:
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _complete(subject: str, context: click.Context, incomplete: str) -> list[CompletionItem]:
    # Imported only for completion: no other call needs this module.
    names = load("ottla.tools.connection.names", subject)
    try:
        bootstrap = context.params.get("bootstrap") or _default_bootstrap()
        path = context.params.get("command_config") or config_of_profile(context)
        known = names(bootstrap, path)
    except OttlaError:
        return []
    return [CompletionItem(name) for name in known if name.startswith(incomplete)]
