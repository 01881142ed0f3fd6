"""`ottla cluster move`: move replicas between brokers (KIP-455), show moves, cancel them."""

from collections.abc import Sequence

import click

from ottla.client.admin import replicas, topics
from ottla.client.brokers import Brokers
from ottla.tools import options
from ottla.tools.broker_ids import parse_broker_ids, running_brokers
from ottla.tools.output import Output, note
from ottla.tools.topic_partitions import parse_topic_partitions

_COLUMNS = ("topic", "partition", "from", "to")
_STATUS_COLUMNS = ("topic", "partition", "replicas", "adding", "removing")
Key = tuple[str, int]


@click.command("move")
@click.argument("topic_partitions", nargs=-1, metavar="[TOPIC[:0,1]]...", shell_complete=options.complete_topic)  # fmt: skip
@click.option("--to", callback=parse_broker_ids, metavar="ID,…", help="The brokers of the replicas; the first one is preferred as leader.")  # fmt: skip
@click.option("--cancel", is_flag=True, help="Cancel the moves of these partitions.")
@click.option("--execute", is_flag=True, help="Execute the plan (default: dry run).")
@options.connected
def command(
    brokers: Brokers,
    output: Output,
    topic_partitions: tuple[str, ...],
    to: tuple[int, ...],
    cancel: bool,
    execute: bool,
) -> None:
    """Move the replicas of topics or partitions to brokers; without arguments, show running moves.

    With several partitions the first broker of the list rotates, so that leaders are spread.

    \b
    ottla cluster move orders --to 2,3 --execute
    ottla cluster move orders:0,1 --cancel --execute
    """
    if not topic_partitions:
        if to or cancel or execute:
            raise click.UsageError("Name the topics or partitions, as in orders or orders:0,1.")
        _show(brokers, output)
        return
    if bool(to) == cancel:
        raise click.UsageError("Give either --to ID,… or --cancel.")
    keys = parse_topic_partitions(brokers, topic_partitions)
    moves = replicas.list_reassignments(brokers)
    rows = _plan(brokers, keys, to)
    if cancel:
        rows = [row for row in rows if (row["topic"], row["partition"]) in moves]
    if execute:
        targets = {
            (str(row["topic"]), int(str(row["partition"]))): None if cancel else list(row["to"])  # type: ignore[call-overload]
            for row in rows
        }
        if targets:
            replicas.alter_reassignments(brokers, targets)
    columns = _COLUMNS[:3] if cancel else _COLUMNS
    output.rows(
        [{**row, "executed": execute, "cancelled": cancel} for row in rows],
        columns,
        empty="These partitions are not moving." if cancel else "The replicas are there already.",
    )
    if rows and not execute:
        note("Dry run, nothing was changed: add --execute.")


def _show(brokers: Brokers, output: Output) -> None:
    rows = [
        {
            "topic": topic,
            "partition": partition,
            "replicas": list(move.replicas),
            "adding": list(move.adding),
            "removing": list(move.removing),
        }
        for (topic, partition), move in sorted(replicas.list_reassignments(brokers).items())
    ]
    output.rows(rows, _STATUS_COLUMNS, empty="No replicas are moving.")


def _plan(brokers: Brokers, keys: Sequence[Key], to: tuple[int, ...]) -> list[dict[str, object]]:
    running_brokers(brokers, to)
    rows: list[dict[str, object]] = []
    described = {name: topics.describe_topic(brokers, name) for name in {key[0] for key in keys}}
    for at, (name, number) in enumerate(keys):
        now = next(row for row in described[name].partitions if row.partition == number)
        rotation = at % len(to) if to else 0
        target = (*to[rotation:], *to[:rotation])
        if not to or target != tuple(now.replicas):
            rows.append(
                {
                    "topic": name,
                    "partition": number,
                    "from": list(now.replicas),
                    "to": list(target),
                }
            )
    return rows
