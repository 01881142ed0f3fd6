"""`ottla topic add-partitions NAME --total N`: increase the number of partitions of a topic."""

import click

from ottla.base.errors import ConfigError
from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from ottla.operations.topics import extend
from ottla.tools import options
from ottla.tools.output import Output, count_text, note


@click.command("add-partitions")
@click.argument("name", shell_complete=options.complete_topic)
@click.option(
    "--total",
    required=True,
    type=click.IntRange(min=1, max=options.INT32_MAX),
    metavar="N",
    help="The number of partitions that the topic has afterwards.",
)
@click.option("--dry-run", is_flag=True, help="Only check whether the cluster would accept it.")
@options.connected
def command(brokers: Brokers, output: Output, name: str, total: int, dry_run: bool) -> None:
    """Increase the number of partitions of a topic. It cannot be reduced again.

    Records stay where they are. New records with a key may go to another partition than older ones
    with the same key, so their order is lost.

    \b
    ottla topic add-partitions orders --total 12
    """
    topic = topics.describe_topic(brokers, name)
    before = len(topic.partitions)
    if total <= before:
        raise ConfigError(
            f"topic {name!r} has {count_text(before, 'partition')}: name a larger number with "
            "--total (partitions cannot be removed)"
        )
    change = extend(brokers, topic, total, validate_only=dry_run)
    sentence = f"Topic {name} has {count_text(total, 'partition')}, before {before}."
    if dry_run:
        sentence = f"Topic {name} would have {count_text(total, 'partition')}, now {before}."
    output.done(sentence, name=name, partitions=total, before=before, dry_run=dry_run)
    if not dry_run:
        for sentence in change.notes:
            note(sentence)
