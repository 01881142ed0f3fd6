"""What verbs share: --bootstrap and --output, topic names that complete themselves, key=value pairs."""

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
    help="Where the cluster is.",
)
output_format = click.option(
    "--output",
    type=click.Choice([TABLE, JSON]),
    default=TABLE,
    show_default=True,
    help="For people, or for scripts.",
)
yes = click.option("--yes", "-y", is_flag=True, help="Do not ask.")


def connected(function: Function) -> Function:
    """Give a verb --bootstrap and --output; call it with the `Brokers` and the `Output` they make."""

    @bootstrap
    @output_format
    @functools.wraps(function)
    def run(bootstrap: str, output: str, **words: Any) -> Any:
        with Brokers(bootstrap) as brokers:
            return function(brokers, Output(output), **words)

    return run


def formatted(function: Function) -> Function:
    """Give a verb --output; call it with the `Output` that it makes."""

    @output_format
    @functools.wraps(function)
    def run(output: str, **words: Any) -> Any:
        return function(Output(output), **words)

    return run


def parse_pairs(
    context: click.Context, parameter: click.Parameter, values: Sequence[str]
) -> dict[str, str]:
    """Callback of options like `--config key=value`: return them as a dictionary."""
    pairs = {}
    for text in values:
        name, found, value = text.partition("=")
        if not found or not name.strip():
            raise click.BadParameter(f"{text!r}: write it like name=value", context, parameter)
        pairs[name.strip()] = value.strip()
    return pairs


def complete_topic(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the topics that the cluster has."""
    return _complete("topic_names", context, incomplete)


def complete_group(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the groups that the cluster has."""
    return _complete("group_ids", context, incomplete)


def _complete(subject: str, context: click.Context, incomplete: str) -> list[CompletionItem]:
    # Imported when a shell asks: no other call needs all subjects at once.
    names = getattr(importlib.import_module("ottla.tools.shell.names"), subject)
    found = names(context.params.get("bootstrap") or DEFAULT_BOOTSTRAP)
    return [CompletionItem(name) for name in found if name.startswith(incomplete)]
