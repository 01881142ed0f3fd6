"""Options that commands share: --bootstrap, --output, topic names with completion, key=value pairs."""

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from ottla.client.bootstrap import DEFAULT_BOOTSTRAP
from ottla.client.brokers import Brokers
from ottla.tools.output import JSON, TABLE, Output

Function = Callable[..., Any]

bootstrap = click.option(
    "--bootstrap",
    "-b",
    metavar="HOST:PORT",
    envvar="OTTLA_BOOTSTRAP",
    default=DEFAULT_BOOTSTRAP,
    show_default=True,
    show_envvar=True,
    help="The cluster's address.",
)
output_format = click.option(
    "--output",
    type=click.Choice([TABLE, JSON]),
    default=TABLE,
    show_default=True,
    help="The output format.",
)
yes = click.option("--yes", "-y", is_flag=True, help="Do not ask.")


def connected(function: Function) -> Function:
    """Add --bootstrap and --output to a command, and pass it the resulting `Brokers` and `Output`."""

    @bootstrap
    @output_format
    @functools.wraps(function)
    def run(bootstrap: str, output: str, **words: Any) -> Any:
        with Brokers(bootstrap) as brokers:
            return function(brokers, Output(output), **words)

    return run


def formatted(function: Function) -> Function:
    """Add --output to a command, and pass it the resulting `Output`."""

    @output_format
    @functools.wraps(function)
    def run(output: str, **words: Any) -> Any:
        return function(Output(output), **words)

    return run


def parse_pairs(
    context: click.Context, parameter: click.Parameter, values: Sequence[str]
) -> dict[str, str]:
    """Convert the values of options like `--config key=value` to a dictionary (a click callback)."""
    pairs = {}
    for text in values:
        name, found, value = text.partition("=")
        if not found or not name.strip():
            raise click.BadParameter(f"{text!r} is not of the form name=value", context, parameter)
        pairs[name.strip()] = value.strip()
    return pairs


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


def _complete(subject: str, context: click.Context, incomplete: str) -> list[CompletionItem]:
    # Imported only for completion: no other call needs this module.
    names = getattr(importlib.import_module("ottla.tools.shell.names"), subject)
    found = names(context.params.get("bootstrap") or DEFAULT_BOOTSTRAP)
    return [CompletionItem(name) for name in found if name.startswith(incomplete)]
