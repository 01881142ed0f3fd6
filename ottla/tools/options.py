"""What verbs share: --bootstrap and --output, topic names that complete themselves, key=value pairs."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from ottla.base.errors import OttlaError
from ottla.client.admin import groups, topics
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


def _complete(
    context: click.Context, incomplete: str, names: Callable[[Brokers], list[str]]
) -> list[CompletionItem]:
    try:
        with Brokers(
            context.params.get("bootstrap") or DEFAULT_BOOTSTRAP, timeout_s=1.0
        ) as brokers:
            found = names(brokers)
    except OttlaError:
        # Completion never complains: there is simply nothing to offer.
        return []
    return [CompletionItem(name) for name in found if name.startswith(incomplete)]


def complete_topic(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the topics that the cluster has."""
    return _complete(
        context, incomplete, lambda brokers: [topic.name for topic in topics.list_topics(brokers)]
    )


def complete_group(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the groups that the cluster has."""
    return _complete(
        context, incomplete, lambda brokers: [row.group_id for row in groups.list_groups(brokers)]
    )
