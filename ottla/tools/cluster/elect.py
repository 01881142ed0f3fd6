"""`ottla cluster elect`: elect the preferred leaders of partitions, or unclean ones (KIP-460)."""

import click

from ottla.client.brokers import Brokers
from ottla.operations import elections
from ottla.tools import options
from ottla.tools.output import Output, note
from ottla.tools.topic_partitions import parse_topic_partitions

_COLUMNS = ("topic", "partition", "leader", "to", "problem")


@click.command("elect")
@click.argument("topic_partitions", nargs=-1, metavar="[TOPIC[:0,1]]...", shell_complete=options.complete_topic)  # fmt: skip
@click.option("--all", "elects_all", is_flag=True, help="All partitions of the cluster.")
@click.option("--unclean", is_flag=True,
              help="Elect any running replica of partitions without a leader: records can be lost.")  # fmt: skip
@click.option("--execute", is_flag=True, help="Execute the elections (default: dry run).")
@options.connected
def command(
    brokers: Brokers,
    output: Output,
    topic_partitions: tuple[str, ...],
    elects_all: bool,
    unclean: bool,
    execute: bool,
) -> int:
    """Elect the first replica of partitions as their leader, if it is in sync.

    TOPIC:0,1 names the partitions 0 and 1. The exit code is 1 if an election has failed, else 0.

    \b
    ottla cluster elect --all --execute
    ottla cluster elect orders:0,1 --unclean --execute
    """
    if elects_all == bool(topic_partitions):
        raise click.UsageError("Name topics or partitions, as in orders or orders:0,1, or --all.")
    keys = None if elects_all else parse_topic_partitions(brokers, topic_partitions)
    needed = elections.plan(brokers, keys, unclean=unclean)
    results = {row.key: row.problem for row in needed}
    if execute:
        results |= elections.execute(brokers, needed, unclean=unclean).errors
    rows = [
        {
            "topic": row.key[0],
            "partition": row.key[1],
            "leader": row.leader,
            "to": row.to,
            "executed": execute and not results[row.key],
            "problem": results[row.key],
        }
        for row in needed
    ]
    output.rows(
        rows,
        _COLUMNS,
        empty="All of these partitions have a leader."
        if unclean
        else "All of these partitions are led by their preferred replica.",
    )
    if rows and not execute:
        note("Dry run, nothing was changed: add --execute.")
    return 1 if execute and any(results.values()) else 0
